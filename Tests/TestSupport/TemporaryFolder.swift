package import Foundation

/// A folder for the files of one test. It is removed with the object.
package final class TemporaryFolder: Sendable {
    package let url: URL

    /// Creates a folder. Without it, a test that writes a file fails.
    ///
    /// - Parameter inMemory: Whether the folder is in memory if the system supports it: for thousands
    ///   of databases.
    package init(inMemory: Bool = false) {
        let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
        let isThere = inMemory && FileManager.default.isWritableFile(atPath: memory.path)
        let parent = isThere ? memory : FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
        url = parent.appendingPathComponent("webservice-test-\(UUID().uuidString)", isDirectory: true)
        try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)  // see above
    }

    deinit {
        try? FileManager.default.removeItem(at: url)  // the test may have removed it
    }

    /// Writes a file and returns its URL.
    package func file(_ name: String, _ content: Data = Data()) throws -> URL {
        let file = url.appendingPathComponent(name)
        try content.write(to: file)
        return file
    }

    /// Creates a file of zeros that takes no space, and returns its URL.
    package func sparse(_ name: String, _ count: Int) throws -> URL {
        let file = try file(name)
        try FileHandle(forWritingTo: file).truncate(atOffset: UInt64(count))
        return file
    }
}

/// Runs a test with a temporary folder, which is removed at the end.
package func withScratchFolder<Result>(
    inMemory: Bool = false, _ body: (URL) async throws -> Result
) async throws -> Result {
    let folder = TemporaryFolder(inMemory: inMemory)
    defer { withExtendedLifetime(folder) {} }
    return try await body(folder.url)
}

/// Returns the names of the files in a folder, in order.
package func names(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
}

/// Returns the permissions of a file.
package func mode(of file: URL) throws -> Int? {
    try (FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber)?.intValue
}
