import CCurl
import Foundation
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What runs on the thread of a loop: libcurl's multi interface, driven by the events of its sockets. Nobody else touches it.
final class CurlEngine {
    /// Nanoseconds of the clock, read once for each turn of the loop.
    private(set) var now = TaskClock.system.now

    /// What decodes gzip; `nil` where there is no zlib, and libcurl does it.
    let zlib: ccurl_zlib?

    /// The TLS connections whose end is the end of a body.
    let closing = TLSClosing()

    private let configuration: CurlSession.Configuration
    private let share: UnsafeMutableRawPointer
    private var multi: UnsafeMutableRawPointer
    private var poller: Poller
    private var admission: Admission<CurlTransfer>
    private var busy: [CurlHandle] = []
    private var free: [CurlHandle] = []
    private var connections = Connections()
    private let tls = ccurl_load_tls()
    /// What ended in this turn, and whom to tell.
    private var ended: [Ended] = []
    /// The handles of those that libcurl is done with.
    private var done: [CurlHandle] = []

    private struct Ended {
        let transfer: CurlTransfer
        let result: Result<Response, any Error>
        let metrics: TransportMetrics
    }
    /// When libcurl wants to be called without an event.
    private var curlMoment: UInt64?
    /// When to look for exchanges on which no byte has moved for too long.
    private var silenceMoment = UInt64.max
    /// When connections that nobody uses have been kept long enough.
    private var restMoment = UInt64.max

    /// - Throws: `WebServiceError.Code.curl`.
    init(_ configuration: CurlSession.Configuration, wakeUp: Int32) throws {
        self.configuration = configuration
        guard Self.isLibraryReady else { throw WebServiceError(.curl, "libcurl cannot be initialised") }
        poller = try Poller(wakeUp: wakeUp)
        guard let share = curl_share_init(), let multi = curl_multi_init() else { throw WebServiceError(.curl, "libcurl has no memory for a loop") }
        ccurl_share_tls_sessions(share)
        self.share = share
        zlib = withUnsafeTemporaryAllocation(of: ccurl_zlib.self, capacity: 1) { place in
            place.baseAddress.flatMap { ccurl_load_zlib($0) == 1 ? $0.pointee : nil }
        }
        self.multi = multi
        admission = Admission(maximumPerHost: max(1, configuration.maximumConnectionsPerHost), maximum: max(1, configuration.maximumConnections))
        configureMulti()
        do {
            // What the configuration asks for and libcurl cannot do is told before the first request.
            free.append(try CurlHandle(self, configuration, share: share))
        } catch {
            curl_multi_cleanup(multi)
            curl_share_cleanup(share)
            throw error
        }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private func configureMulti() {
        ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, max(1, configuration.maximumConnectionsPerHost))
        ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, max(1, configuration.maximumConnections))
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, max(1, configuration.maximumIdleConnections))
        ccurl_multi_set_callbacks(
            multi, { _, socket, what, context, _ in CurlEngine.from(context).watch(socket, what) },
            { _, milliseconds, context in CurlEngine.from(context).setTimer(milliseconds) }, Unmanaged.passUnretained(self).toOpaque()
        )
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> CurlEngine {
        // libcurl hands back what it was given; the engine outlives its handles and connections.
        Unmanaged<CurlEngine>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    // MARK: The loop

    /// Runs until the loop is asked to end and nothing is under way any more.
    func run(for loop: CurlLoop) {
        blockSignals()
        var closing: CurlSession.Closing?
        while true {
            let work = loop.takeWork()
            for transfer in work.submissions {
                if let host = transfer.submission?.request.host { admission.enter(transfer, to: host) }  // `nil` where it was cancelled
            }
            for transfer in work.cancellations { cancel(transfer) }
            if let wanted = work.closing { closing = wanted }
            if closing == .cancelling { cancelAll() }
            startAdmitted()
            collect()
            if closing != nil, admission.isEmpty { break }
            // What has arrived by then is received below, however late this thread comes to it.
            let start = TaskClock.system.now
            let count = poller.wait(milliseconds: loop.mayRest() ? patience(start) : 0)
            now = TaskClock.system.now
            for index in 0..<count {
                switch poller.event(index) {
                case .wakeUp: loop.clearSignals()
                case .ready(let socket, let events): act(socket, events)
                case .stray(let socket): if let connection = connections[socket], connection.isResting { connection.giveUp() }
                case .outdated: break
                }
            }
            if let moment = curlMoment, moment <= now { actOnTime() }
            if silenceMoment <= start { endSilent(start) }
            collect()
            if restMoment <= now { closeConnections() }
        }
        for handle in free { handle.free() }
        curl_multi_cleanup(multi)
        curl_share_cleanup(share)
        for transfer in loop.hasEnded().submissions { transfer.finish(.failure(URLError(.cancelled)), nil) }
    }

    /// Signals are for threads of the program's own.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
    }

    /// How long to wait for events, in milliseconds; -1 is for ever.
    private func patience(_ current: UInt64) -> Int32 {
        let moment = min(curlMoment ?? .max, silenceMoment, restMoment)
        if moment == .max { return -1 }
        return moment <= current ? 0 : Int32(clamping: (moment - current + 999_999) / 1_000_000)
    }

    // MARK: Transfers

    private func startAdmitted() {
        var hasStarted = false
        while let (transfer, line) = admission.next() {
            guard let submission = transfer.submission else {  // cancelled while it waited
                admission.leave(line)
                continue
            }
            do {
                let handle = try free.popLast() ?? CurlHandle(self, configuration, share: share)
                do {
                    try begin(handle, CurlHandle.Exchange(submission: submission, line: line))
                    hasStarted = true
                } catch {
                    _ = handle.end()
                    free.append(handle)
                    throw error
                }
            } catch {
                admission.leave(line)
                transfer.finish(.failure(error), nil)
            }
        }
        if hasStarted { actOnTime() }
    }

    private func begin(_ handle: CurlHandle, _ exchange: CurlHandle.Exchange) throws {
        // Read anew: the loop's own moment may lie before the one in which the request came, and its limit must not end it early.
        let start = TaskClock.system.now
        try handle.begin(exchange, connectTimeout: configuration.connectTimeout, at: start)
        let code = curl_multi_add_handle(multi, handle.easy)
        guard code == CURLM_OK else {
            throw WebServiceError(.curl, "libcurl does not take the request: \(String(cString: curl_multi_strerror(code)))")
        }
        handle.place = busy.count
        busy.append(handle)
        restMoment = .max
        silenceMoment = min(silenceMoment, start &+ handle.idleLimit)
    }

    /// Takes the handles that libcurl is done with, and starts what waited for them, until nothing is done any more: a server may answer at once.
    private func collect() {
        repeat {
            takeMessages()
        } while tell()
    }

    private func takeMessages() {
        var remaining: CInt = 0
        while let message = curl_multi_info_read(multi, &remaining) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            var context: UnsafeMutableRawPointer?
            ccurl_get_pointer(easy, CURLINFO_PRIVATE, &context)
            let handle = CurlHandle.from(context)
            guard let transfer = handle.exchange?.submission.transfer else { continue }
            let code = ccurl_message_result(message)
            if handle.mustBeginAgain {
                handle.beginAgain()
                curl_multi_remove_handle(multi, easy)
                if curl_multi_add_handle(multi, easy) == CURLM_OK { continue }
            }
            let result = handle.result(code)
            ended.append(Ended(transfer: transfer, result: result, metrics: handle.metrics()))
            done.append(handle)
        }
    }

    /// Tells whoever waits for the exchanges that ended, all in a row, because waking other threads once is cheaper than once for each; and cleans up while they
    /// wake.
    ///
    /// - Returns: Whether anything had ended, so that others may have begun.
    private func tell() -> Bool {
        guard !ended.isEmpty else { return false }
        HandlerPool.shared.together {
            for end in ended { end.transfer.finish(end.result, end.metrics) }
        }
        ended.removeAll(keepingCapacity: true)
        for handle in done { release(handle) }
        done.removeAll(keepingCapacity: true)
        startAdmitted()
        return true
    }

    /// Ends an exchange that libcurl is not done with.
    private func end(_ handle: CurlHandle, _ error: any Error) {
        guard let transfer = handle.exchange?.submission.transfer else { return }
        ended.append(Ended(transfer: transfer, result: .failure(error), metrics: handle.metrics()))
        release(handle)
    }

    /// Takes a handle from libcurl; it is free for the next exchange.
    private func release(_ handle: CurlHandle) {
        if handle.isHTTP2 { handle.exchange?.line.isMultiplexed = true }
        curl_multi_remove_handle(multi, handle.easy)
        if let last = busy.popLast(), last !== handle {
            busy[handle.place] = last
            last.place = handle.place
        }
        if let exchange = handle.end() { admission.leave(exchange.line) }
        if free.count < 128, !handle.isWorn { free.append(handle) } else { handle.free() }
        if busy.isEmpty, connections.count > 0 { restMoment = now.addingSaturated(configuration.idleConnectionLifetime) }
    }

    private func cancel(_ transfer: CurlTransfer) {
        if let handle = busy.first(where: { $0.exchange?.submission.transfer === transfer }) {
            end(handle, URLError(.cancelled))
        } else {
            transfer.finish(.failure(URLError(.cancelled)), nil)
        }
    }

    private func cancelAll() {
        for transfer in admission.removeWaiting() { transfer.finish(.failure(URLError(.cancelled)), nil) }
        while let handle = busy.last { end(handle, URLError(.cancelled)) }
    }

    /// Ends the exchanges on which no byte has moved for too long, and works out when to look again.
    private func endSilent(_ start: UInt64) {
        silenceMoment = .max
        for handle in busy {
            let limit = handle.lastActivity &+ handle.idleLimit
            if limit <= start {
                // Other exchanges keep a connection of HTTP/2 open, and libcurl would send new ones on it without end. Where nothing at all has arrived, they
                // end, or begin again, with the connection.
                handle.forbidReuse()
                if let connection = handle.connection, connection.isSilent(since: start - handle.idleLimit) { connection.giveUp() }
                let text = "no byte came for \(Double(handle.idleLimit) / 1e9) s"
                end(handle, CurlError.error(.timedOut, text))
            } else {
                silenceMoment = min(silenceMoment, limit)
            }
        }
    }

    /// Closes the connections when none has been used for long enough: libcurl itself only looks at them when it needs one.
    /// Only the end of a multi handle closes them at once, and it drops the cache of parsed certificates as well.
    private func closeConnections() {
        restMoment = .max
        guard busy.isEmpty, let fresh = curl_multi_init() else { return }
        curl_multi_cleanup(multi)
        multi = fresh
        curlMoment = nil
        configureMulti()
    }

    // MARK: Events

    private func act(_ socket: Int32, _ events: Poller.Events) {
        var mask: CInt = 0
        if events.contains(.readable) { mask |= CInt(CURL_CSELECT_IN) }
        if events.contains(.writable) { mask |= CInt(CURL_CSELECT_OUT) }
        if events.contains(.failed) { mask |= CInt(CURL_CSELECT_ERR) }
        if events.contains(.readable) { connections[socket]?.receive(at: now) }
        var running: CInt = 0
        curl_multi_socket_action(multi, socket, mask, &running)
    }

    /// The connection with these ends; `nil` where it is not known.
    func connection(_ ends: Connections.Ends) -> Connections.Connection? { connections.connection(ends) }

    /// Whether the TLS library has bytes of the connection that an exchange is about to use.
    func hasDecryptedBytes(_ handle: CurlHandle) -> Bool { ccurl_tls_has_pending(handle.easy, tls) != 0 }

    private func actOnTime() {
        curlMoment = nil
        var running: CInt = 0
        curl_multi_socket_action(multi, ccurl_socket_timeout(), 0, &running)
    }

    private func setTimer(_ milliseconds: Int) -> CInt {
        curlMoment = milliseconds < 0 ? nil : milliseconds == 0 ? 0 : TaskClock.system.now + UInt64(milliseconds) * 1_000_000
        return 0
    }

    private func watch(_ socket: curl_socket_t, _ what: CInt) -> CInt {
        switch what {
        case CInt(CURL_POLL_IN): poller.watch(socket, for: .readable)
        case CInt(CURL_POLL_OUT): poller.watch(socket, for: .writable)
        case CInt(CURL_POLL_INOUT): poller.watch(socket, for: [.readable, .writable])
        default: poller.unwatch(socket)
        }
        return 0
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address = address?.pointee else { return CURL_SOCKET_BAD }
        #if os(Linux)
        let descriptor = socket(address.family, address.socktype | CInt(SOCK_CLOEXEC.rawValue), address.protocol)
        #else
        let descriptor = socket(address.family, address.socktype, address.protocol)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        #endif
        guard descriptor >= 0 else { return CURL_SOCKET_BAD }
        connections.opened(descriptor)
        poller.opened(descriptor)
        return descriptor
    }

    func closeSocket(_ socket: curl_socket_t) -> CInt {
        connections.closed(socket)
        poller.closed(socket)
        return close(socket)
    }
}

extension EncodedRequest {
    /// Scheme, host and port, as they stand in the URL.
    fileprivate var host: String {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3 || byte == UInt8(ascii: "?")
        }
        return String(url[..<(end ?? url.endIndex)])
    }
}
