import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A file in the folder for temporary files, for the user alone (0600), that is removed at the end of its life.
final class TemporaryFile: Sendable {
    let url: URL

    private init(_ url: URL) {
        self.url = url
    }

    /// Writes a body into a new file, in pieces.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` where the body cannot be read or the file cannot be written; then nothing is left of it.
    static func holding(_ body: BodySource, in folder: URL = FileManager.default.temporaryDirectory) throws(WebServiceError) -> TemporaryFile {
        let name = "webservice-body-\(UUID().uuidString)"
        let url = folder.appendingPathComponent(name, isDirectory: false)
        let path = url.path
        let descriptor: Descriptor
        do throws(SystemFailure) {
            descriptor = try Descriptor("open") { open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        } catch {
            throw unwritten(error)
        }
        let file = TemporaryFile(url)
        let reader = BodyReader(body)
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { room.deallocate() }
        while true {
            let count = try reader.read(into: room)
            guard count > 0, let start = room.baseAddress else { break }
            do throws(SystemFailure) {
                try descriptor.append(Data(bytesNoCopy: start, count: count, deallocator: .none))
            } catch {
                throw unwritten(error)
            }
        }
        do throws(SystemFailure) {
            try descriptor.close()
        } catch {
            throw unwritten(error)
        }
        return file
    }

    /// The bytes, mapped into memory: they stay when the file goes.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` where the system does not map it.
    func mapped() throws(WebServiceError) -> Data {
        do {
            return try Data(contentsOf: url, options: .alwaysMapped)
        } catch {
            throw WebServiceError(.encoding, "the temporary file of the body cannot be read", underlying: error)
        }
    }

    private static func unwritten(_ failure: SystemFailure) -> WebServiceError {
        WebServiceError(.encoding, "the body cannot be written to a temporary file: \(failure.description)", underlying: failure)
    }

    deinit {
        unlink(url.path)
    }
}
