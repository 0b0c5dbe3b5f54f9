import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

/// The table of the article: which responses remove an entry.
@Suite("What counts as delivered in an outbox", .permit)
struct OutboxDeliveryTests {
    enum Outcome: Sendable, Equatable {
        case delivered
        /// The closure decides, and the entry remains.
        case decided(Int?)
        case repeated
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var method = Request.Method.POST
        var responses: [String: MockResponse]
        var accept: String?
        let outcome: Outcome
        let note: String

        var testDescription: String { note }

        init(
            _ note: String, _ outcome: Outcome, _ method: Request.Method = .POST, accept: String? = nil,
            responses: [String: MockResponse]
        ) {
            (self.note, self.outcome, self.method, self.accept) = (note, outcome, method, accept)
            self.responses = responses
        }

        static func status(_ status: Int, _ outcome: Outcome) -> Row {
            Row("status \(status)", outcome, responses: ["/a": MockResponse(statusCode: status)])
        }

        /// A response whose body ends with an error.
        static func broken(_ status: Int, _ outcome: Outcome) -> Row {
            var response = MockResponse(statusCode: status, data: Data("part".utf8))
            response.wire = .invalidChunk
            return Row("status \(status), broken", outcome, responses: ["/a": response])
        }

        static func redirect(
            _ status: Int, _ method: Request.Method, to location: String, _ outcome: Outcome
        ) -> Row {
            let redirect = MockResponse(statusCode: status, headers: ["Location": location])
            let page = MockResponse(statusCode: 200, headers: ["Content-Type": "text/plain"])
            return Row(
                "\(status) of \(method.rawValue) to \(location)", outcome, method,
                responses: ["/a": redirect, "/b": page])
        }

        static func type(
            _ type: String?, _ outcome: Outcome, accept: String? = nil, status: Int = 200, body: String = "<p>"
        ) -> Row {
            let headers = type.map { ["Content-Type": $0] } ?? [:]
            let response = MockResponse(statusCode: status, headers: headers, data: Data(body.utf8))
            return Row(
                "\(status), \(type ?? "no type") for \(accept ?? "any"): '\(body.prefix(10))'", outcome, accept: accept,
                responses: ["/a": response])
        }
    }

    private func outcome(_ row: Row) async throws -> Outcome {
        let fixture = OfflineFixture()
        fixture.service.options.maximumResponseBytes = Self.maximumBytes
        let failures = Collected<Outbox.Failure>()
        for (path, response) in row.responses { fixture.mock.on(.path(path), response).optional() }
        let outbox = try await fixture.open {
            failures.add($0)
            return .keep
        }
        var request = fixture.service.request(row.method, path: "/a")
        if ![.GET, .HEAD].contains(row.method) { request.content = .data(Data("x".utf8)) }
        request.headers["Accept"] = row.accept
        try await outbox.submit(request, entity: "a")
        await fixture.clock.advance(by: .zero)
        let entries = await outbox.entries
        await outbox.close()
        if let failure = failures.values.first {
            #expect(entries.map(\.state) == [.blocked])
            return .decided(failure.response?.status)
        }
        return entries.isEmpty ? .delivered : .repeated
    }

    static let statuses: [Row] =
        [200, 201, 202, 203, 204, 205, 206, 208, 226, 299].map { .status($0, .delivered) }
        + [207].map { .status($0, .decided($0)) }
        + [300, 301, 302, 303, 304, 305, 307, 308].map { .status($0, .decided($0)) }
        + [400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 417, 418, 421, 422, 423, 424]
        .map { .status($0, .decided($0)) }
        + [426, 428, 431, 451, 499, 501, 505, 507, 508, 510, 511, 600, 999].map { .status($0, .decided($0)) }
        + [408, 425, 429, 500, 502, 503, 504].map { .status($0, .repeated) }

    static let broken: [Row] =
        [300, 303, 400, 401, 403, 404, 409, 422, 501].map { .broken($0, .decided($0)) }
        + [200, 201, 408, 425, 429, 500, 502, 503, 504].map { .broken($0, .repeated) }

    static let redirects: [Row] =
        [301, 302, 303, 307, 308].flatMap { status -> [Row] in
            let methods: [Request.Method] = [.POST, .PUT, .PATCH, .DELETE]
            return methods.flatMap { method -> [Row] in
                let changesMethod = status == 303 || status < 303 && method == .POST
                return [
                    .redirect(status, method, to: "/b", changesMethod ? .decided(status) : .delivered),
                    .redirect(status, method, to: "https://login.test/b", .decided(status)),
                    .redirect(status, method, to: "//login.test:8443/b", .decided(status)),
                ]
            }
        } + [
            // No change of the method.
            .redirect(303, .GET, to: "/b", .delivered), .redirect(302, .GET, to: "/b", .delivered),
            .redirect(302, .HEAD, to: "/b", .delivered), .redirect(302, .GET, to: "https://login.test/", .decided(302)),
            // An error.
            .redirect(307, .POST, to: "ftp://login.test/b", .decided(nil)),
            .redirect(307, .POST, to: "/a", .decided(nil)),
        ]

    private static let otherTypes: [String?] = [
        "application/json", "application/problem+json", "text/plain", "application/xml", "application/octet-stream",
        "text/htmlx", "", nil,
    ]
    static let types: [Row] =
        otherTypes.map { .type($0, .delivered) }
        + ["text/html", "TEXT/HTML; charset=utf-8", " text/html ", "application/xhtml+xml"].map {
            .type($0, .decided(200))
        } + [
            .type("text/html", .decided(201), status: 201), .type("text/html", .decided(200), accept: "*/*"),
            .type("text/html", .decided(200), accept: "application/json"),
            .type("text/html", .delivered, accept: "text/html"),
            .type("text/html", .delivered, accept: "application/json, text/html;q=0.5"),
            // Longer than the maximum of the service, so that the body is not received.
            .type("text/html", .decided(200), body: String(repeating: "x", count: maximumBytes + 1)),
            .type("text/plain", .delivered, body: String(repeating: "x", count: maximumBytes + 1)),
            .type("text/html", .decided(207), status: 207, body: ""),
        ]
    static let emptyPages: [Row] = [200, 201, 202, 204, 205].map {
        .type("text/html", .delivered, status: $0, body: "")
    }
    private static let maximumBytes = 100

    @Test("A status removes the entry, repeats the request or leaves the decision")
    func statuses() async throws {
        for row in Self.statuses { #expect(try await outcome(row) == row.outcome, "\(row.note)") }
    }

    @Test("A status other than 200 to 299 decides even if the body is broken or too large")
    func broken() async throws {
        for row in Self.broken { #expect(try await outcome(row) == row.outcome, "\(row.note)") }
        let long = String(repeating: "x", count: Self.maximumBytes + 1)
        for status in [303, 403, 422] {
            let row = Row.type("text/plain", .decided(status), status: status, body: long)
            #expect(try await outcome(row) == row.outcome, "\(row.note)")
        }
    }

    @Test(
        "The response in an error of an interceptor, which may be that to another request, does not decide")
    func foreignResponse() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/a", .status(422))
        fixture.service.interceptors = [
            .closure { request, next in
                let response = try await next(request)
                throw WebServiceError(.unacceptableStatus, "the token was refused", response: response)
            }
        ]
        let failures = Collected<Outbox.Failure>()
        let outbox = try await fixture.open {
            failures.add($0)
            return .keep
        }
        try await outbox.submit(fixture.service.request(.POST, path: "/a"))
        await fixture.clock.advance(by: .zero)
        #expect(await outbox.entries.map(\.lastFailure) == [.error(.unacceptableStatus)])
        #expect(failures.values.isEmpty)
        await outbox.close()
    }

    @Test(
        "A redirect that changes the method or the origin is not followed and not a delivery")
    func redirects() async throws {
        for row in Self.redirects { #expect(try await outcome(row) == row.outcome, "\(row.note)") }
    }

    @Test("An HTML page is not a delivery unless it is empty or the request accepts one")
    func types() async throws {
        for row in Self.types + Self.emptyPages { #expect(try await outcome(row) == row.outcome, "\(row.note)") }
    }

    @Test("A session that has expired loses no change of an entity, and the retry sends all in order")
    func session() async throws {
        let fixture = OfflineFixture()
        let isLoggedIn = Mutex(false)
        fixture.mock.on(.POST, "/a/{n}") { _ in
            isLoggedIn.withLock { $0 }
                ? .status(201) : MockResponse(statusCode: 302, headers: ["Location": "https://login.test/"])
        }
        let outbox = try await fixture.open()
        for number in 0..<3 {
            try await outbox.submit(fixture.service.request(.POST, path: "/a/\(number)"), entity: "a")
        }
        await fixture.clock.advance(by: .seconds(1_000))
        #expect(fixture.paths == ["/a/0"])
        #expect(await outbox.entries.map(\.state) == [.blocked, .waiting, .waiting])
        isLoggedIn.withLock { $0 = true }
        outbox.retry()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/0", "/a/1", "/a/2"])
        #expect(await outbox.entries == [])
    }
}
