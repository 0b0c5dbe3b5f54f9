import CCurl
import Foundation

/// Decodes gzip (RFC 1952) with the system's zlib, to the end: libcurl takes a body for whole that is cut short or lacks its checksum.
final class Inflater {
    enum Outcome {
        case fine
        /// Whoever takes the bytes wants no more.
        case refused
        /// The bytes are no gzip.
        case broken
    }

    /// Whether the bytes so far end with the end of a member, so that nothing is missing.
    private(set) var isComplete = false
    private(set) var hasBegun = false
    /// Whether zeros follow the last member, as some programs write them; no member can follow those.
    private var isPadded = false

    private let zlib: ccurl_zlib
    private let stream = UnsafeMutablePointer<ccurl_z_stream>.allocate(capacity: 1)
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

    /// 15 bits of window, and 16 for a gzip header and trailer.
    private static let gzip: Int32 = 15 + 16
    private static let streamEnd: Int32 = 1
    private static let needsMore: Int32 = -5

    /// - Returns: `nil` where zlib has no memory for it.
    init?(_ zlib: ccurl_zlib) {
        self.zlib = zlib
        stream.initialize(to: ccurl_z_stream())
        guard zlib.inflateInit2_(stream, Self.gzip, "1.2.3", Int32(MemoryLayout<ccurl_z_stream>.size)) == 0 else {
            free(isOpen: false)
            return nil
        }
    }

    deinit {
        free(isOpen: true)
    }

    private func free(isOpen: Bool) {
        if isOpen { _ = zlib.inflateEnd(stream) }
        stream.deallocate()
        room.deallocate()
    }

    /// Decodes the next bytes and hands over what they give, piece by piece, until `take` returns `false`.
    func inflate(_ input: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) -> Outcome {
        guard !input.isEmpty else { return .fine }
        hasBegun = true
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(clamping: input.count)
        defer { stream.pointee.next_in = nil }
        repeat {
            if isComplete {  // padding or another member follows
                isPadded = isPadded || stream.pointee.next_in?.pointee == 0
                if isPadded { return input.suffix(Int(stream.pointee.avail_in)).allSatisfy { $0 == 0 } ? .fine : .broken }
                guard zlib.inflateReset(stream) == 0 else { return .broken }
                isComplete = false
            }
            stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(room.count)
            let result = zlib.inflate(stream, 0)
            let count = room.count - Int(stream.pointee.avail_out)
            if count > 0, !take(UnsafeRawBufferPointer(rebasing: room[..<count])) { return .refused }
            switch result {
            case 0: break
            case Self.streamEnd: isComplete = true
            case Self.needsMore: return .fine
            default: return .broken
            }
        } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0 && !isComplete
        return .fine
    }
}
