import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The use of connections.
extension SessionScenario {
    static let connections: [SessionScenario] = [
        SessionScenario("persistent connections are reused", requiresSocket: true) { stage in
            for _ in 0..<60 { try stage.expect(.response(200, ""), await stage.send(stage.request())) }
            let count = stage.server?.connectionCount ?? 0
            try stage.expect(count < 60, "fewer than 60 connections for 60 requests", "\(count) connections")
        },
        SessionScenario("bytes after a response are not the response to the next request", requiresSocket: true) {
            stage in
            stage.serve { request in
                guard request.target == "/surplus" else { return ScenarioReply(200, "good") }
                var response = MockResponse(statusCode: 200)
                response.wire = .raw(
                    Data("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale".utf8)
                        + Data("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".utf8))
                return ScenarioReply(response)
            }
            for _ in 0..<5 {
                try stage.expect(.either(.response(200, "ale"), .broken), await stage.send(stage.request("/surplus")))
                try stage.expect(.response(200, "good"), await stage.send(stage.request()))
            }
        },
        SessionScenario(
            "GET succeeds after the server closed the connection between two requests", requiresSocket: true
        ) {
            stage in
            stage.serve { _ in closing }
            for _ in 0..<20 { try stage.expect(.response(200, "ale"), await stage.send(stage.request())) }
        },
        SessionScenario(
            "POST on a connection that the server has closed completes in time and is not sent twice",
            requiresSocket: true
        ) { stage in
            stage.serve { _ in closing }
            for number in 1...5 {
                try stage.expect(.response(200, "ale"), await stage.send(stage.request()))
                try await completes(try post(stage, "/\(number)"), in: stage)
            }
            try expectOnce(stage)
        },
        SessionScenario(
            "POST on a reused connection that ends without a response completes in time and is not sent twice",
            requiresSocket: true
        ) { stage in
            stage.serve { request in
                guard request.method == "POST" else { return ScenarioReply(200) }
                var response = MockResponse(statusCode: 200)
                response.wire = .disconnect
                return ScenarioReply(response)
            }
            for number in 1...5 {
                try stage.expect(.response(200, ""), await stage.send(stage.request()))
                try await completes(try post(stage, "/\(number)"), in: stage)
            }
            try expectOnce(stage)
        },
        SessionScenario("each of 200 concurrent requests receives its own response") { stage in
            stage.serve { ScenarioReply(200, $0.target) }
            let exchanges = try (0..<200).map { try stage.begin(stage.request("/\($0)?nonce=\($0 &* 7919)")) }
            for exchange in exchanges { exchange.resume() }
            for (number, exchange) in exchanges.enumerated() {
                try stage.expect(
                    .response(200, "/\(number)?nonce=\(number &* 7919)"), await stage.outcome(of: exchange))
            }
            try stage.expect("requests", stage.requests.count, is: 200)
        },
        SessionScenario("a port without a listener is cannotConnectToHost") { stage in
            try await failsToReach(stage, try vacantAddress(), .cannotConnectToHost)
        },
        SessionScenario("a host name that does not exist is cannotFindHost") { stage in
            try await failsToReach(stage, "http://nothing.invalid", .cannotFindHost)
        },
    ]

    /// A complete response without `Connection: close` whose connection is closed afterwards.
    private static var closing: ScenarioReply {
        var response = MockResponse(statusCode: 200, data: Data("ale".utf8))
        response.wire = .cut(after: .max)
        return ScenarioReply(response)
    }

    private static func post(_ stage: ScenarioStage, _ path: String) throws -> ScenarioTask {
        var request = stage.request(path, .POST)
        request.body = Data("pay".utf8)
        request.options.timeout = .seconds(3)
        return try stage.begin(request)
    }

    private static func completes(_ exchange: ScenarioTask, in stage: ScenarioStage) async throws {
        exchange.resume()
        let outcome = try await stage.outcome(of: exchange)
        try stage.expect(.either(.response(200, "ale"), .broken), outcome, "POST: ")
    }

    private static func expectOnce(_ stage: ScenarioStage) throws {
        let targets = stage.requests.filter { $0.method == "POST" }.map(\.target)
        try stage.expect(
            Set(targets).count == targets.count, "each POST at most once", "POST of \(targets.joined(separator: ", "))")
    }

    private static func vacantAddress() throws -> String {
        let server = try MockServer()
        server.stop()
        return server.baseURLString
    }

    private static func failsToReach(_ stage: ScenarioStage, _ base: String, _ code: URLError.Code) async throws {
        stage.serve { _ in ScenarioReply(MockResponse(statusCode: 200), mock: URLError(code)) }
        let request = stage.server == nil ? stage.request() : Request(.GET, url: base + "/")
        try stage.expect(.failure([code]), await stage.send(request))
    }
}
