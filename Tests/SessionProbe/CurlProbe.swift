#if WEBSERVICE_CURL
import Foundation
import Synchronization
import WebServiceCore
import WebServiceCurl

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Probes of `CurlSession` in a process with slow name resolution or without free descriptors.
///
/// Each line of output is the name of a measurement, a space and a number.
enum CurlProbe {
    /// - Returns: Whether a probe with that name exists.
    static func run(_ name: String, _ base: String) async -> Bool {
        do {
            switch name {
            case "lookup": try await lookup(base)
            case "descriptors": try await descriptors(base)
            case "fork": try await fork(base)
            case "exit": try await exit(base)
            default: return false
            }
        } catch {
            print("thrown 1 \(error)")
        }
        return true
    }

    // MARK: Forks

    /// Sends a request, forks, and sends a request over the same session in the child.
    private static func fork(_ base: String) async throws {
        let session = try CurlSession()
        let service = WebService(baseURLString: base)
        service.session = session
        _ = try await service.GET("/").data().value
        guard let symbol = dlsym(nil, "fork") else { return }
        let child = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
        if child == 0 {
            alarm(10)  // terminates a child that hangs
            // No task of Swift runs in the child, so the session completes the exchange inside.
            let refused = Synchronization.Mutex(false)
            let request = Request(.GET, url: base)
            let receiver = ResponseReceiver(request, source: session.responseSource) { result, _ in
                guard case .failure(let error as WebServiceError) = result else { return }
                refused.withLock { $0 = error.code == .sessionClosed }
            }
            session.streamTask(request: request, receiver: receiver).resume()
            session.close()
            print("refused \(refused.withLock { $0 ? 1 : 0 })")
            fflush(nil)
            _exit(0)
        }
        var status: Int32 = -1
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        print("status", status)
    }

    // MARK: Exit

    private static let responses = Atomic<Int>(0)

    /// Exits while the loop of a session opens and closes connections over TLS.
    private static func exit(_ base: String) async throws {
        let session = try CurlSession {
            $0.httpVersion = .http1
            $0.maximumIdleConnections = 1  // most connections are used once
            $0.tls.trustedCertificatesFile = ProcessInfo.processInfo.environment["TRUSTED"]
        }
        let service = WebService(baseURLString: base)
        service.session = session
        let limit = Int.random(in: 1...40)
        let isReached = Once<Bool>()
        let count = ProcessInfo.processInfo.environment["TASKS"].flatMap { Int($0) } ?? 16
        for _ in 0..<count {
            Task {
                do {
                    while true {
                        _ = try await service.GET("/").data().value
                        if responses.add(1, ordering: .relaxed).newValue == limit { isReached.set(true) }
                    }
                } catch {
                    tell("\(error)")
                    Foundation.exit(1)
                }
            }
        }
        _ = await isReached.value
        Foundation.exit(0)
    }

    // MARK: Slow name resolution

    private enum End: String, CaseIterable { case cancel, deadline, timeout, close }

    private static func lookup(_ base: String) async throws {
        for end in End.allCases {
            let session = try CurlSession()
            let service = WebService(baseURLString: "http://name.\(slowDomain)")
            service.session = session
            let task = service.GET("/")
            if end == .deadline { task.setDeadline(.milliseconds(100)) }
            if end == .timeout { task.setTimeout(.milliseconds(100)) }
            var start = ContinuousClock.now
            let data = task.data().resume()
            try await TaskClock.system.sleep(for: .milliseconds(60))
            switch end {
            case .cancel:
                start = .now
                task.cancel()
            case .close:
                start = .now
                session.close(.cancelling)
            case .deadline, .timeout: start += .milliseconds(100)
            }
            _ = await data.result
            print(end.rawValue, milliseconds(since: start))
            // The loop serves other requests during the name resolution.
            guard end != .close else { continue }
            let other = WebService(baseURLString: base)
            other.session = session
            start = .now
            _ = try await other.GET("/").data().value
            print("other-\(end.rawValue)", milliseconds(since: start))
        }
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
        Int(start.duration(to: .now) / .milliseconds(1))
    }

    // MARK: Descriptors

    private static func descriptors(_ base: String) async throws {
        var limit = rlimit(rlim_cur: 64, rlim_max: 64)
        #if canImport(Glibc)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw POSIXError(.EPERM) }
        #else
        guard setrlimit(RLIMIT_NOFILE, &limit) == 0 else { throw POSIXError(.EPERM) }
        #endif
        let session = try CurlSession {
            $0.maximumConnectionsPerHost = 512
            $0.maximumIdleConnections = 512
        }
        let service = WebService(baseURLString: base)
        service.session = session
        // More requests at the same time than descriptors.
        let results = await withTaskGroup(of: Result<Data, any Error>.self) { group in
            for _ in 0..<200 { group.addTask { await service.GET("/slow").data().result } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        print("answers", results.count { (try? $0.get()) != nil })  // the errors are counted below
        print("typed", results.count { typed($0) })
        // No free descriptors.
        session.close()
        let fresh = try CurlSession()
        service.session = fresh
        var all = openAll()
        print("without", typed(await service.GET("/").data().result) ? 1 : 0)
        for descriptor in all { close(descriptor) }
        var later = 0
        for _ in 0..<20 where try await service.GET("/").string().value == "ale" { later += 1 }
        print("later", later)
        // Descriptors for only some of the loops of a session.
        all = openAll()
        for descriptor in all.suffix(8) { close(descriptor) }
        let threads = Self.threads
        var code: WebServiceError.Code?
        do { _ = try CurlSession { $0.loops = 16 } } catch let error as WebServiceError { code = error.code }
        print("refused", code == .curl ? 1 : 0)
        print("threads", Self.threads - threads)
        for descriptor in all.dropLast(8) { close(descriptor) }
    }

    private static func typed(_ result: Result<Data, any Error>) -> Bool {
        guard case .failure(let error) = result else { return false }
        return (error as? URLError)?.code == .cannotConnectToHost || (error as? WebServiceError)?.code == .curl
    }

    private static func openAll() -> [Int32] {
        var all: [Int32] = []
        while true {
            let descriptor = open("/dev/null", O_RDONLY)
            guard descriptor >= 0 else { return all }
            all.append(descriptor)
        }
    }

    /// The number of threads, determined without a descriptor.
    private static var threads: Int {
        var status = stat()
        return stat("/proc/self/task", &status) == 0 ? Int(status.st_nlink) - 2 : 0
    }
}

extension CurlSession {
    fileprivate convenience init(_ change: (inout Configuration) -> Void) throws {
        var configuration = Configuration()
        change(&configuration)
        try self.init(configuration: configuration)
    }
}

private let slowDomain = "slow.test"

/// Replaces the function of the system in this process: names of one domain take a minute.
///
/// libcurl calls it on a separate thread.
@_cdecl("getaddrinfo")
func slowLookup(
    _ name: UnsafePointer<CChar>?, _ service: UnsafePointer<CChar>?, _ hints: UnsafePointer<addrinfo>?,
    _ result: UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
) -> CInt {
    if let name, String(cString: name).hasSuffix(slowDomain) {
        sleep(60)
        return EAI_NONAME
    }
    typealias Call =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<addrinfo>?,
            UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
        ) -> CInt
    // `RTLD_NEXT`, a macro that Swift does not import.
    guard let next = dlsym(UnsafeMutableRawPointer(bitPattern: -1), "getaddrinfo") else { return EAI_FAIL }
    return unsafeBitCast(next, to: Call.self)(name, service, hints, result)
}
#endif
