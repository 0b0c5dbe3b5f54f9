#if os(macOS) || os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@Suite(.permit)
struct ChildProcessTests {
    private func shell(_ script: String) throws -> ChildProcess {
        let process = ChildProcess("/bin/sh", ["-c", script], input: .null, output: .null, errors: .null)
        try process.run()
        return process
    }

    @Test("The result is the exit status or the negative number of a signal", arguments: [0, 1, 3, 255])
    func results(status: Int32) throws {
        let process = try shell("exit \(status)")
        #expect(process.waitUntilExit() == status)
        #expect(!process.isRunning)
        #expect(process.waitUntilExit() == status)
        let sleeping = try shell("exec sleep 100")
        #expect(sleeping.isRunning)
        sleeping.send(SIGKILL)
        #expect(sleeping.waitUntilExit() == -SIGKILL)
        sleeping.send(SIGKILL)  // no effect
    }

    @Test("A program that does not exist is an error")
    func missing() {
        let process = ChildProcess("/nowhere")
        #expect(throws: POSIXError(.ENOENT)) { try process.run() }
        #expect(!process.isRunning)
    }

    @Test("A process has the given arguments, environment and streams, and no other descriptors")
    func inheritance() throws {
        let (input, output, other) = (Pipe(), Pipe(), Pipe())
        let inherited = fcntl(other.fileHandleForReading.fileDescriptor, F_DUPFD, 100)  // not closed by exec
        defer { close(inherited) }
        let process = ChildProcess(
            "/bin/sh", ["-c", "cat; echo $1 $A; ls /dev/fd/", "sh", "a  b"],
            environment: ["A": "=ü", "PATH": "/usr/bin:/bin"], input: .pipe(input), output: .pipe(output))
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data("x\n".utf8))
        try input.fileHandleForWriting.close()
        let lines = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(process.waitUntilExit() == 0)
        #expect(lines == "x\na b =ü\n0\n1\n2\n3\n")  // 3 is the folder that ls reads
    }

    // Exclusive, because few descriptors may remain for other tests.
    @Test(
        "With 1,500 open descriptors, processes start, and their end is noticed while others are running", .exclusive)
    func manyDescriptors() async throws {
        let descriptors = (0..<1_500).map { _ in open("/dev/null", O_RDONLY | O_CLOEXEC) }
        defer { for descriptor in descriptors where descriptor >= 0 { close(descriptor) } }
        var running: [ChildProcess] = []
        try await withThrowingTaskGroup(of: ChildProcess.self) { group in
            for index in 0..<100 {
                group.addTask {
                    let process = try shell(index.isMultiple(of: 2) ? "exec sleep 1000" : "exit 7")
                    if !index.isMultiple(of: 2) { #expect(process.waitUntilExit() == 7) }
                    return process
                }
            }
            for try await process in group where process.isRunning { running.append(process) }
        }
        #expect(running.count == 50)
        for process in running {
            process.send(SIGTERM)
            #expect(process.waitUntilExit() == -SIGTERM)
        }
    }

    @Test("Processes that are left are terminated after a process that was killed")
    func guardian() async throws {
        let output = Pipe()
        let probe = ChildProcess(programPath("session-probe"), ["children"], output: .pipe(output))
        try await blocking {
            try probe.run()
            var text = Data()
            while text.filter({ $0 == UInt8(ascii: "\n") }).count < 2 {
                let more = output.fileHandleForReading.availableData
                try #require(!more.isEmpty)
                text += more
            }
            #expect(String(decoding: text, as: UTF8.self) == "started\nstarted\n")
            #expect(probe.isRunning)
            probe.send(SIGKILL)
            #expect(probe.waitUntilExit() == -SIGKILL)
            // The end of the output is the end of both processes.
            #expect(try output.fileHandleForReading.readToEnd() ?? Data() == Data())
        }
    }
}
#endif
