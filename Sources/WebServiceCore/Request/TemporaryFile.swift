import Foundation

/// Functions that write a body to an ``UnlinkedFile``, which exists until the bytes of the body are
/// released.
enum TemporaryFile {
    /// Writes a body to a new file in the folder for temporary files, in pieces, and maps it into
    /// memory.
    ///
    /// - Parameter isWanted: A closure that is called before each piece. If it returns `false`, the
    ///   function throws.
    /// - Throws: ``WebServiceError/Code/encoding`` if the body cannot be read or the file cannot be
    ///   written.
    static func mapping(
        _ body: BodySource, in folder: URL = FileManager.default.temporaryDirectory,
        while isWanted: () -> Bool = { true }
    ) throws(WebServiceError) -> Data {
        do {
            let file = try UnlinkedFile(in: folder)
            guard try body.write(to: file.descriptor, while: isWanted) else {
                throw WebServiceError(.encoding, "the request was cancelled while its body was being written")
            }
            return try mapping(file, count: body.count)
        } catch {
            let complaint = "the body could not be written to a temporary file"
            if let failure = error as? SystemFailure { throw failure.error(.encoding, complaint) }
            throw error as? WebServiceError
                ?? WebServiceError(.encoding, "\(complaint); see the underlying error", underlying: error)
        }
    }

    /// Returns the bytes of a file, which remains mapped into memory until the bytes are released.
    ///
    /// - Parameter count: The size of the file, greater than 0.
    static func mapping(_ file: UnlinkedFile, count: Int) throws(SystemFailure) -> Data {
        let address = try system("mmap") {
            Int(bitPattern: mmap(nil, count, PROT_READ, MAP_PRIVATE, file.descriptor.number, 0))
        }
        guard let start = UnsafeMutableRawPointer(bitPattern: address) else {
            throw SystemFailure(call: "mmap", number: ENOMEM)
        }
        return Data(bytesNoCopy: start, count: count, deallocator: .unmap)
    }
}

extension BodySource {
    /// Appends the body to a file, in pieces of 256 KiB.
    ///
    /// - Parameter isWanted: A closure that is called before each piece.
    /// - Returns: `false` if `isWanted` has returned `false` before the end.
    /// - Throws: ``WebServiceError/Code/encoding`` if the body cannot be read, and
    ///   ``SystemFailure`` if the file cannot be written.
    package func write(to file: borrowing Descriptor, while isWanted: () -> Bool) throws -> Bool {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { room.deallocate() }
        let reader = BodyReader(self)
        while isWanted(), case let count = try reader.read(into: room), count > 0, let start = room.baseAddress {
            try file.append(Data(bytesNoCopy: start, count: count, deallocator: .none))
        }
        return reader.offset == count
    }
}
