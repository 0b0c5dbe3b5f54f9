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
/// Confined to the thread of the loop, once that has started.
final class CurlEngine {
    let configuration: CurlSession.Configuration
    /// The configured addresses in the syntax of libcurl, by host and port.
    let resolutions: [String: String]
    /// The TLS rules of the hosts.
    let rules: HostRules
    let tls = ccurl_load_tls()
    /// The TLS connections whose end marks the end of a body.
    let tlsClosing = TLSClosing()
    let share: UnsafeMutableRawPointer
    var multi: UnsafeMutableRawPointer
    var poller: Poller
    var connections = Connections()
    /// The credentials with which shared connections use a proxy, by its host.
    var proxyCredentials: [String: String] = [:]

    // MARK: Exchanges

    var admission: Admission<CurlTransfer>
    /// The handles of the exchanges, by transfer.
    var busy: [ObjectIdentifier: CurlHandle] = [:]
    var free: [CurlHandle] = []
    /// The number of exchanges whose receivers may pause.
    var streamCount = 0
    /// The number of exchanges whose request bodies are produced while they are sent.
    var uploadCount = 0
    /// The handles with streamed request bodies for which libcurl may have stopped receiving.
    var uploadsToCheck: [CurlHandle] = []
    /// The handles whose responses are complete but whose streamed request bodies are not.
    var earlyResponses: [CurlHandle] = []
    /// The handles of the exchanges that libcurl has completed.
    var completed: [CurlHandle] = []
    /// The ended exchanges whose transfers are not completed yet.
    var ended: [Ended] = []

    struct Ended {
        let transfer: CurlTransfer
        let result: Result<Headers, any Error>
        let metrics: TransportMetrics

        func complete() { transfer.complete(result, metrics) }
    }

    /// The connections on which the program sends and receives bytes.
    var channels: Channels

    // MARK: Time

    /// Measures everything except libcurl's own timeouts.
    let clock: TaskClock
    /// The current instant in nanoseconds, read before libcurl is called.
    var now: UInt64
    /// The instant of the system clock at which libcurl requests a call without an event.
    var libraryInstant: UInt64?
    /// The alarm that wakes the loop at an instant of a clock that is not the system clock.
    var alarm: (instant: UInt64, alarm: Alarm)?
    /// The instant of the next check for idle exchanges.
    var idleCheckInstant = UInt64.max
    /// The instant at which the idle connections expire.
    var expiryInstant = UInt64.max
    /// The way in which the loop ends; `nil` while it accepts requests.
    private var closing: CurlSession.Closing?
    /// The instant from which the loop accepts no requests; `nil` while it accepts them.
    private(set) var closingInstant: UInt64?

    /// - Throws: `WebServiceError.Code.curl`.
    init(
        _ configuration: CurlSession.Configuration, _ clock: TaskClock, rules: HostRules, wakeUp: Int32
    ) throws {
        self.configuration = configuration
        self.rules = rules
        self.clock = clock
        now = clock.now
        resolutions = try configuration.resolutions()
        try CurlSession.Library.check(version: curl_version_info(CURLVERSION_FIRST).pointee.version_num)
        guard Self.isLibraryReady else {
            throw WebServiceError(.curl, "libcurl could not be initialized")
        }
        poller = try Poller(wakeUp: wakeUp)
        guard let share = curl_share_init(), let multi = curl_multi_init() else {
            throw WebServiceError(.curl, "libcurl could not allocate memory for an event loop")
        }
        ccurl_share_tls_sessions(share)
        self.share = share
        self.multi = multi
        admission = Admission(
            maximumPerHost: max(1, configuration.maximumConnectionsPerHost),
            maximum: max(1, configuration.maximumConnections))
        channels = Channels(maximum: configuration.maximumWebSocketConnections)
        configureMulti()
        do {
            // Reports configuration values that libcurl does not support before the first request.
            for index in rules.all.indices { keep(try CurlHandle(self, share: share, rules: index)) }
        } catch {
            for handle in free { handle.free() }
            curl_multi_cleanup(multi)
            curl_share_cleanup(share)
            throw error
        }
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    func configureMulti() {
        limitConnections()
        _ = ccurl_multi_set_quick_exit(multi)
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, max(1, configuration.maximumIdleConnections))
        ccurl_multi_set_callbacks(
            multi,
            { _, socket, what, context, _ in CurlEngine.from(context)?.watch(socket, what) ?? 0 },
            { _, milliseconds, context in CurlEngine.from(context)?.setTimer(milliseconds) ?? 0 },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    /// Sets the connection limits. Streams do not count toward them.
    func limitConnections() {
        let perHost = min(max(1, configuration.maximumConnectionsPerHost), 1 << 30)
        ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, perHost + streamCount)
        let total = min(max(1, configuration.maximumConnections), 1 << 30)
        ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, total + streamCount)
    }

    /// Returns the engine that was registered with a callback; `nil` if libcurl passes no pointer.
    static func from(_ context: UnsafeMutableRawPointer?) -> CurlEngine? {
        // The engine outlives its handles and connections.
        context.map { Unmanaged<CurlEngine>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: The loop

    /// Runs until the loop is closed and no request is active or waiting.
    func run(for loop: CurlLoop) {
        blockSignals()
        LoopExecutor.allowJobs()
        var jobs: [CurlLoop.Job] = []
        var isAsleep = false
        while true {
            // Unless the loop has been woken, there is no job.
            if !isAsleep { isAsleep = loop.take(&jobs, isIdle: timeout(for: loop, clock.now) != 0) }
            now = clock.now  // a job can let libcurl deliver bytes
            for job in jobs { carryOut(job, of: loop) }
            jobs.removeAll(keepingCapacity: jobs.capacity <= 1 << 10)
            startAdmitted()
            startChannels()
            collect()
            if closing != nil, admission.isEmpty, busy.isEmpty, channels.isEmpty { break }
            // Bytes that arrived before this instant are received before idle timeouts are checked,
            // even if this thread is delayed.
            let start = clock.now
            handleEvents(of: loop, since: start, &isAsleep)
            if let instant = libraryInstant, instant <= systemNow { handleTimeout() }
            if let instant = channels.instant, instant <= systemNow { handleChannelTimeout() }
            if idleCheckInstant <= start { endIdle(start) }
            collect()
            if expiryInstant <= now { closeConnections() }
        }
        end(loop)
    }

    /// Frees everything, and cancels the requests that arrived too late.
    private func end(_ loop: CurlLoop) {
        setAlarm(at: .max, for: loop)
        freeLibraryObjects()
        loop.hasEnded()
    }

    /// Frees the objects of libcurl. Must be the last call, without active exchanges.
    func freeLibraryObjects() {
        for handle in free { handle.free() }
        freeChannelMulti()
        curl_multi_cleanup(multi)
        curl_share_cleanup(share)
    }

    private func carryOut(_ job: CurlLoop.Job, of loop: CurlLoop) {
        switch job {
        case .submit(let transfer, let host): admission.append(transfer, to: host) { !$0.isComplete }
        case .cancel(let transfer):
            if let handle = busy[ObjectIdentifier(transfer)] { end(handle, URLError(.cancelled)) }
        case .receiveMore(let transfer):
            let handle = busy[ObjectIdentifier(transfer)]
            if let handle, let unread = handle.attempt.unread {
                complete(handle, unread.code)
            } else {
                proceed(handle) { $0.unpause() }
            }
        case .open(let channel): channels.admission.append(channel, to: "") { !$0.hasEnded }
        case .proceed(let channel): proceed(channel)
        case .release(let channel): release(channel)
        case .sendMore(let transfer): proceed(busy[ObjectIdentifier(transfer)]) { $0.sendMore() }
        case .close(let wanted):
            closing = wanted
            closingInstant = closingInstant ?? clock.now
            idleCheckInstant = 0
            if wanted == .cancelling { cancelAll() }
        case .settle(let isSettled): isSettled.set(true)
        case .ring: break
        case .park: loop.park()
        }
    }

    /// Waits for events of sockets, for a wake-up or for the next instant, and handles them.
    ///
    /// - Parameter isAsleep: Whether the next thread that adds a job wakes the loop.
    private func handleEvents(of loop: CurlLoop, since start: UInt64, _ isAsleep: inout Bool) {
        let timeout = timeout(for: loop, start)
        if timeout != 0, !isAsleep { isAsleep = loop.maySleep() }
        let count = poller.wait(milliseconds: isAsleep ? timeout : 0)
        now = clock.now
        for index in 0..<count {
            switch poller.event(index) {
            case .wakeUp:
                loop.clearSignals()
                isAsleep = false
            case .ready(let socket, let events): act(socket, events)
            case .unwatched(let socket): closeUnsolicited(socket)
            case .outdated: break
            }
        }
    }

    /// Blocks all signals, so that they are delivered to other threads of the program.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
    }
}
