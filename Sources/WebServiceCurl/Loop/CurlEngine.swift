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

/// The part of a loop that runs on its thread: libcurl's multi interface, driven by socket events.
///
/// Confined to the thread of the loop.
final class CurlEngine {
    /// The current instant in nanoseconds, read once per iteration of the loop.
    private(set) var now = TaskClock.system.now

    /// The TLS connections whose end marks the end of a body.
    let closing = TLSClosing()

    let configuration: CurlSession.Configuration
    /// The configured addresses in the syntax of libcurl, by host and port.
    let resolutions: [String: String]
    private let share: UnsafeMutableRawPointer
    private var multi: UnsafeMutableRawPointer
    private var poller: Poller
    private var admission: Admission<CurlTransfer>
    private var busy: [CurlHandle] = []
    private var free: [CurlHandle] = []
    private var connections = Connections()
    private let tls = ccurl_load_tls()
    /// The ended exchanges whose transfers are not completed yet.
    private var ended: [Ended] = []
    /// The handles of the exchanges that libcurl has completed.
    private var done: [CurlHandle] = []
    /// The handles of the exchanges whose receivers may pause.
    private var streams: [ObjectIdentifier: CurlHandle] = [:]
    /// The handles of the exchanges whose request bodies are produced while they are sent.
    private var uploads: [ObjectIdentifier: CurlHandle] = [:]
    /// The handles whose responses are complete but whose streamed request bodies are not.
    var answered: [CurlHandle] = []
    /// The handles with streamed request bodies for which libcurl may have stopped receiving.
    private var deaf: [CurlHandle] = []

    private struct Ended {
        let transfer: CurlTransfer
        let result: Result<Headers, any Error>
        let metrics: TransportMetrics
    }
    /// The instant at which libcurl requests a call without an event.
    private var curlMoment: UInt64?
    /// The instant of the next check for idle exchanges.
    private var silenceMoment = UInt64.max
    /// The instant at which the idle connections expire.
    private var restMoment = UInt64.max

    /// - Throws: `WebServiceError.Code.curl`.
    init(_ configuration: CurlSession.Configuration, wakeUp: Int32) throws {
        self.configuration = configuration
        resolutions = try configuration.resolutions()
        guard Self.isLibraryReady else { throw WebServiceError(.curl, "libcurl could not be initialized") }
        poller = try Poller(wakeUp: wakeUp)
        guard let share = curl_share_init(), let multi = curl_multi_init() else {
            throw WebServiceError(.curl, "libcurl could not allocate an event loop")
        }
        ccurl_share_tls_sessions(share)
        self.share = share
        self.multi = multi
        admission = Admission(
            maximumPerHost: max(1, configuration.maximumConnectionsPerHost),
            maximum: max(1, configuration.maximumConnections))
        configureMulti()
        do {
            // Reports configuration values that libcurl does not support before the first request.
            free.append(try CurlHandle(self, configuration, share: share))
        } catch {
            curl_multi_cleanup(multi)
            curl_share_cleanup(share)
            throw error
        }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private func configureMulti() {
        limitConnections()
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, max(1, configuration.maximumIdleConnections))
        ccurl_multi_set_callbacks(
            multi, { easy, socket, what, context, _ in CurlEngine.from(context).watch(easy, socket, what) },
            { _, milliseconds, context in CurlEngine.from(context).setTimer(milliseconds) },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    /// Sets the connection limits. Streams do not count toward them.
    private func limitConnections() {
        let perHost = min(max(1, configuration.maximumConnectionsPerHost), 1 << 30)
        ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, perHost + streams.count)
        let total = min(max(1, configuration.maximumConnections), 1 << 30)
        ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, total + streams.count)
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> CurlEngine {
        // libcurl passes the pointer that it was given; the engine outlives its handles and
        // connections.
        Unmanaged<CurlEngine>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    // MARK: The loop

    /// Runs until the loop is closed and no request is active or waiting.
    func run(for loop: CurlLoop) {
        blockSignals()
        var closing: CurlSession.Closing?
        while true {
            let work = loop.takeWork()
            for transfer in work.submissions {
                if let host = transfer.submission?.request.host {  // `nil` if it was cancelled
                    admission.enter(transfer, to: host)
                }
            }
            for transfer in work.cancellations { cancel(transfer) }
            for transfer in work.continuations { proceed(streams[ObjectIdentifier(transfer)]) { $0.unpause() } }
            for transfer in work.uploads { proceed(uploads[ObjectIdentifier(transfer)]) { $0.sendMore() } }
            if let wanted = work.closing { closing = wanted }
            if closing == .cancelling { cancelAll() }
            startAdmitted()
            collect()
            if closing != nil, admission.isEmpty, busy.isEmpty { break }
            // Bytes that arrived before this instant are received before idle timeouts are checked,
            // even if this thread is delayed.
            let start = TaskClock.system.now
            let count = poller.wait(milliseconds: loop.mayRest() ? patience(start) : 0)
            now = TaskClock.system.now
            for index in 0..<count {
                switch poller.event(index) {
                case .wakeUp: loop.clearSignals()
                case .ready(let socket, let events): act(socket, events)
                case .stray(let socket):
                    if let connection = connections[socket], connection.isResting { connection.giveUp() }
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

    /// Blocks all signals, so that they are delivered to other threads of the program.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
    }

    /// Returns the timeout for the next wait, in milliseconds; -1 waits indefinitely.
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
        // The loop's `now` may precede the submission of the request, which would shorten its
        // timeout.
        let start = TaskClock.system.now
        try handle.begin(exchange, connectTimeout: configuration.connectTimeout, at: start)
        let code = curl_multi_add_handle(multi, handle.easy)
        guard code == CURLM_OK else {
            throw WebServiceError(
                .curl, "libcurl rejected the request: \(String(cString: curl_multi_strerror(code)))")
        }
        handle.place = busy.count
        busy.append(handle)
        if handle.exchange?.receiver.mayPause == true {
            streams[ObjectIdentifier(exchange.submission.transfer)] = handle
            limitConnections()
        }
        if handle.isUploading { uploads[ObjectIdentifier(exchange.submission.transfer)] = handle }
        restMoment = .max
        silenceMoment = min(silenceMoment, start &+ handle.idleLimit)
    }

    private func handle(_ easy: UnsafeMutableRawPointer) -> CurlHandle {
        var context: UnsafeMutableRawPointer?
        ccurl_get_pointer(easy, CURLINFO_PRIVATE, &context)
        return CurlHandle.from(context)
    }

    /// Completes the ended exchanges and starts waiting ones.
    ///
    /// Repeats until none has ended, because a new exchange may end immediately.
    private func collect() {
        repeat {
            endAnswered()
            takeMessages()
            endBodies()
        } while tell()
    }

    /// Completes the exchanges of ``answered``, which closes their connections.
    private func endAnswered() {
        for handle in answered {
            guard let transfer = handle.exchange?.submission.transfer else { continue }
            ended.append(Ended(transfer: transfer, result: .success([:]), metrics: handle.metrics()))
            release(handle)
        }
        answered.removeAll()
    }

    /// Ends the request bodies of ``deaf``, which closes their connections.
    ///
    /// libcurl stops receiving at the end of the response or of the connection, but it does not
    /// complete the exchange before the end of the request body. Without further bytes of the body,
    /// it returns the result.
    private func endBodies() {
        while let handle = deaf.popLast() {
            guard handle.isUploading, !handle.isPaused, !handle.isBodyOver, !done.contains(where: { $0 === handle }),
                let connection = handle.connection,
                connections[connection.socket] === connection, !poller.isReading(connection.socket)
            else { continue }
            poller.replace(connection.socket) { connection.divert() }
            proceed(handle) { $0.endBody() }
        }
    }

    private func takeMessages() {
        var remaining: CInt = 0
        while let message = curl_multi_info_read(multi, &remaining) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            let handle = self.handle(easy)
            guard let transfer = handle.exchange?.submission.transfer else { continue }
            let code = ccurl_message_result(message)
            if handle.mustBeginAgain {
                curl_multi_remove_handle(multi, easy)
                handle.beginAgain()
                if curl_multi_add_handle(multi, easy) == CURLM_OK { continue }
            }
            let result = handle.result(code)
            ended.append(Ended(transfer: transfer, result: result, metrics: handle.metrics()))
            done.append(handle)
        }
    }

    /// Completes the transfers of the ended exchanges, then releases their handles.
    ///
    /// The completions are scheduled as one batch, because waking other threads once costs less
    /// than once per transfer.
    ///
    /// - Returns: Whether any exchange had ended, so others may have started.
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

    /// Ends an exchange that libcurl has not completed.
    private func end(_ handle: CurlHandle, _ error: any Error) {
        guard let transfer = handle.exchange?.submission.transfer else { return }
        ended.append(Ended(transfer: transfer, result: .failure(error), metrics: handle.metrics()))
        release(handle)
    }

    /// Ends the part of a stream that counts toward the connection limits.
    func leaveLine(_ handle: CurlHandle) {
        guard let line = handle.exchange?.line else { return }
        handle.exchange?.line = nil
        admission.leave(line)
    }

    /// Continues an exchange. The closure returns the error that ends it.
    private func proceed(_ handle: CurlHandle?, _ action: (CurlHandle) -> (any Error)?) {
        guard let handle else { return }
        if let error = action(handle) {
            end(handle, error)
        } else {
            if handle.isUploading { deaf.append(handle) }
            silenceMoment = min(silenceMoment, now &+ handle.idleLimit)
        }
    }

    /// Removes a handle from libcurl and returns it to the free handles.
    private func release(_ handle: CurlHandle) {
        if handle.isHTTP2 { handle.exchange?.line?.isMultiplexed = true }
        curl_multi_remove_handle(multi, handle.easy)
        if let last = busy.popLast(), last !== handle {
            busy[handle.place] = last
            last.place = handle.place
        }
        leaveLine(handle)
        let isUploading = handle.isUploading
        if let exchange = handle.end() {
            if isUploading { uploads[ObjectIdentifier(exchange.submission.transfer)] = nil }
            if exchange.receiver.mayPause {
                streams[ObjectIdentifier(exchange.submission.transfer)] = nil
                limitConnections()
            }
        }
        if free.count < 128, !handle.isWorn { free.append(handle) } else { handle.free() }
        if busy.isEmpty, connections.count > 0 {
            restMoment = now.addingSaturated(configuration.idleConnectionLifetime)
        }
    }

    private func cancel(_ transfer: CurlTransfer) {
        let handle =
            streams[ObjectIdentifier(transfer)] ?? busy.first { $0.exchange?.submission.transfer === transfer }
        if let handle {
            end(handle, URLError(.cancelled))
        } else {
            transfer.finish(.failure(URLError(.cancelled)), nil)
        }
    }

    private func cancelAll() {
        for transfer in admission.removeWaiting() { transfer.finish(.failure(URLError(.cancelled)), nil) }
        while let handle = busy.last { end(handle, URLError(.cancelled)) }
    }

    /// Ends the exchanges whose idle timeout has elapsed, and schedules the next check.
    private func endSilent(_ start: UInt64) {
        silenceMoment = .max
        for handle in busy where !handle.isPaused && !handle.isAwaitingBody {
            let limit = handle.lastActivity &+ handle.idleLimit
            if limit <= start {
                // Other exchanges keep an HTTP/2 connection open, and libcurl would continue to
                // send new ones on it. If nothing has arrived within the timeout, the connection is
                // shut down, which ends or restarts all its exchanges.
                handle.forbidReuse()
                if let connection = handle.connection, connection.isSilent(since: start - handle.idleLimit) {
                    connection.giveUp()
                }
                let text = "no byte was sent or received for \(Double(handle.idleLimit) / 1e9) s"
                end(handle, CurlError.error(.timedOut, text))
            } else {
                silenceMoment = min(silenceMoment, max(limit, start &+ Self.silenceInterval))
            }
        }
    }

    /// The shortest interval between two checks, in nanoseconds, which limits their cost.
    private static let silenceInterval: UInt64 = 2_000_000

    /// Closes the expired connections. libcurl checks them only when it needs one.
    ///
    /// Only freeing the multi handle closes them immediately, which also discards the parsed
    /// certificates.
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

    /// Returns the connection of a socket; `nil` if it is not open.
    func connection(_ socket: Int32) -> Connections.Connection? { connections[socket] }

    /// Returns the connection with these ends; `nil` if it is not known.
    func connection(_ ends: Connections.Ends) -> Connections.Connection? { connections.connection(ends) }

    /// Returns whether the TLS library holds decrypted bytes of the connection of an exchange.
    func hasDecryptedBytes(_ handle: CurlHandle) -> Bool { ccurl_tls_has_pending(handle.easy, tls) != 0 }

    private func actOnTime() {
        curlMoment = nil
        var running: CInt = 0
        curl_multi_socket_action(multi, ccurl_socket_timeout(), 0, &running)
    }

    private func setTimer(_ milliseconds: Int) -> CInt {
        curlMoment =
            milliseconds < 0 ? nil : milliseconds == 0 ? 0 : TaskClock.system.now + UInt64(milliseconds) * 1_000_000
        return 0
    }

    private func watch(_ easy: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ what: CInt) -> CInt {
        if !uploads.isEmpty, what != CInt(CURL_POLL_IN), what != CInt(CURL_POLL_INOUT), let easy {
            deaf.append(handle(easy))
        }
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
    /// The scheme, host and port, as written in the URL.
    fileprivate var host: String {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3 || byte == UInt8(ascii: "?")
        }
        return String(url[..<(end ?? url.endIndex)])
    }
}
