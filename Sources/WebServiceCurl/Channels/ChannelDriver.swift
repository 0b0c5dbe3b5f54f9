import CCurl
import Foundation
import WebServiceCore

/// The part of a ``CurlChannel`` that runs on the loop's thread. The driver connects with a libcurl
/// handle, then receives and sends bytes.
final class ChannelDriver {
    let channel: CurlChannel
    let handle: CurlHandle
    let queue: Admission<CurlChannel>.HostQueue
    /// The socket of the open connection; -1 while the connection is being established.
    private(set) var socket: Int32 = -1
    /// The number of times that the connection was established.
    private(set) var openingCount = 0
    /// The instant at which bytes were last sent or received.
    var lastActivity: UInt64
    /// The idle timeout of the request, which applies once the session is closed.
    let idleLimit: UInt64

    /// Whether the channel accepts bytes.
    private(set) var isReading = true
    /// The events to wait for before the next attempts to receive and to send. TLS may have to send
    /// before it can receive, and receive before it can send.
    private(set) var readEvent = Poller.Events.readable
    private(set) var writeEvent = Poller.Events.writable

    private var outgoing: Data?
    private var outgoingOffset = 0
    /// A copy of the outgoing bytes if there are at most 16, because `Data` does not store so few
    /// bytes at a constant address. OpenSSL requires the same address when the same bytes are
    /// passed again.
    private var fewBytes: UnsafeMutableRawPointer?

    /// The TLS connection that the peer must end with `close_notify`.
    private var closing: TLSClosing.Connection?

    private static let pieceSize = 64 << 10
    /// The number of pieces after which other connections are processed.
    private static let piecesPerTurn = 8

    init(_ channel: CurlChannel, _ handle: CurlHandle, _ queue: Admission<CurlChannel>.HostQueue, at now: UInt64) {
        self.channel = channel
        self.handle = handle
        self.queue = queue
        lastActivity = now
        idleLimit = UInt64(0).addingSaturated(max(channel.request.timeout, .milliseconds(1)))
    }

    /// The events to wait for.
    var events: Poller.Events {
        var events: Poller.Events = []
        if isReading { events.insert(readEvent) }
        if outgoing != nil { events.insert(writeEvent) }
        return events
    }

    // MARK: Opening and closing

    /// Begins to use the connection that libcurl has established.
    ///
    /// - Returns: `false` if libcurl has since closed the connection. Between the handle's
    ///   completion and the first call to receive, libcurl considers the connection idle, and it
    ///   discards an idle connection that has pending bytes.
    func open() throws -> Bool {
        openingCount += 1
        var found: curl_socket_t = CURL_SOCKET_BAD
        ccurl_get_socket(handle.easy, &found)
        guard found != CURL_SOCKET_BAD else { return false }
        socket = found
        handle.engine.connections.dedicate(socket)
        // From the first call on, libcurl considers the connection in use.
        let first = fill()
        if first.end == nil { closing = handle.engine.tlsClosing.watch(handle.easy) }
        channel.didOpen(handle.openingMetrics(for: channel.request))
        try deliver(first)
        // If no caller waits for bytes, the channel stores these and accepts no more.
        if isReading, first.isPartial { try receive() }
        return true
    }

    /// Removes the references to the connection.
    func clear() {
        if let closing { handle.engine.tlsClosing.forget(closing) }
        closing = nil
        fewBytes?.deallocate()
        fewBytes = nil
    }

    // MARK: Both directions

    /// Acts on events of the socket.
    func act(on events: Poller.Events) throws {
        let hasFailed = events.contains(.failed)
        if isReading, hasFailed || events.contains(readEvent) { try receive() }
        if outgoing != nil, hasFailed || events.contains(writeEvent) { send() }
    }

    /// Sends and receives as the channel's callers have requested.
    func proceed() throws {
        let mayRead = channel.proceed() && !isInputOver
        if outgoing == nil { send() }
        guard mayRead, !isReading else { return }
        isReading = true
        try receive()
    }

    private func error(_ code: CURLcode) -> any Error {
        let detail = String(cString: handle.detail)
        // libcurl has already removed the connection.
        if code == CURLE_UNSUPPORTED_PROTOCOL { return CurlError.error(.networkConnectionLost, detail) }
        return CurlError.error(code, detail)
    }

    // MARK: Receiving

    private struct Filling {
        var count = 0
        /// Whether more bytes may be pending.
        var isPartial = false
        var end: Result<Void, any Error>?
    }

    private var isInputOver = false

    /// Receives bytes into the buffer of the engine until it is full or none are pending.
    private func fill() -> Filling {
        let buffer = handle.engine.channelBuffer
        var filling = Filling()
        guard let start = buffer.baseAddress else { return filling }
        handle.detail.pointee = 0
        while filling.count < buffer.count {
            var count = 0
            let code = curl_easy_recv(handle.easy, start + filling.count, buffer.count - filling.count, &count)
            guard code == CURLE_OK, count > 0 else {
                if code == CURLE_OK {
                    filling.end = closure()
                } else if code == CURLE_AGAIN {
                    readEvent = handle.awaitedEvent ?? .readable
                } else {
                    filling.end = .failure(error(code))
                }
                return filling
            }
            filling.count += count
        }
        filling.isPartial = true
        return filling
    }

    private func closure() -> Result<Void, any Error> {
        guard let closing, !handle.engine.tlsClosing.isClosed(closing) else { return .success(()) }
        return .failure(
            CurlError.error(.networkConnectionLost, "the TLS connection ended without close_notify"))
    }

    /// Receives bytes until the channel accepts no more or none are pending.
    private func receive() throws {
        for _ in 0..<Self.piecesPerTurn {
            let filling = fill()
            try deliver(filling)
            guard isReading, filling.isPartial else { return }
        }
        // Bytes that the TLS library has decrypted cause no event.
        channel.schedule()
        isReading = false
    }

    private func deliver(_ filling: Filling) throws {
        if filling.count > 0, let start = handle.engine.channelBuffer.baseAddress {
            lastActivity = handle.engine.now
            isReading = channel.didReceive(Data(bytes: start, count: filling.count))
        }
        guard let end = filling.end else { return }
        isReading = false
        isInputOver = true
        try end.get()
        channel.inputDidEnd()
    }

    // MARK: Sending

    private func send() {
        for _ in 0..<Self.piecesPerTurn {
            if outgoing == nil { prepareNext() }
            guard let outgoing else { return }
            let length = min(outgoing.count - outgoingOffset, Self.pieceSize)
            var count = 0
            handle.detail.pointee = 0
            let code = outgoing.withUnsafeBytes { bytes in
                let start = fewBytes.map { UnsafeRawPointer($0) } ?? bytes.baseAddress
                return start.map { curl_easy_send(handle.easy, $0 + outgoingOffset, length, &count) } ?? CURLE_OK
            }
            guard code == CURLE_OK || code == CURLE_AGAIN else {
                clearOutgoing()
                channel.sendingDidFail(error(code))
                return
            }
            if count > 0 { lastActivity = handle.engine.now }
            outgoingOffset += count
            if outgoingOffset == outgoing.count {
                clearOutgoing()
                channel.didSend()
            } else if code == CURLE_AGAIN || count == 0 {
                writeEvent = handle.awaitedEvent ?? .writable
                return
            } else {
                writeEvent = .writable
            }
        }
        if outgoing == nil { channel.schedule() }
    }

    private func prepareNext() {
        outgoing = channel.nextOutgoing()
        guard let outgoing, outgoing.count <= 16 else { return }
        let copy = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 1)
        UnsafeMutableRawBufferPointer(start: copy, count: 16).copyBytes(from: outgoing)
        fewBytes = copy
    }

    private func clearOutgoing() {
        outgoing = nil
        outgoingOffset = 0
        fewBytes?.deallocate()
        fewBytes = nil
    }
}
