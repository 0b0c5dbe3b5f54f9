import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

@testable import WebServiceMocking
@testable import WebServiceServer

/// What belongs to a request on a connection with HTTP/2, or in a chunked body.
@Suite("Curl session: bytes that belong to no request", .permit)
struct CurlFrameTests {
    private static let isPossible = StrayServer.python != nil && SecureServer.isAvailable

    /// Created once, because the keys take time.
    private static let certificates = Result { try SecureServer() }

    private func service(_ behavior: FrameServer.Behavior) throws -> (WebService, FrameServer) {
        let certificates = try Self.certificates.get()
        let server = try FrameServer(behavior, certificates)
        let service = WebService(
            "https://localhost:\(server.port)",
            session: try CurlSession { $0.tls.trustedCertificatesFile = certificates.path("ca.pem") })
        return (service, server)
    }

    @Test(
        "PING frames do not extend the idle timeout of a stream, and its connection is not used again",
        .enabled(if: isPossible, "python3, nginx or openssl is missing"),
        arguments: [FrameServer.Behavior.ping, .head], [false, true])
    func pings(_ behavior: FrameServer.Behavior, isUpload: Bool) async throws {
        let (service, server) = try service(behavior)
        let body = isUpload ? Data(count: 40_000) : nil
        // A busy machine may need some time for the handshake.
        let task = service.task(isUpload ? .PUT : .GET, body).setTimeout(.seconds(2)).setDeadline(.seconds(60))
        let result = await task.data().result
        #expect(result.urlErrorCode == .timedOut)
        let text = try await service.GET("/").string().value
        #expect(text == "2")
        withExtendedLifetime(server) {}
    }

    @Test(
        "Bytes of its body extend the idle timeout of a stream, and the deadline closes its connection",
        .enabled(if: isPossible, "python3, nginx or openssl is missing"))
    func drip() async throws {
        let (service, server) = try service(.drip)
        // A busy machine may delay a byte.
        let result = await service.GET("/").setTimeout(.seconds(4)).setDeadline(.seconds(6)).data().result
        #expect(result.code == .deadline)
        let text = try await service.GET("/").string().value
        #expect(text == "2")
        withExtendedLifetime(server) {}
    }

    @Test(
        "After a response that is too large, a connection with HTTP/2 is not used again",
        .enabled(if: isPossible, "python3, nginx or openssl is missing"))
    func large() async throws {
        let (service, server) = try service(.large)
        let task = service.GET("/").configure { $0.options.maximumResponseBytes = 10_000 }
        #expect(await task.data().result.code == .responseTooLarge)
        let text = try await service.GET("/").string().value
        #expect(text == "2")
        withExtendedLifetime(server) {}
    }

    @Test(
        "A request that the server has not processed is sent again over HTTP/2 if its method is idempotent",
        .enabled(if: isPossible, "python3, nginx or openssl is missing"),
        arguments: [FrameServer.Behavior.goAway, .goAwayAndClose, .refused], [Request.Method.GET, .POST])
    func unprocessed(_ behavior: FrameServer.Behavior, method: Request.Method) async throws {
        let (service, server) = try service(behavior)
        let result = await service.task(method, nil).setTimeout(.seconds(30)).string().result
        if method == .GET {
            #expect(["1", "2"].contains(try result.get()))
        } else {
            #expect(result.urlErrorCode == .networkConnectionLost)
        }
        withExtendedLifetime(server) {}
    }

    @Test("An endless chunk extension ends the request after ten idle timeouts")
    func endlessExtension() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(
                Data(), wire: .raw(Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=".utf8)))
            response.surplus = { while $0.write(Data("aaaa".utf8)) { $0.pause(for: .milliseconds(10)) } }
            return response
        }
        let service = WebService(server, try CurlSession())
        let result = await service.GET("/").setTimeout(.milliseconds(100)).setDeadline(.seconds(60)).data().result
        #expect(result.urlErrorCode == .timedOut)
    }
}

extension WebService {
    fileprivate func task(_ method: Request.Method, _ body: Data?) -> SessionTask {
        var request = request(method, path: "/")
        if let body { request.content = .data(body) }
        return sessionTask(request: request)
    }
}
