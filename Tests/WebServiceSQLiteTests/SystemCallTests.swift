#if os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceSQLite
import WebServiceServer
import WebServiceStorage

/// The program strace, which makes system calls of `storage-probe` fail.
enum Strace {
    /// Whether strace is installed and the system permits tracing.
    static let works: Bool = {
        // If strace cannot be started, it does not work.
        let works = (try? run(["-o", "/dev/null", "true"])) == 0
        if !works {
            print("SKIPPED: system calls that fail need strace and the permission to trace (apt-get install strace)")
        }
        return works
    }()

    /// The calls to trace and the call that fails: the k-th one of each thread.
    struct Fault: Sendable {
        /// If not empty, only calls that name one of these files or a descriptor of one.
        var paths: [String] = []
        var calls: String
        var error: String
        var number: Int
    }

    /// - Returns: The exit status of the probe, or of `timeout` if a signal ended it (137 after a
    ///   minute), and the lines of the trace.
    static func probe(_ arguments: [String], _ options: [String]) throws -> (status: Int32, trace: [String]) {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let trace = folder.url.appendingPathComponent("trace")
        let probe = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(
            "storage-probe"
        ).path
        let status = try run(["-f", "-qq", "-o", trace.path] + options + [probe] + arguments)
        let lines = try String(decoding: Data(contentsOf: trace), as: UTF8.self).split(separator: "\n").map(String.init)
        return (status, lines)
    }

    static func probe(_ arguments: [String], _ fault: Fault) throws -> (
        status: Int32, isInjected: Bool, trace: [String]
    ) {
        let filter = fault.paths.isEmpty ? ["-e", "trace=\(fault.calls)"] : fault.paths.flatMap { ["-P", $0] }
        let (status, trace) = try probe(
            arguments, filter + ["-e", "inject=\(fault.calls):error=\(fault.error):when=\(fault.number)"])
        return (status, trace.contains { $0.hasSuffix("(INJECTED)") }, trace)
    }

    private static func run(_ arguments: [String]) throws -> Int32 {
        let process = ChildProcess(
            "/usr/bin/timeout", ["-s", "KILL", "60", "strace"] + arguments,
            environment: ["SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin"], input: .null, output: .null,
            errors: .null)
        try process.run()
        return process.waitUntilExit()
    }
}

/// Makes every k-th system call of a storage fail, and checks the storage afterwards. All calls
/// with `WEBSERVICE_SOAK`, a part of them without.
@Suite(
    "Storages whose system calls fail",
    .enabled(if: Strace.works, "requires strace and the permission to trace"),
    .disabled(if: isSanitized, "the sanitizer makes additional system calls"),
    .permit(minutes: 60))
struct SystemCallTests {
    private static let errors = ["EIO", "ENOSPC", "EINTR", "EMFILE", "EACCES"]
    private static let (old, new) = (Data(repeating: 1, count: 9_000), Data(repeating: 2, count: 7_000))

    @Test(
        "After any failed system call, the value is old or new, errors are reported, and the storage works",
        arguments: ["file", "file-power", "sqlite", "sqlite-power"])
    func everyCall(kind: String) async throws {
        let isFile = kind.hasPrefix("file")
        try await withScratchFolder(inMemory: true) { scratch in
            let (template, folder) = (
                scratch.appendingPathComponent("template"), scratch.appendingPathComponent("storage")
            )
            try FileManager.default.createDirectory(at: template, withIntermediateDirectories: false)
            try await Self.fill(Self.storage(isFile, template))
            let named = Self.paths(isFile, folder)
            // `close` is not included: an injected failure skips the call, whereas a real `close`
            // that fails still closes the descriptor.
            let calls =
                "openat,read,pread64,write,pwrite64,lseek,fstat,newfstatat,statx,access,faccessat,faccessat2,readlink,getdents64,mmap,fcntl,"
                + "flock,fsync,fdatasync,ftruncate,utimensat,mkdir,unlink,unlinkat,rename,renameat,renameat2,linkat,fchmod,fchown"
            // Calls for files with random names cannot be found by their path. Only the storage
            // makes these calls.
            let unnamed =
                "write,pwrite64,fsync,fdatasync,ftruncate,utimensat,renameat,renameat2,unlinkat,linkat,mkdir,unlink,rename,flock"
            var runs = 0
            for (paths, set) in [(named, calls), ([], unnamed)] {
                for (index, error) in Self.errors.enumerated() {
                    var number = isSoak ? 1 : 1 + index
                    while number <= 400 {
                        let fault = Strace.Fault(paths: paths, calls: set, error: error, number: number)
                        let isInjected = try await Self.step(kind, fault, template, folder)
                        runs += 1
                        guard isInjected else { break }
                        number += amount(24 * Self.errors.count, thorough: 6 * Self.errors.count, soak: 1)
                    }
                }
            }
            print("\(kind): \(runs) runs with a system call that failed")
            #expect(runs >= 10)
        }
    }

    @Test(
        "A read of the database that fails is not damage, whichever read it is, alone and together with a write",
        arguments: ["sqlite", "sqlite-power"])
    func everyRead(kind: String) async throws {
        try await withScratchFolder(inMemory: true) { scratch in
            let (template, folder) = (
                scratch.appendingPathComponent("template"), scratch.appendingPathComponent("storage")
            )
            try FileManager.default.createDirectory(at: template, withIntermediateDirectories: false)
            try await Self.fill(Self.storage(false, template))
            let paths = Self.paths(false, folder)
            for calls in ["pread64", "pread64,pwrite64"] {
                // strace counts the calls of each thread, and the threads share the calls differently
                // under load, so one run without a fault is not the end.
                var (number, faults, misses) = (1, 0, 0)
                while number <= 100, misses < 3 {
                    let fault = Strace.Fault(paths: paths, calls: calls, error: "EIO", number: number)
                    let isInjected = try await Self.step(kind, fault, template, folder)
                    (faults, misses) = isInjected ? (faults + 1, 0) : (faults, misses + 1)
                    number += 1
                }
                print("\(kind), \(calls): \(faults) runs with a system call that failed")
                #expect((10...97).contains(faults))
            }
        }
    }

    /// Copies a storage, runs the steps of the probe in the copy with a fault, and checks the copy.
    ///
    /// - Returns: Whether the fault occurred.
    private static func step(
        _ kind: String, _ fault: Strace.Fault, _ template: URL, _ folder: URL
    ) async throws -> Bool {
        let isFile = kind.hasPrefix("file")
        try FileManager.default.copyItem(at: template, to: folder)
        defer { try? FileManager.default.removeItem(at: folder) }  // the next copy fails if it is still there
        let (status, isInjected, trace) = try await blocking {
            let path = isFile ? folder.path : folder.appendingPathComponent("a.db").path
            return try Strace.probe([kind, path, "step", "0", "0"], fault)
        }
        let injected = trace.filter { $0.hasSuffix("(INJECTED)") }.joined(separator: "\n")
        let text = Comment(
            rawValue: "\(kind), \(fault.error) of call \(fault.number): status \(status)\n\(injected)")
        #expect((64..<128).contains(status), text)
        if (64..<128).contains(status) {
            try await check(storage(isFile, folder), folder, isFile, status - 64, text)
        }
        return isInjected
    }

    /// The folder and the files of a storage.
    private static func paths(_ isFile: Bool, _ folder: URL) -> [String] {
        let names =
            isFile
            ? ["a", "b"].map { StorageKey(identifier: $0).fileName + ".entry" }
            : ["", "-wal", "-shm", ".lock"].map { "a.db" + $0 }
        return [folder.path] + names.map { folder.appendingPathComponent($0).path }
    }

    private static func storage(_ isFile: Bool, _ folder: URL) throws -> any ResponseStorage {
        if isFile { return try FileStorage(folder: folder) }
        return try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
    }

    private static func fill(_ storage: any ResponseStorage) async throws {
        try await storage.store(StorageEntry(.raw(old), date: nil), for: "a")
        try await storage.put("b", "b")
        (storage as? SQLiteStorage)?.close()
    }

    /// - Parameter steps: One bit for each step of the probe that succeeded.
    private static func check(
        _ storage: any ResponseStorage, _ folder: URL, _ isFile: Bool, _ steps: Int32, _ text: Comment
    ) async throws {
        let (a, b) = (try await storage.entry(for: "a")?.data, try await storage.text("b"))
        #expect(a == new || steps & 2 == 0 && a == old, text)
        #expect(b == nil || steps & 8 == 0 && b == "b", text)
        for key in ["a", "b"] as [StorageKey] {
            try await storage.put("newer", key)
            #expect(try await storage.text(key) == "newer", text)
        }
        if isFile {
            let isEntry = { (name: String) in name.hasSuffix(".entry") }
            let names = try names(in: folder)
            #expect(names.filter(isEntry).count == 2, text)
            #expect(names.count <= 3, text)
        } else {
            (storage as? SQLiteStorage)?.close()
            #expect(try Foreigner(folder.appendingPathComponent("a.db")).value("PRAGMA integrity_check") == "ok", text)
            let names = try names(in: folder)
            #expect(names == ["a.db", "a.db.lock"], text)
        }
    }

    @Test(
        "The durability `power` flushes each entry to disk before it counts as stored, and `process` does not"
    )
    func fsync() async throws {
        try await withScratchFolder { scratch in
            for kind in ["file", "file-power", "sqlite", "sqlite-power"] {
                let folder = scratch.appendingPathComponent(kind)
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
                let path = kind.hasPrefix("file") ? folder.path : folder.appendingPathComponent("a.db").path
                // 20 entries, each followed by a line once it is stored.
                let (status, trace) = try await blocking {
                    try Strace.probe(
                        [kind, path, "write", "20", "1"],
                        ["-y", "-e", "trace=fsync,fdatasync,write,renameat,renameat2"])
                }
                #expect(status == 0)
                var (synchronized, all) = (0, 0)
                var waiting = 0
                for line in trace {
                    if line.contains("fsync(") || line.contains("fdatasync(") { waiting += 1 }
                    guard line.contains("\"ack ") else { continue }
                    all += 1
                    // For a file, once for the bytes before the rename and once for the name.
                    if waiting >= (kind == "file-power" ? 2 : 1) { synchronized += 1 }
                    waiting = 0
                }
                #expect(all == 20)
                #expect(kind.hasSuffix("power") ? synchronized == 20 : synchronized <= 1, "\(kind): \(synchronized)")
                guard kind == "file-power" else { continue }
                let order = trace.filter { $0.contains("fsync(") || $0.contains("renameat") }.map { line in
                    line.contains("renameat") ? "rename" : line.contains(".temporary>") ? "file" : "folder"
                }
                // First the name of the folder, which another process may have created.
                let entries = Array(repeating: ["file", "rename", "folder"], count: 20).flatMap(\.self)
                #expect(order == ["folder"] + entries)
            }
        }
    }
}
#endif
