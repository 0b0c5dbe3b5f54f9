package import Foundation
import WebServiceCore
import WebServiceMocking
package import WebServiceServer

/// A folder that loses what was not synchronized, as a disk does when the power fails.
///
/// Programs that run with ``environment(ignoring:endingBefore:)`` record their changes
/// (`disk-log.c`). ``fail(using:)`` replaces the folder by a state that a disk may have after a
/// power failure: a file has the content of its last `fsync`, with any of the later writes, the
/// last of which may be incomplete. A folder has the names of its last `fsync`, with any of the
/// later changes. No process may use the folder at that time.
///
/// A process that is not killed with ``kill`` may have made its last change without a record. If
/// another process then continues from this change, ``fail(using:)`` may create a state that no disk
/// can have.
package final class VolatileDisk {
    /// Whose `fsync` has no effect.
    package enum Ignored: String, CaseIterable, Sendable {
        case files, folders, all
    }

    /// A file or a folder.
    private final class Node {
        let isFolder: Bool
        var content = Content()
        /// The content at the last synchronization.
        var synchronized = Content()
        /// The changes since then.
        var changes: [Change] = []

        init(isFolder: Bool) { self.isFolder = isFolder }

        func apply(_ change: Change) {
            content.apply(change)
            changes.append(change)
        }

        func synchronize() {
            synchronized = content
            changes = []
        }
    }

    private struct Content {
        var bytes = Data()
        var names: [String: Node] = [:]

        mutating func apply(_ change: Change) {
            switch change {
            case .write(let new, let offset):
                length(max(bytes.count, offset + new.count))
                bytes.replaceSubrange(offset..<(offset + new.count), with: new)
            case .length(let count): length(count)
            case .names(let changes): for (name, node) in changes { names[name] = node }
            }
        }

        private mutating func length(_ count: Int) {
            if count < bytes.count { bytes.removeLast(bytes.count - count) }
            bytes.append(Data(count: count - bytes.count))
        }
    }

    private enum Change {
        case write(Data, offset: Int)
        case length(Int)
        /// A change of a folder; a name without a node is removed.
        case names([(String, Node?)])
    }

    package let folder: URL
    private let logs: URL
    private let scratch = TemporaryFolder(inMemory: true)
    private var root = Node(isFolder: true)
    private var nodes: [UInt64: Node] = [:]

    /// Creates an empty folder.
    package init() throws {
        folder = scratch.url.appendingPathComponent("disk", isDirectory: true)
        logs = scratch.url.appendingPathComponent("logs", isDirectory: true)
        for folder in [folder, logs] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        }
        root = try scan(folder)
    }

    // MARK: Recording

    /// The path of the library that records changes; `nil` without a C compiler.
    private static let library: String? = {
        #if os(Linux)
        let path = programPath("disk-log.so")
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("disk-log.c")
        let new = "\(path).\(UUID().uuidString)"
        let compiler = ChildProcess(
            "/bin/sh",
            ["-c", "exec $(command -v clang || command -v cc) -shared -fPIC -pthread -o \(new) \(source.path)"],
            input: .null, output: .null, errors: .inherited)
        guard (try? compiler.run()) != nil, compiler.waitUntilExit() == 0, rename(new, path) == 0 else {
            print("SKIPPED: tests of power failures need a C compiler (apt-get install clang)")
            return nil
        }
        return path
        #else
        return nil
        #endif
    }()

    /// Whether changes can be recorded. A sanitizer replaces the same functions.
    package static var works: Bool { (!isSanitized || mutant != nil) && library != nil }

    /// The number of the fault of `scripts/mutate`.
    private static let mutant = ProcessInfo.processInfo.environment["WEBSERVICE_MUTANT"]

    /// The environment variables of a program that changes the folder.
    ///
    /// - Parameter last: The number of the change before which the program is killed. Defaults to
    ///   `nil`.
    package func environment(ignoring ignored: Ignored? = nil, endingBefore last: Int? = nil) -> [String: String] {
        // Foundation creates folders at home.
        var variables = [
            "LD_PRELOAD": Self.library ?? "", "DISK_FOLDER": folder.path, "DISK_LOGS": logs.path,
            "HOME": scratch.url.path,
        ]
        variables["WEBSERVICE_MUTANT"] = Self.mutant
        variables["DISK_IGNORED"] = ignored?.rawValue
        variables["DISK_END"] = last.map(String.init)
        return variables
    }

    /// Kills a process between two of its changes, and waits for its end.
    package var kill: @Sendable (_ process: ChildProcess) -> Void {
        let lock = logs.appendingPathComponent("lock").path
        return { process in
            // The processes hold this lock from each change to its record.
            let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            while flock(descriptor, LOCK_EX) == -1, errno == EINTR {}
            process.send(SIGKILL)
            process.waitUntilExit()
            close(descriptor)
        }
    }

    /// Returns the names of the files whose content is not that of the recorded changes.
    package func unrecordedFiles() throws -> [String] {
        try readLogs()
        return try differences(root, folder).filter { !$0.hasSuffix("-shm") }
    }

    private func differences(_ node: Node, _ url: URL) throws -> [String] {
        guard node.isFolder else {
            return try Data(contentsOf: url) == node.content.bytes ? [] : [url.lastPathComponent]
        }
        let found = Set(try names(in: url))
        return try found.symmetricDifference(node.content.names.keys).sorted()
            + node.content.names.filter { found.contains($0.key) }.flatMap {
                try differences($0.value, url.appendingPathComponent($0.key))
            }
    }

    // MARK: Power failures

    /// Replaces the folder by a state after a power failure.
    package func fail(using random: inout SeededGenerator) throws {
        try readLogs()
        try rewrite { changes in
            switch Int.random(in: 0..<4, using: &random) {
            case 0: return []
            case 1: return changes
            case 2: return Array(changes.prefix(Int.random(in: 0...changes.count, using: &random)))
            default:
                var rest = changes.filter { _ in Bool.random(using: &random) }
                if case .write(let bytes, let offset) = rest.last, Bool.random(using: &random) {
                    let count = Int.random(in: 0..<bytes.count, using: &random)
                    rest[rest.count - 1] = .write(bytes.prefix(count), offset: offset)
                }
                return rest
            }
        }
    }

    /// Replaces the folder by the state that contains only what was synchronized.
    package func fail() throws {
        try readLogs()
        try rewrite { _ in [] }
    }

    /// Replaces the folder by the state that contains what was synchronized and, of the later changes
    /// of each file or folder, only the last one.
    package func failExceptLastChanges() throws {
        try readLogs()
        try rewrite { Array($0.suffix(1)) }
    }

    private func rewrite(_ survivors: ([Change]) -> [Change]) throws {
        for name in try names(in: folder) {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
        try write(root, folder, survivors)
        nodes = [:]
        root = try scan(folder)
    }

    private func write(_ node: Node, _ url: URL, _ survivors: ([Change]) -> [Change]) throws {
        var content = node.synchronized
        for change in survivors(node.changes) { content.apply(change) }
        guard node.isFolder else { return try content.bytes.write(to: url) }
        if url != folder { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false) }
        for (name, node) in content.names.sorted(by: { $0.key < $1.key }) {
            try write(node, url.appendingPathComponent(name), survivors)
        }
    }

    /// Returns the node of a file or folder, whose content counts as synchronized.
    private func scan(_ url: URL) throws -> Node {
        var status = stat()
        guard lstat(url.path, &status) == 0 else { throw POSIXError(.ENOENT) }
        let node = Node(isFolder: status.st_mode & S_IFMT == S_IFDIR)
        nodes[UInt64(status.st_ino)] = node
        if node.isFolder {
            for name in try names(in: url) { node.content.names[name] = try scan(url.appendingPathComponent(name)) }
        } else {
            node.content.bytes = try Data(contentsOf: url)
        }
        node.synchronize()
        return node
    }
}

// MARK: - Logs

extension VolatileDisk {
    private struct Record {
        let instant: Int
        let operation: Substring
        let inode: UInt64
        let offset: Int
        let path: Substring
        let bytes: Data
    }

    /// Applies the records of the programs that have ended, and removes them.
    private func readLogs() throws {
        var records: [Record] = []
        for name in try names(in: logs) where name.hasSuffix(".log") {
            let file = logs.appendingPathComponent(name)
            records += Self.records(try Data(contentsOf: file))
            try FileManager.default.removeItem(at: file)
        }
        for record in records.sorted(by: { $0.instant < $1.instant }) { apply(record) }
    }

    /// Returns the records of a log. The last one of a killed program may be incomplete.
    private static func records(_ log: Data) -> [Record] {
        var records: [Record] = []
        var rest = log
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let parts = String(decoding: rest[..<end], as: UTF8.self).split(separator: " ", maxSplits: 5)
            guard parts.count == 6, let instant = Int(parts[0]), let inode = UInt64(parts[2]),
                let offset = Int(parts[3]), let count = Int(parts[4]), rest.endIndex - end > count
            else { break }
            let bytes = Data(rest[(end + 1)...].prefix(count))
            records.append(
                Record(
                    instant: instant, operation: parts[1], inode: inode, offset: offset, path: parts[5], bytes: bytes))
            rest = rest[(end + 1 + count)...]
        }
        return records
    }

    private func apply(_ record: Record) {
        switch record.operation {
        case "write": nodes[record.inode]?.apply(.write(record.bytes, offset: record.offset))
        case "truncate": nodes[record.inode]?.apply(.length(record.offset))
        case "synchronize": nodes[record.inode]?.synchronize()
        case "create", "mkdir":
            let node = Node(isFolder: record.operation == "mkdir")
            nodes[record.inode] = node
            change([(record.path, node)])
        case "unlink": change([(record.path, nil)])
        case "link": change([(Substring(String(decoding: record.bytes, as: UTF8.self)), node(record.path))])
        default:
            let new = Substring(String(decoding: record.bytes, as: UTF8.self))
            change([(record.path, nil), (new, node(record.path))])
        }
    }

    private func node(_ path: Substring) -> Node? {
        path.split(separator: "/").reduce(root) { $0?.content.names[String($1)] }
    }

    /// Changes the names of one folder at once.
    private func change(_ changes: [(path: Substring, node: Node?)]) {
        for (parent, changes) in Dictionary(grouping: changes, by: { $0.path.split(separator: "/").dropLast() }) {
            let names = changes.map { (String($0.path.split(separator: "/").last ?? ""), $0.node) }
            node(parent.joined(separator: "/")[...])?.apply(.names(names))
        }
    }
}
