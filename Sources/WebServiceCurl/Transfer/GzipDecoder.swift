import CCurl
import Foundation
import WebServiceCore

/// A decoder of gzip (RFC 1952) that uses the system's zlib.
///
/// It rejects a truncated body and a missing checksum, which libcurl accepts.
final class GzipDecoder: ContentDecoder {
    private let stream: Mutex<GzipStream>

    /// - Returns: `nil` if zlib cannot allocate its state.
    init?(_ zlib: ccurl_zlib) {
        guard let stream = GzipStream(zlib) else { return nil }
        self.stream = Mutex(stream)
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        try stream.withLock { try $0.decodeBytes(bytes, limit: limit, append: append) }
    }

    func finish() throws {
        let isTruncated = stream.withLock { $0.hasBegun && !$0.isComplete }
        if isTruncated { throw CurlError.error(.cannotDecodeContentData, "the gzip body is truncated") }
    }
}

/// The state of zlib for one body.
///
/// @unchecked: its memory is owned by this value alone.
struct GzipStream: ~Copyable, @unchecked Sendable {
    /// A Boolean value that indicates whether the bytes so far end at the end of a member.
    private(set) var isComplete = false
    private(set) var hasBegun = false
    /// A Boolean value that indicates whether zeros follow the last member.
    ///
    /// Some programs write such padding. No member can follow it.
    private var isPadded = false

    /// A Boolean value that indicates whether zlib holds output of the bytes so far.
    private var hasPendingOutput = false

    private let zlib: ccurl_zlib
    private let stream = UnsafeMutablePointer<ccurl_z_stream>.allocate(capacity: 1)
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)
    private let isOpen: Bool

    /// 15 bits of window size, plus 16 for a gzip header and trailer.
    private static let gzip: Int32 = 15 + 16
    private static let streamEnd: Int32 = 1
    private static let needsMore: Int32 = -5

    /// - Returns: `nil` if zlib cannot allocate its state.
    init?(_ zlib: ccurl_zlib) {
        self.zlib = zlib
        stream.initialize(to: ccurl_z_stream())
        isOpen = zlib.inflateInit2_(stream, Self.gzip, "1.2.3", Int32(MemoryLayout<ccurl_z_stream>.size)) == 0
        if !isOpen { return nil }
    }

    deinit {
        if isOpen { _ = zlib.inflateEnd(stream) }
        stream.deallocate()
        room.deallocate()
    }

    /// Decodes bytes as ``ContentDecoder/decodeBytes(_:limit:append:)`` specifies.
    mutating func decodeBytes(
        _ input: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        guard !input.isEmpty || hasPendingOutput else { return 0 }
        hasBegun = true
        hasPendingOutput = false
        let input = UnsafeRawBufferPointer(rebasing: input.prefix(Int(UInt32.max)))
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(input.count)
        defer { stream.pointee.next_in = nil }
        var decoded = 0
        repeat {
            if isComplete {  // padding or another member follows
                isPadded = isPadded || stream.pointee.next_in?.pointee == 0
                if isPadded {
                    guard input.suffix(Int(stream.pointee.avail_in)).allSatisfy({ $0 == 0 }) else { throw Self.error }
                    return input.count
                }
                guard zlib.inflateReset(stream) == 0 else { throw Self.error }
                isComplete = false
            }
            stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(room.count)
            let result = zlib.inflate(stream, 0)
            let count = room.count - Int(stream.pointee.avail_out)
            if count > 0 { try append(UnsafeRawBufferPointer(rebasing: room[..<count])) }
            decoded += count
            switch result {
            case 0: break
            case Self.streamEnd: isComplete = true
            case Self.needsMore: return input.count
            default: throw Self.error
            }
        } while decoded < limit
            && (stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0 && !isComplete)
        hasPendingOutput = stream.pointee.avail_out == 0 && !isComplete
        return input.count - Int(stream.pointee.avail_in)
    }

    private static var error: URLError {
        CurlError.error(.cannotDecodeContentData, "the body is not valid gzip data")
    }
}
