import CCurl
import Foundation

/// A decoder of gzip (RFC 1952) that uses the system's zlib.
///
/// Detects a truncated body and a missing checksum, which libcurl accepts.
final class Inflater {
    enum Outcome {
        case fine
        /// The receiver of the decoded bytes stopped.
        case refused
        /// The bytes are not valid gzip data.
        case broken
    }

    /// A Boolean value that indicates whether the bytes so far end with the end of a member.
    private(set) var isComplete = false
    private(set) var hasBegun = false
    /// A Boolean value that indicates whether zeros follow the last member.
    ///
    /// Some programs write such padding. No further member can follow it.
    private var isPadded = false

    private let zlib: ccurl_zlib
    private let stream = UnsafeMutablePointer<ccurl_z_stream>.allocate(capacity: 1)
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

    /// 15 bits of window size, plus 16 for a gzip header and trailer.
    private static let gzip: Int32 = 15 + 16
    private static let streamEnd: Int32 = 1
    private static let needsMore: Int32 = -5

    /// - Returns: `nil` if zlib cannot allocate its state.
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

    /// Decodes bytes and passes the output to `take` in pieces, until it returns `false`.
    func inflate(_ input: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) -> Outcome {
        guard !input.isEmpty else { return .fine }
        hasBegun = true
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(clamping: input.count)
        defer { stream.pointee.next_in = nil }
        repeat {
            if isComplete {  // padding or another member follows
                isPadded = isPadded || stream.pointee.next_in?.pointee == 0
                if isPadded {
                    return input.suffix(Int(stream.pointee.avail_in)).allSatisfy { $0 == 0 } ? .fine : .broken
                }
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
