import CCurl
import Foundation
import WebServiceCore

/// A response that the system has received but libcurl has not read. It is confined to the loop's
/// thread.
///
/// A server may respond and close the connection before it has read the request body (RFC 9112,
/// section 9.5). As soon as the system rejects a byte of such a request, libcurl closes the
/// connection without reading the response.
final class UnreadResponse {
    private enum Phase {
        case head
        /// The number of bytes that follow; `nil` if the body ends with the connection.
        ///
        /// Such a body is never complete, because a failed write implies a reset.
        case body(Int64?)
        case chunkSize
        case chunk(Int64)
        case trailer
        case complete
    }

    /// The result of libcurl.
    var code = CURLE_OK
    private var bytes: [UInt8] = []
    private var position = 0
    private var phase = Phase.head

    /// The maximum number of bytes, which exceeds the default receive buffer of a socket.
    private static let maximumBytes = 16 << 20

    /// Reads the bytes that a socket holds.
    ///
    /// - Returns: `nil` unless the bytes begin with a status line. Any other bytes would be the
    ///   rest of a line that libcurl has already read in part.
    init?(_ socket: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { room in
            while bytes.count < Self.maximumBytes {
                let count = recv(socket, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                bytes.append(contentsOf: room[..<count])
            }
        }
        guard bytes.starts(with: "HTTP/1.".utf8) else { return nil }
    }

    var count: Int { bytes.count }
    var isComplete: Bool { if case .complete = phase { true } else { false } }

    /// Delivers the response up to its end, an error or a pause.
    ///
    /// - Returns: `false` if the receiver has paused.
    func deliver(to handle: CurlHandle) -> Bool {
        while true {
            switch phase {
            case .head:
                guard let line = takeLine() else { return true }
                guard !bytes[line].contains(0) else { return reject(handle, "the response header contains NUL") }
                guard pass(line, to: handle.receiveHead) else { return true }
                guard handle.head.isComplete else { continue }
                phase = handle.head.isChunked ? .chunkSize : .body(handle.head.bodyLength)
            case .body(let length):
                if length == 0 {
                    phase = .complete
                    return true
                }
                guard let count = takeBody(length, handle) else { return !handle.attempt.isPaused }
                phase = .body(length.map { $0 - count })
            case .chunkSize:
                guard let line = takeLine() else { return true }
                guard let size = Self.chunkSize(bytes[line]) else {
                    return reject(handle, "the response has a malformed chunk")
                }
                phase = size == 0 ? .trailer : .chunk(size)
            case .chunk(0):
                guard position + 2 <= bytes.count else { return true }
                guard bytes[position] == 0x0D, bytes[position + 1] == 0x0A else {
                    return reject(handle, "the response has a malformed chunk")
                }
                position += 2
                phase = .chunkSize
            case .chunk(let size):
                guard let count = takeBody(size, handle) else { return !handle.attempt.isPaused }
                phase = .chunk(size - count)
            case .trailer:
                guard let line = takeLine(), pass(line, to: handle.receiveHead) else { return true }
                if bytes[line].first == 0x0D || bytes[line].first == 0x0A { phase = .complete }
            case .complete: return true
            }
        }
    }

    /// Removes and returns the next line with its line break; `nil` if it is incomplete.
    private func takeLine() -> Range<Int>? {
        guard let end = bytes[position...].firstIndex(of: 0x0A) else { return nil }
        defer { position = end + 1 }
        return position..<(end + 1)
    }

    /// Delivers bytes of the body.
    ///
    /// - Returns: The number of bytes; `nil` if there are none or the receiver has not taken them.
    private func takeBody(_ length: Int64?, _ handle: CurlHandle) -> Int64? {
        let count = Int(min(Int64(min(bytes.count - position, 64 << 10)), length ?? .max))
        guard count > 0, pass(position..<(position + count), to: { handle.receiveBody($0) == count }) else {
            return nil
        }
        position += count
        return Int64(count)
    }

    private func pass(_ range: Range<Int>, to receive: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        bytes.withUnsafeBytes { receive(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    private func reject(_ handle: CurlHandle, _ reason: String) -> Bool {
        handle.attempt.failure = CurlError.error(.badServerResponse, reason)
        return true
    }

    /// Returns the size in the line before a chunk (RFC 9112, section 7.1). As in libcurl, any
    /// bytes after the size are ignored, not only chunk extensions.
    private static func chunkSize(_ line: ArraySlice<UInt8>) -> Int64? {
        let digits = line.prefix { $0 < 128 && Character(Unicode.Scalar($0)).isHexDigit }
        return Int64(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
