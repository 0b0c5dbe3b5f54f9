import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Errors of transports", .permit)
struct TransportErrorTests {
    private func cause(_ error: URLError?) -> NSError? { error?.userInfo[NSUnderlyingErrorKey] as? NSError }

    @Test("A POSIX error becomes a URLError with the POSIX error as its cause")
    func posix() {
        let error = URLError(transport: NSError(domain: NSPOSIXErrorDomain, code: Int(ECONNREFUSED)))
        #expect(error?.code == .cannotConnectToHost)
        #expect(cause(error)?.domain == NSPOSIXErrorDomain)
        #expect(cause(error)?.code == Int(ECONNREFUSED))
    }

    @Test("The POSIX cause of a URLError is preserved without its other values")
    func cause() {
        let posix = NSError(
            domain: NSPOSIXErrorDomain, code: Int(ECONNRESET), userInfo: ["url": "canary"])
        let error = URLError(transport: URLError(.networkConnectionLost, userInfo: [NSUnderlyingErrorKey: posix]))
        #expect(error?.code == .networkConnectionLost)
        #expect(cause(error)?.code == Int(ECONNRESET))
        #expect(cause(error)?.userInfo.isEmpty == true)
    }

    private func failure<Value>(of task: TypedTask<Value>) async throws -> any Error {
        try #require(await #expect(throws: (any Error).self) { try await task.value })
    }

    private static let codes: [URLError.Code] = [
        .cancelled, .timedOut, .notConnectedToInternet, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost,
        .dnsLookupFailed, .badURL, .unsupportedURL, .badServerResponse, .secureConnectionFailed,
        .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
        .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
        .userAuthenticationRequired, .cannotDecodeContentData, .dataLengthExceedsMaximum, .httpTooManyRedirects,
        .requestBodyStreamExhausted, .resourceUnavailable,
    ]

    @Test("The error of a request is described by its code, a remedy, the method and the URL", arguments: codes)
    func descriptions(code: URLError.Code) async throws {
        let service = WebService.make(HandSession { $0.completion(nil, nil, URLError(code)) })
        let task = service.POST("/orders;v=canary").setQueryParameters(["token": "canary"]).data()
        let error = try await failure(of: task)
        let text = "\(error)"
        #if canImport(FoundationNetworking)
        #expect(text.hasPrefix("\(code) (\(code.rawValue)): "))  // on Linux, codes print their names
        #expect(text == "\(code) (\(code.rawValue)): \(error.localizedDescription) (POST https://h/v1/orders)")
        #endif
        #expect(text.contains("; "))
        #expect(text.hasSuffix(" (POST https://h/v1/orders)"))
        #expect(!text.contains("canary"))
        #expect(text == String(reflecting: error))
        #expect((error as? URLError)?.code == code)
        #expect((error as NSError).domain == NSURLErrorDomain)
        #expect((error as NSError).code == code.rawValue)
    }

    @Test("The message of a session replaces the general one, and the remedy if it has one")
    func messages() async throws {
        func text(_ message: String) async throws -> String {
            let cause = URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: message])
            let service = WebService.make(HandSession { $0.completion(nil, nil, cause) })
            let error = try await failure(of: service.GET("/a").data())
            #expect(error.localizedDescription == message)
            return "\(error)"
        }
        #expect(
            try await text("Connection refused.")
                == "cannotConnectToHost (-1004): Connection refused; check that the server is running and that the "
                + "host and the port are correct (GET https://h/v1/a)")
        #expect(
            try await text("the proxy refused; set another one")
                == "cannotConnectToHost (-1004): the proxy refused; set another one (GET https://h/v1/a)")
        #expect(try await text(String(repeating: "x", count: 5_000)).utf8.count < 1_100)
        #expect(try await !text("a\nb").contains("\n"))
        #expect(
            try await text("refused by https://p/a?token=canary, and by http://u:canary@p/")
                == "cannotConnectToHost (-1004): refused by https://p/a and by (URL); check that the server is running "
                + "and that the host and the port are correct (GET https://h/v1/a)")
    }

    @Test("A cancellation is described, and remains equal to URLError.cancelled")
    func cancellation() async throws {
        let task = WebService.make().GET("/a").data().resume()
        task.cancel()
        let error = try await failure(of: task)
        #expect("\(error)".hasPrefix("cancelled (-999): the request was cancelled; "))
        #expect("\(error)".hasSuffix(" (GET https://h/v1/a)"))
        #expect(error as? URLError == URLError(.cancelled))
    }

    @Test("Interceptors receive the description, and an error that is passed on is described once")
    func once() async throws {
        let seen = Collected<String>()
        let inner = WebService.make(HandSession { $0.completion(nil, nil, URLError(.timedOut)) })
        inner.interceptors = [
            .closure { request, next in
                do { return try await next(request) } catch {
                    seen.add("\(error)")
                    throw error
                }
            }
        ]
        let outer = WebService.make()
        outer.interceptors = [.closure { _, _ in try await inner.GET("/inner").data().response }]
        let error = try await failure(of: outer.GET("/outer").data())
        #expect(seen.values == ["\(error)"])
        #expect(
            "\(error)".hasSuffix(
                "; send the request again if that is safe, or increase 'timeout' (GET https://h/v1/inner)"))
    }

    @Test("A pinned key that does not match is still the cause of a described error")
    func pinnedKey() async throws {
        let mismatch = URLError.PinnedKeyMismatch(expected: ["sha256//a"], presented: "sha256//b")
        let cause = URLError(.serverCertificateUntrusted, userInfo: [NSUnderlyingErrorKey: mismatch])
        let service = WebService.make(HandSession { $0.completion(nil, nil, cause) })
        do {
            _ = try await service.GET("/a").data().value
            Issue.record("The request must fail.")
        } catch let error as URLError {
            #expect(error.pinnedKeyMismatch == mismatch)
            #expect(
                "\(error)"
                    == "serverCertificateUntrusted (-1202): the certificate of the server is not trusted; if the server "
                    + "has another key, add its pin (GET https://h/v1/a)")
        }
    }

    @Test("A cause of another domain is omitted, because it may contain a URL")
    func otherDomain() {
        let other = NSError(domain: "canary", code: 1, userInfo: ["url": "canary"])
        let error = URLError(transport: URLError(.timedOut, userInfo: [NSUnderlyingErrorKey: other]))
        #expect(error?.code == .timedOut)
        #expect(cause(error) == nil)
    }
}
