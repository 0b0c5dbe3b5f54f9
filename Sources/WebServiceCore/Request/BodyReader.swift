import Foundation

/// An object that reads a ``BodySource`` from beginning to end, and again if the body must be
/// resent. At most one file is open at a time. The file is closed when the reader is deallocated,
/// if not earlier.
package final class BodyReader {
    package let source: BodySource
    /// The offset of the next byte to read.
    package private(set) var offset = 0

    /// The piece that contains the next byte, and the offset within it.
    private var index = 0
    private var place = 0
    private var file: OpenFile?

    package init(_ source: BodySource) {
        self.source = source
    }

    /// Reads the next bytes.
    ///
    /// - Returns: The number of bytes read; 0 at the end or if the buffer is empty.
    /// - Throws: ``WebServiceError/Code/encoding`` for a file that cannot be read or has changed
    ///   since the request was encoded. Bytes that are read after such a change are not returned.
    package func read(into room: UnsafeMutableRawBufferPointer) throws(WebServiceError) -> Int {
        guard let start = room.baseAddress else { return 0 }
        var filled = 0
        while filled < room.count, index < source.pieces.count {
            let piece = source.pieces[index]
            let count = min(room.count - filled, piece.count - place)
            switch piece {
            case .bytes(let data):
                let rest = data.dropFirst(place).prefix(count)
                rest.copyBytes(to: UnsafeMutableRawBufferPointer(start: start + filled, count: count))
            case .file(let described):
                try open(described).read(UnsafeMutableRawBufferPointer(start: start + filled, count: count), at: place)
            }
            filled += count
            offset += count
            place += count
            if place == piece.count { next() }
        }
        return filled
    }

    private func open(_ described: BodySource.File) throws(WebServiceError) -> OpenFile {
        if let file { return file }
        let opened = try OpenFile(described)
        file = opened
        return opened
    }

    private func next() {
        index += 1
        place = 0
        file = nil
    }

    /// Sets the offset of the next byte. An offset beyond the end counts as the end.
    package func seek(to offset: Int) {
        (index, place, file) = (0, 0, nil)
        self.offset = min(max(0, offset), source.count)
        place = self.offset
        while index < source.pieces.count, place >= source.pieces[index].count {
            place -= source.pieces[index].count
            index += 1
        }
    }
}

/// A regular file that is open for reading.
private final class OpenFile {
    private let descriptor: Descriptor
    private let described: BodySource.File

    init(_ described: BodySource.File) throws(WebServiceError) {
        self.described = described
        do throws(SystemFailure) {
            descriptor = try BodySource.File.open(described.path)
        } catch {
            throw BodySource.File.unreadable(described.owner, described.path, error)
        }
        try check()
    }

    /// Fills the buffer.
    func read(_ room: UnsafeMutableRawBufferPointer, at offset: Int) throws(WebServiceError) {
        let isWhole = try readable { () throws(SystemFailure) in
            try descriptor.fill(room, at: Int64(offset)) == room.count
        }
        guard isWhole else { throw changed }
        try check()
    }

    private func check() throws(WebServiceError) {
        let status = try readable { () throws(SystemFailure) in try descriptor.status() }
        guard status == described.status else { throw changed }
    }

    private func readable<Value>(_ read: () throws(SystemFailure) -> Value) throws(WebServiceError) -> Value {
        do throws(SystemFailure) {
            return try read()
        } catch {
            throw BodySource.File.unreadable(described.owner, described.path, error)
        }
    }

    private var changed: WebServiceError {
        WebServiceError(
            .encoding,
            "the file '\(described.path.escapingControls)' of \(described.owner) changed after the request was encoded"
                + "; send the request again when the file is complete")
    }
}

extension BodySource.File {
    /// Creates the description of a file that is to be sent.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` if the URL is not a file URL, or the file cannot
    ///   be opened or is not a regular file.
    init(_ url: URL, owner: String) throws(WebServiceError) {
        let path = url.path
        guard url.isFileURL, path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw WebServiceError(
                .encoding, "\(owner) has a URL that is not a file URL; use URL(fileURLWithPath:)")
        }
        let status: FileStatus
        let unannounced: Data
        do throws(SystemFailure) {
            let descriptor = try Self.open(path)
            status = try descriptor.status()
            unannounced = status.isRegular && status.size == 0 ? try descriptor.content(count: 1) : Data()
        } catch {
            throw Self.unreadable(owner, path, error)
        }
        // Files that the system generates while they are read, such as those in `/proc`, are
        // reported as regular files of size 0.
        guard status.isRegular, unannounced.isEmpty else {
            let kind = status.isFolder ? "a folder" : "not a regular file"
            throw WebServiceError(
                .encoding,
                "the file '\(path.escapingControls)' of \(owner) is \(kind); pass a regular file or a stream")
        }
        self.init(path: path, owner: owner, status: status)
    }

    /// Opens the file without waiting for the writer of a FIFO.
    fileprivate static func open(_ path: String) throws(SystemFailure) -> Descriptor {
        try Descriptor("open") { systemOpen(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
    }

    fileprivate static func unreadable(_ owner: String, _ path: String, _ failure: SystemFailure) -> WebServiceError {
        failure.error(.encoding, "the file '\(path.escapingControls)' of \(owner) could not be read")
    }
}

/// `open`, for use where a member shadows the function.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
    open(path, flags)
}
