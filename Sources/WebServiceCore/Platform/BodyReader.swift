import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Reads a ``BodySource`` from its beginning to its end, and again where it has to be sent again. At most one file is open at a time, and closed with the
/// reader at the latest.
package final class BodyReader {
    package let source: BodySource
    /// How many bytes lie before the next one to be read.
    package private(set) var offset = 0

    /// The piece that holds the next byte, and where in it.
    private var index = 0
    private var place = 0
    private var file: OpenFile?

    package init(_ source: BodySource) {
        self.source = source
    }

    /// Reads what comes next.
    ///
    /// - Returns: How many bytes were read; 0 at the end, and where there is no room.
    /// - Throws: ``WebServiceError/Code/encoding`` for a file that cannot be read or is no longer what it was when the request was encoded. No byte that
    ///   was read after such a change is handed out.
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

    /// Makes the byte at `offset` the next one; one behind the end means the end.
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

/// A regular file that is open to be read.
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

    /// Fills the room.
    func read(_ room: UnsafeMutableRawBufferPointer, at offset: Int) throws(WebServiceError) {
        var filled = 0
        while filled < room.count, let start = room.baseAddress {
            let more: Int
            do throws(SystemFailure) {
                more = try system("pread") { pread(descriptor.number, start + filled, min(room.count - filled, 1 << 30), off_t(offset + filled)) }
            } catch {
                throw BodySource.File.unreadable(described.owner, described.path, error)
            }
            guard more > 0 else { throw changed }
            filled += more
        }
        try check()
    }

    private func check() throws(WebServiceError) {
        let status: FileStatus
        do throws(SystemFailure) {
            status = try descriptor.status()
        } catch {
            throw BodySource.File.unreadable(described.owner, described.path, error)
        }
        guard status == described.status else { throw changed }
    }

    private var changed: WebServiceError {
        WebServiceError(
            .encoding, "\(described.owner) has the file '\(described.path.escapingControls)', which was changed after the request was encoded")
    }
}

extension BodySource.File {
    /// Looks at a file that is to be sent.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` where it cannot be opened or is no regular file.
    init(_ path: String, owner: String) throws(WebServiceError) {
        let status: FileStatus
        let unannounced: Data
        do throws(SystemFailure) {
            let descriptor = try Self.open(path)
            status = try descriptor.status()
            unannounced = status.isRegular && status.size == 0 ? try descriptor.content(count: 1) : Data()
        } catch {
            throw Self.unreadable(owner, path, error)
        }
        // What the system makes up while it is read, as in `/proc`, is called a regular file of no size.
        guard status.isRegular, unannounced.isEmpty else {
            throw WebServiceError(
                .encoding, "\(owner) has the file '\(path.escapingControls)', which is \(status.isFolder ? "a folder" : "no regular file")")
        }
        self.init(path: path, owner: owner, status: status)
    }

    /// No FIFO is waited for.
    fileprivate static func open(_ path: String) throws(SystemFailure) -> Descriptor {
        try Descriptor("open") { systemOpen(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
    }

    fileprivate static func unreadable(_ owner: String, _ path: String, _ failure: SystemFailure) -> WebServiceError {
        WebServiceError(
            .encoding, "\(owner) has the file '\(path.escapingControls)', which cannot be read: \(failure.description)", underlying: failure)
    }
}

/// `open`, where a member hides its name.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
    open(path, flags)
}
