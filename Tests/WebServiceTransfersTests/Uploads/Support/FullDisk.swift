#if os(Linux)
import Foundation

/// Faults of a mounted file system.
enum FullDisk {
    /// Writes a file until the file system is full.
    static func fill(_ file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        defer { try? handle.close() }
        while (try? handle.write(contentsOf: Data(count: 4_096))) != nil {}
    }

    /// - Returns: Whether the file system is now read-only.
    static func makeReadOnly(_ disk: URL) -> Bool {
        mount("tmpfs", disk.path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0
    }
}
#endif
