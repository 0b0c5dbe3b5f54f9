import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Responses whose status and fields decide what follows, with bodies that cannot be received.
@Suite("Bodies that are not needed", .permit)
struct UnneededBodyTests {
    /// The defect of a body.
    enum Defect: CaseIterable {
        case unknownCoding, invalidCoding, cut, invalidChunk

        func apply(to response: MockResponse) -> MockResponse {
            var response = response
            response.data = Data(repeating: UInt8(ascii: "x"), count: 5_000)
            switch self {
            case .unknownCoding: response.headers["Content-Encoding"] = "aes128gcm"
            case .invalidCoding: response.headers["Content-Encoding"] = "gzip"
            case .cut: response.wire = .cut(after: 2_000)
            case .invalidChunk: response.wire = .invalidChunk
            }
            return response
        }
    }

    /// The part of the pipeline that sends a further request.
    enum Sender: CaseIterable {
        case redirect, retry, refresh, digest

        /// The response after which it sends the request.
        var response: MockResponse {
            var response: MockResponse = 503
            switch self {
            case .redirect:
                response.statusCode = 302
                response.headers[.location] = "/next"
            case .retry: break
            case .refresh: response.statusCode = 401
            case .digest:
                response.statusCode = 401
                response.headers["WWW-Authenticate"] = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
            }
            return response
        }

        func interceptors() throws -> [any Interceptor] {
            switch self {
            case .redirect: []
            case .retry: [.retry(baseDelay: .milliseconds(1))]
            case .refresh: [Authentication(TokenSource({ .bearer("a") }) { _ in .bearer("b") })]
            case .digest: [.digest(user: "u", password: "canary-password")]
            }
        }
    }

    /// Reads the body of `/start` in one way.
    enum Consumption: CaseIterable {
        case whole, stream, events, download

        func text(_ service: WebService) async throws -> String {
            switch self {
            case .whole: return try await service.GET("/start").string().value
            case .stream:
                let body = try await service.GET("/start").stream().value.body
                return String(decoding: try await body.collect(upTo: 1_000), as: UTF8.self)
            case .events:
                var text = ""
                for try await event in service.GET("/start").events() { text += "data: \(event.data)\n\n" }
                return text
            case .download:
                let folder = TemporaryFolder()
                let file = try await service.GET("/start").download(to: folder.url.appendingPathComponent("f")).value
                return try String(contentsOf: file.url, encoding: .utf8)
            }
        }
    }

    private static let text = "data: end\n\n"

    /// Returns a server that sends the responses to `/start`, and then the text.
    private func server(_ responses: MockResponse...) throws -> MockServer {
        var end = MockResponse(statusCode: 200, data: Data(Self.text.utf8))
        end.headers[.contentType] = "text/event-stream"
        let server = try MockServer.forTest()
        server.on(.GET, "/start", responses + [end])
        server.on(.GET, "/next", end)
        return server
    }

    /// Foundation on Linux provides no head if a body or the body of a redirect fails.
    private static func deliversHead(_ session: RealSession, _ sender: Sender) -> Bool {
        session.isCurl || session == .foundationSession && sender != .redirect
    }

    @Test(
        "A body that is not needed does not fail the exchange, whatever its defect",
        arguments: RealSession.streaming, Sender.allCases)
    func defects(session: RealSession, sender: Sender) async throws {
        guard Self.deliversHead(session, sender) else { return }
        for defect in Defect.allCases {
            for consumption in Consumption.allCases {
                let server = try server(defect.apply(to: sender.response))
                let service = try session.service(server)
                service.interceptors = try sender.interceptors()
                let text = try? await consumption.text(service)  // nil is reported below
                #expect(text == Self.text, "\(defect), \(consumption)")
                #expect(server.receivedRequests.count == 2, "\(defect), \(consumption)")
            }
        }
    }

    #if !canImport(Darwin)
    @Test(
        "Foundation on Linux loses a redirect whose body fails, and over a URLSession every response")
    func lostHeads() async throws {
        for (session, sender) in [(RealSession.foundationSession, Sender.redirect), (.urlSession, .retry)] {
            guard RealSession.allCases.contains(session) else { continue }
            let server = try server(Defect.unknownCoding.apply(to: sender.response))
            let service = try session.service(server)
            service.interceptors = try sender.interceptors()
            await #expect(throws: URLError.self, "\(session)") { try await service.GET("/start").string().value }
            #expect(server.receivedRequests.count == 1, "\(session)")
        }
    }
    #endif

    @Test("A connection is kept after a body that cannot be decoded, and closed after one over 1 MiB")
    func connection() async throws {
        for (count, expected) in [(5_000, 1), (1_000_000, 1), (1_200_000, 2)] {
            for sender in [Sender.redirect, .retry] {
                var response = sender.response
                response.headers["Content-Encoding"] = "aes128gcm"
                response.data = Data(count: count)
                response.wire = .chunked(size: 64 << 10)
                let server = try server(response)
                let service = try RealSession.best.service(server)
                service.interceptors = try sender.interceptors()
                #expect(try await service.GET("/start").string().value == Self.text)
                if RealSession.best.isCurl { #expect(server.connectionCount == expected, "\(sender), \(count)") }
            }
        }
    }

    @Test(
        "The body of a redirect that is followed is read up to 1 MiB", arguments: Consumption.allCases
    )
    func endless(consumption: Consumption) async throws {
        guard RealSession.best.isCurl else { return }
        var response = Sender.redirect.response
        response.data = Data(count: 64 << 10)
        response.wire = .endless
        let server = try server(response)
        #expect(try await consumption.text(RealSession.best.service(server)) == Self.text)
    }

    @Test(
        "The body of a redirect that is followed is awaited for one second",
        arguments: Consumption.allCases)
    func stalled(consumption: Consumption) async throws {
        guard RealSession.best.isCurl else { return }
        var response = Defect.cut.apply(to: Sender.redirect.response)
        response.wire = .stall(after: 2_000)
        let server = try server(response)
        let clock = ManualTimekeeper()
        let service = try WebService.make(
            RealSession.best.session(), base: server.baseURLString, timekeeper: clock)
        let text = Task { try await consumption.text(service) }
        // The alarms of the deadline and of the body.
        await eventually { clock.pending == 2 }
        clock.advance(by: .milliseconds(999))
        #expect(clock.pending == 2)
        clock.advance(by: .milliseconds(1))
        #expect(try await text.value == Self.text)
    }

    @Test(
        "The last response of a retry is an error with its status, fields, bytes and cause",
        arguments: RealSession.streaming, Consumption.allCases)
    func exhausted(session: RealSession, consumption: Consumption) async throws {
        for defect in Defect.allCases {
            var response = defect.apply(to: 503)
            response.headers["X-Field"] = "value"
            let server = try server(response, response)
            let service = try session.service(server)
            service.interceptors = [.retry(maximumAttempts: 2, baseDelay: .milliseconds(1))]
            let error = await #expect(throws: WebServiceError.self, "\(defect), \(consumption)") {
                try await consumption.text(service)
            }
            #expect(error?.code == .unacceptableStatus, "\(defect), \(consumption)")
            #expect(error?.response?.status == 503, "\(defect), \(consumption)")
            #expect(error?.response?.header("X-Field") == "value", "\(defect), \(consumption)")
            #expect(error?.underlying is URLError, "\(defect), \(consumption): \(error as Any)")
            if session.isCurl, defect == .cut {
                #expect((1..<2_000).contains(error?.body?.count ?? 0), "\(consumption)")
            }
        }
    }

    @Test("A request that accepts every status receives the error of the body")
    func accepted() async throws {
        let server = try server(Defect.cut.apply(to: 404), Defect.cut.apply(to: 404))
        let service = try RealSession.best.service(server)
        let whole = await #expect(throws: WebServiceError.self) {
            try await service.GET("/start").data().validate(statuses: [404]).value
        }
        #expect(whole?.code == .unacceptableStatus)
        let body = try await service.GET("/start").stream().validate(statuses: [404]).value.body
        var bytes = Data()
        let error = await #expect(throws: URLError.self) { for try await chunk in body { bytes += chunk } }
        #expect(error?.code == .networkConnectionLost)
        #expect((1..<2_000).contains(bytes.count))
    }

    @Test(
        "A HEAD request and a 304 have no body, whatever their fields describe",
        arguments: RealSession.allCases)
    func withoutBody(session: RealSession) async throws {
        for status in [200, 304, 404] {
            var response = MockResponse(statusCode: status)
            response.headers["Content-Encoding"] = "aes128gcm"
            response.headers[.contentLength] = "5000"
            let server = try MockServer.forTest()
            for method in [Request.Method.HEAD, .GET] where method == .HEAD || status == 304 {
                server.on(method, "/start", response)
                let service = try session.service(server)
                let task = (method == .HEAD ? service.HEAD("/start") : service.GET("/start")).data()
                let response = try? await task.validate(statuses: [200, 304, 404]).response  // nil is reported below
                #expect(response?.status == status, "\(method) \(status)")
            }
        }
    }

    @Test("The status of a MockSession decides as well", arguments: Sender.allCases)
    func mock(sender: Sender) async throws {
        for defect in [Defect.cut, .invalidChunk] {
            for consumption in Consumption.allCases {
                let session = MockSession()
                var end = MockResponse(statusCode: 200, data: Data(Self.text.utf8))
                end.headers[.contentType] = "text/event-stream"
                session.on(.GET, "/start", [defect.apply(to: sender.response), end])
                session.on(.GET, "/next", end)
                let service = WebService("https://h.example", session: session)
                service.interceptors = try sender.interceptors()
                #expect(try await consumption.text(service) == Self.text, "\(defect), \(consumption)")
            }
        }
    }
}
