import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A body in a file with access for the user only (0600). Its name is removed before the first byte
/// is written, so the system deletes the file when its bytes are released, even if the process is
/// terminated.
enum TemporaryFile {
    /// Writes a body to a new file in the folder for temporary files, in pieces, and maps it into
    /// memory.
    ///
    /// - Parameter isWanted: Called before each piece. The function throws when it returns `false`.
    /// - Throws: ``WebServiceError/Code/encoding`` if the body cannot be read or the file cannot be
    ///   written.
    static func mapping(
        _ body: BodySource, in folder: URL = FileManager.default.temporaryDirectory,
        while isWanted: () -> Bool = { true }
    ) throws(WebServiceError) -> Data {
        let path = folder.appendingPathComponent("webservice-body-\(UUID().uuidString)", isDirectory: false).path
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { room.deallocate() }
        do {
            let descriptor = try Descriptor("open") {
                open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            }
            try system("unlink") { unlink(path) }
            let reader = BodyReader(body)
            while isWanted(), case let count = try reader.read(into: room), count > 0, let start = room.baseAddress {
                try descriptor.append(Data(bytesNoCopy: start, count: count, deallocator: .none))
            }
            guard reader.offset == body.count else {
                throw WebServiceError(.encoding, "the request was cancelled while its body was being written")
            }
            let address = try system("mmap") {
                Int(bitPattern: mmap(nil, body.count, PROT_READ, MAP_PRIVATE, descriptor.number, 0))
            }
            guard let start = UnsafeMutableRawPointer(bitPattern: address) else {
                throw SystemFailure(call: "mmap", number: ENOMEM)
            }
            let bytes = Data(bytesNoCopy: start, count: body.count, deallocator: .unmap)
            try descriptor.close()
            return bytes
        } catch {
            let complaint = "the body cannot be written to a temporary file"
            if let failure = error as? SystemFailure { throw failure.error(.encoding, complaint) }
            throw error as? WebServiceError ?? WebServiceError(.encoding, complaint, underlying: error)
        }
    }
}
