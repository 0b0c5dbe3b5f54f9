import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A temporary file without a name, accessible only to its owner (mode 0600).
///
/// The system deletes the file when it is closed, even if the process is terminated.
final class UnlinkedFile: Sendable {
    let descriptor: Descriptor

    init(in folder: URL = FileManager.default.temporaryDirectory) throws(SystemFailure) {
        let path = folder.appendingPathComponent("webservice-body-\(UUID().uuidString)", isDirectory: false).path
        descriptor = try Descriptor("open") {
            open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        try system("unlink") { unlink(path) }
    }
}
