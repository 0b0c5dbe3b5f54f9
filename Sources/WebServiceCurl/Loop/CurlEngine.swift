import CCurl
import Foundation
import WebServiceCore

/// The part of a loop that uses libcurl's multi interface, driven by socket events.
///
/// Once the loop's thread has started, only the thread that has the turn (``CurlTurn``) uses the
/// engine.
final class CurlEngine {
    let configuration: CurlSession.Configuration
    /// The configured addresses in the syntax of libcurl, by host and port.
    let resolutions: [String: String]
    /// The TLS rules of the hosts.
    let rules: HostRules
    /// The addresses to which requests may connect; `nil` for all.
    let destinations: DestinationRules?
    /// Whether the environment specified a proxy when the session was created.
    let hasEnvironmentProxy = CurlSession.Proxy.isInEnvironment
    /// The header fields that the session adds to requests.
    let sessionFields: SessionFields
    let tls = ccurl_load_tls()
    /// The TLS connections whose end marks the end of a body.
    let tlsClosing = TLSClosing()
    let share: UnsafeMutableRawPointer
    var multi: UnsafeMutableRawPointer
    var poller: Poller
    var connections = Connections()
    /// The limit of a call that receives over HTTP/2; `nil` before the first HTTP/2 connection, and
    /// with versions of libcurl that need no limit.
    var receiveLimit: ReceiveLimit?
    /// The credentials with which shared connections use a proxy, by its host.
    var proxyCredentials: [String: String] = [:]

    // MARK: Exchanges

    var admission: Admission<CurlTransfer>
    /// The handles of the exchanges, each at its ``CurlHandle/place``.
    var busy: [CurlHandle] = []
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
    /// Whether callers may send requests on their threads.
    ///
    /// With versions of libcurl that let the TLS library send, a closed connection could send
    /// SIGPIPE to a thread of the program. Other versions could call the receiver on that thread.
    let supportsCallers: Bool
    /// The connection for the request that a caller's thread sends; `nil` on the loop's thread.
    var callersConnection: Connections.Connection?
    /// Whether the last exchange began while another was in flight.
    ///
    /// If so, requests will probably arrive together again, and the loop's thread then sends them
    /// faster.
    var exchangesOverlap = false
    /// The number of requests that callers' threads have sent.
    var callersRequestCount = 0
    /// The events of ``callersConnection`` that libcurl requested last; `nil` if they have not
    /// changed.
    var callersEvents: CInt?
    /// The number of exchanges that libcurl had not completed when it was last called.
    var runningCount: CInt = 0

    struct Ended {
        let transfer: CurlTransfer
        let result: Result<Headers, any Error>
        let metrics: TransportMetrics

        func complete() { transfer.complete(result, metrics) }
    }

    /// The connections on which the program sends and receives bytes.
    var channels: Channels

    // MARK: Time

    /// The clock that measures all timeouts except libcurl's own.
    let clock: TaskClock
    /// The current instant in nanoseconds, read before libcurl is called.
    var now: UInt64
    /// The instant, by the system clock, at which to call libcurl even if no event has occurred.
    var libraryInstant: UInt64?
    /// The alarm that wakes the loop at an instant of a clock that is not the system clock.
    var alarm: (instant: UInt64, alarm: Alarm)?
    /// The instant of the next check for idle exchanges.
    var idleCheckInstant = UInt64.max
    /// The instant at which the idle connections expire.
    var expiryInstant = UInt64.max
    /// The instant at which the loop's thread begins to wait.
    ///
    /// Bytes that arrived before this instant are received before idle timeouts are checked, even
    /// if the thread is delayed.
    private var waitStart: UInt64 = 0
    /// The instant until which the loop's thread waits.
    var waitEnd = UInt64.max
    /// The way in which the loop ends; `nil` while it accepts requests.
    private var closing: CurlSession.Closing?
    /// The instant from which the loop accepts no requests; `nil` while it accepts them.
    private(set) var closingInstant: UInt64?

    /// - Throws: `WebServiceError.Code.curl`.
    init(
        _ configuration: CurlSession.Configuration, _ clock: TaskClock, rules: HostRules, wakeUp: Int32
    ) throws {
        self.configuration = configuration
        sessionFields = try SessionFields(configuration)
        self.rules = rules
        self.clock = clock
        now = clock.now
        supportsCallers =
            Poller.updatesWaits && ccurl_only_sends_when_paused() != 0 && !clock.isInjected
            && configuration.unixSocketPath == nil && configuration.maximumBytesPerSecondReceived == nil
            && configuration.maximumBytesPerSecondSent == nil
        resolutions = try configuration.resolutions()
        destinations = try DestinationRules(configuration)
        try CurlSession.Library.check(version: curl_version_info(CURLVERSION_FIRST).pointee.version_num)
        guard Self.isLibraryReady else {
            throw WebServiceError(.curl, "libcurl could not be initialized; check its installation")
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

    /// The maximum number of times that jobs are taken before the events of sockets are handled.
    private static let maximumRounds = 16
    /// The duration of these rounds, in nanoseconds, after which the events are handled.
    private static let maximumDuration: UInt64 = 1_000_000

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

    /// Whether a request may be sent over a proxy.
    var mayUseProxy: Bool {
        switch configuration.proxy {
        case .none: false
        case .environment: hasEnvironmentProxy
        case .url, .authenticated, .perRequest: true
        }
    }

    // MARK: The loop

    /// Runs until the loop is closed and no request is active or waiting.
    func run(for loop: CurlLoop) {
        blockSignals()
        loop.makeCurrent()
        LoopExecutor.allowJobs()
        var jobs: [CurlLoop.Job] = []
        var isAsleep = false
        var wait = poller.makeWait()
        while let timeout = loop.turn.take({ prepareWait(of: loop, &wait, &jobs, &isAsleep) }) {
            let count = wait.run(milliseconds: timeout)
            loop.turn.take { handleEvents(count, of: wait, for: loop, &isAsleep) }
        }
        loop.turn.take { end(loop) }
    }

    /// Carries out jobs until there are none, or for a limited time.
    ///
    /// - Parameter isAsleep: Whether the next thread that adds a job wakes the loop.
    /// - Returns: The timeout of the next wait, in milliseconds; `nil` at the end of the loop.
    private func prepareWait(
        of loop: CurlLoop, _ wait: inout Poller.Wait, _ jobs: inout [CurlLoop.Job], _ isAsleep: inout Bool
    ) -> Int32? {
        /// The number of times that jobs were taken since the last wait.
        var (rounds, roundsStart) = (0, now)
        var mayHaveJobs = false
        // Swift tasks may have added jobs, such as requests, which are carried out before the loop
        // waits.
        repeat {
            // Unless the loop has been woken, there is no job.
            if !isAsleep { isAsleep = loop.take(&jobs, isIdle: timeout(for: loop, now) != 0) }
            mayHaveJobs = false
            for job in jobs where carryOut(job, of: loop) { mayHaveJobs = true }
            if mayHaveJobs { now = clock.now }
            jobs.removeAll(keepingCapacity: jobs.capacity <= 1 << 10)
            startAdmitted()
            startChannels()
            collect()
            if rounds == 0 { roundsStart = now }
            rounds += 1
        } while mayHaveJobs && rounds < Self.maximumRounds && now &- roundsStart < Self.maximumDuration
        if closing != nil, admission.isEmpty, busy.isEmpty, channels.isEmpty { return nil }
        poller.prepare(&wait)
        waitStart = now
        let timeout = timeout(for: loop, now)
        if timeout != 0, !isAsleep { isAsleep = loop.maySleep() }
        guard isAsleep else { return 0 }
        if timeout != 0, mayServeCallers { loop.openTurn() }
        return timeout
    }

    /// Frees everything, and cancels the requests that arrived too late.
    private func end(_ loop: CurlLoop) {
        setAlarm(at: .max, for: loop)
        freeLibraryObjects()
        loop.hasEnded()
    }

    /// Frees the objects of libcurl. This method must be called last, when no exchange is active.
    func freeLibraryObjects() {
        for handle in free { handle.free() }
        freeChannelMulti()
        curl_multi_cleanup(multi)
        curl_share_cleanup(share)
    }

    /// - Returns: Whether code of the program has run. It may have added jobs.
    private func carryOut(_ job: CurlLoop.Job, of loop: CurlLoop) -> Bool {
        switch job {
        case .submit(let transfer, let host):
            admission.append(transfer, to: host) { !$0.isComplete }
            return false
        case .run(let job):
            loop.run(job)
            return true
        default: now = clock.now  // libcurl may deliver bytes
        }
        switch job {
        case .submit, .run: break
        case .cancel(let transfer):
            if let handle = transfer.handle { end(handle, URLError(.cancelled)) }
        case .receiveMore(let transfer):
            if let handle = transfer.handle, let unread = handle.attempt.unread {
                complete(handle, unread.code)
            } else {
                proceed(transfer.handle) { $0.unpause() }
            }
        case .open(let channel): channels.admission.append(channel, to: "") { !$0.hasEnded }
        case .proceed(let channel): proceed(channel)
        case .release(let channel): release(channel)
        case .sendMore(let transfer): proceed(transfer.handle) { $0.sendMore() }
        case .close(let wanted):
            closing = wanted
            closingInstant = closingInstant ?? now
            idleCheckInstant = 0
            if wanted == .cancelling { cancelAll() }
        case .settle(let isSettled): isSettled.set(true)
        case .ring: break
        case .park: loop.park()
        }
        return false
    }

    /// Handles the events of a wait and the instants that have passed.
    private func handleEvents(
        _ count: Int, of wait: borrowing Poller.Wait, for loop: CurlLoop, _ isAsleep: inout Bool
    ) {
        loop.turn.closeToCallers()
        now = clock.now
        if isAsleep, loop.wakeForTasks() { isAsleep = false }
        for index in 0..<count {
            switch poller.event(index, of: wait) {
            case .wakeUp:
                loop.clearSignals()
                isAsleep = false
            case .ready(let socket, let events): act(socket, events)
            case .unwatched(let socket): closeUnsolicited(socket)
            case .outdated: break
            }
        }
        if let instant = libraryInstant, instant <= systemNow { handleTimeout() }
        if let instant = channels.instant, instant <= systemNow { handleChannelTimeout() }
        if idleCheckInstant <= waitStart { endIdle(waitStart) }
        collect()
        if expiryInstant <= now { closeConnections() }
    }

    /// Blocks the signals that other threads of the program can receive. Those that the thread
    /// itself causes, such as a trap in the code of a task, reach the handlers of the program.
    private func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        for signal in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT, SIGSYS] { sigdelset(&all, signal) }
        pthread_sigmask(SIG_SETMASK, &all, nil)
    }
}
