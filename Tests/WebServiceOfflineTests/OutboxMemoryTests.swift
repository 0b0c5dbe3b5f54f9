#if WEBSERVICE_CURL && os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceServer

@testable import WebServiceOffline

@Suite("The memory of an outbox with a large file", .permit)
struct OutboxMemoryTests {
    @Test("A file is copied and sent without being loaded into memory", .permit(minutes: isThorough ? 30 : 3))
    func growth() async throws {
        let folder = TemporaryFolder.forTest().url
        let file = folder.appendingPathComponent("video")
        let count = amount(48 << 20, thorough: 1 << 30)
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        for _ in 0..<(count >> 20) { try handle.write(contentsOf: Data(repeating: 7, count: 1 << 20)) }
        try handle.close()

        let (input, output) = (Pipe(), Pipe())
        let server = ChildProcess(
            programPath("session-probe"), ["memory", "drain", "http://127.0.0.1", "0"], input: .pipe(input),
            output: .pipe(output))
        try server.run()
        defer {
            server.send(SIGKILL)
            server.waitUntilExit()  // an exit test would wait for a process that has ended
        }
        let port = try await blocking { String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) }
        let result = Pipe()
        let probe = ChildProcess(
            programPath("outbox-probe"),
            [
                "upload", folder.appendingPathComponent("outbox").path,
                "http://127.0.0.1:\(port.trimmingCharacters(in: .whitespacesAndNewlines))", file.path,
            ], output: .pipe(result))
        try probe.run()
        let text = try await blocking {
            String(decoding: result.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        #expect(probe.waitUntilExit() == 0)
        let growth = try #require(Int(text.trimmingCharacters(in: .whitespacesAndNewlines)), "\(text)")
        #expect(growth < 16 << 10)
        if isThorough { print("\(count >> 20) MiB: \(growth) KiB") }
        #expect(try names(in: folder.appendingPathComponent("outbox")) == ["outbox.lock"])
    }
}
#endif
