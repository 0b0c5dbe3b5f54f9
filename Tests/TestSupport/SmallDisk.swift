package import Foundation

/// A file system in memory, which only a privileged user can create. It is unmounted with the
/// object.
package final class SmallDisk {
    package let url: URL

    /// Whether the process can mount a file system.
    package static let canMount = SmallDisk(kilobytes: 64) != nil

    /// Returns `nil` without the permission to mount a file system.
    package init?(kilobytes: Int) {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("webservice-disk-\(UUID().uuidString)")
        #if os(Linux)
        guard mkdir(url.path, 0o700) == 0 else { return nil }
        if mount("tmpfs", url.path, "tmpfs", 0, "size=\(kilobytes)k") == 0 { return }
        rmdir(url.path)
        #endif
        return nil
    }

    deinit {
        #if os(Linux)
        umount2(url.path, Int32(MNT_DETACH))
        rmdir(url.path)
        #endif
    }

    /// Runs a test with a file system.
    package static func with(kilobytes: Int = 512, _ body: (URL) async throws -> Void) async throws {
        guard let disk = SmallDisk(kilobytes: kilobytes) else { throw POSIXError(.EPERM) }
        defer { withExtendedLifetime(disk) {} }
        try await body(disk.url)
    }
}
