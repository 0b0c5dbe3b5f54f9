import CurlFloor
import Foundation
import WebServiceCore
import WebServiceCurl
import WebServiceSockets

/// The memory of open connections on which nothing is sent.
enum Idle {
    static let own = "own"
    static let libcurl = "libcurl"

    /// The number of connections that are opened before memory is measured.
    private static let warmUpCount = 20

    /// Opens connections in this process, and returns the resident memory of each, in KiB.
    static func measure(_ name: String, port: Int, count: Int) async throws -> Double {
        raiseDescriptorLimit()
        return name == own ? try await measureOwn(port, count) : try measureLibrary(port, count)
    }

    private static func measureOwn(_ port: Int, _ count: Int) async throws -> Double {
        let service = WebService(baseURLString: "http://127.0.0.1:\(port)")
        var configuration = CurlSession.Configuration()
        configuration.maximumWebSocketConnections = count + warmUpCount
        service.session = try CurlSession(configuration: configuration)
        let readers = Readers(service)
        try await readers.open(warmUpCount)
        let before = Sample.status("VmRSS:")
        try await readers.open(count)
        return (Sample.status("VmRSS:") - before) / Double(count)
    }

    private static func measureLibrary(_ port: Int, _ count: Int) throws -> Double {
        func open(_ count: Int) throws {
            guard curl_floor_open_idle("http://127.0.0.1:\(port)/", count) == 0 else {
                throw Failure(description: "libcurl could not open the connections")
            }
        }
        try open(warmUpCount)
        let before = Sample.status("VmRSS:")
        try open(count)
        return (Sample.status("VmRSS:") - before) / Double(count)
    }

    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        getrlimit(resource, &limit)
        limit.rlim_cur = min(limit.rlim_max, 20_000)
        setrlimit(resource, &limit)
    }
}

/// Connections with one Swift task each that waits for a message.
private actor Readers {
    private let service: WebService
    private var tasks: [Task<Void, Never>] = []

    init(_ service: WebService) {
        self.service = service
    }

    /// Opens connections, at most 50 at a time.
    func open(_ count: Int) async throws {
        try await withThrowingTaskGroup(of: WebSocket.self) { [service] group in
            for number in 0..<count {
                if number >= 50, let socket = try await group.next() { read(socket) }
                group.addTask { try await service.webSocket("/") }
            }
            for try await socket in group { read(socket) }
        }
        for _ in 0..<1_000 { await Task.yield() }  // until all tasks wait
    }

    private func read(_ socket: WebSocket) {
        tasks.append(
            Task {
                do {
                    for try await _ in socket.messages {}
                } catch {
                    print("a connection has failed: \(error)")
                }
            })
    }
}
