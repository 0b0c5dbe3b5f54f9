import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

@Suite("Curl session: errors", .permit)
struct CurlErrorTests {
    /// The error codes of libcurl that the Guide names.
    private static let names: [String: UInt32] = [
        "UNSUPPORTED_PROTOCOL": 1, "URL_MALFORMAT": 3, "COULDNT_RESOLVE_PROXY": 5, "COULDNT_RESOLVE_HOST": 6,
        "COULDNT_CONNECT": 7,
        "WEIRD_SERVER_REPLY": 8,
        "REMOTE_ACCESS_DENIED": 9, "HTTP2": 16, "PARTIAL_FILE": 18, "HTTP_RETURNED_ERROR": 22, "READ_ERROR": 26,
        "OPERATION_TIMEDOUT": 28,
        "SSL_CONNECT_ERROR": 35, "ABORTED_BY_CALLBACK": 42, "INTERFACE_FAILED": 45, "TOO_MANY_REDIRECTS": 47,
        "GOT_NOTHING": 52,
        "SSL_ENGINE_NOTFOUND": 53,
        "SSL_ENGINE_SETFAILED": 54, "SEND_ERROR": 55, "RECV_ERROR": 56, "SSL_CERTPROBLEM": 58, "SSL_CIPHER": 59,
        "PEER_FAILED_VERIFICATION": 60,
        "BAD_CONTENT_ENCODING": 61, "FILESIZE_EXCEEDED": 63, "USE_SSL_FAILED": 64, "SEND_FAIL_REWIND": 65,
        "SSL_ENGINE_INITFAILED": 66,
        "LOGIN_DENIED": 67,
        "SSL_CACERT_BADFILE": 77, "SSL_SHUTDOWN_FAILED": 80, "SSL_CRL_BADFILE": 82, "SSL_ISSUER_ERROR": 83,
        "SSL_PINNEDPUBKEYNOTMATCH": 90,
        "SSL_INVALIDCERTSTATUS": 91, "HTTP2_STREAM": 92, "AUTH_ERROR": 94, "HTTP3": 95, "QUIC_CONNECT_ERROR": 96,
        "PROXY": 97, "SSL_CLIENTCERT": 98,
        "TOO_LARGE": 100,
    ]

    private static let codes: [String: URLError.Code] = [
        "unsupportedURL": .unsupportedURL, "badURL": .badURL, "cannotFindHost": .cannotFindHost,
        "cannotConnectToHost": .cannotConnectToHost,
        "timedOut": .timedOut, "cancelled": .cancelled, "badServerResponse": .badServerResponse,
        "networkConnectionLost": .networkConnectionLost,
        "cannotDecodeContentData": .cannotDecodeContentData, "dataLengthExceedsMaximum": .dataLengthExceedsMaximum,
        "requestBodyStreamExhausted": .requestBodyStreamExhausted, "httpTooManyRedirects": .httpTooManyRedirects,
        "userAuthenticationRequired": .userAuthenticationRequired, "secureConnectionFailed": .secureConnectionFailed,
        "serverCertificateUntrusted": .serverCertificateUntrusted,
        "clientCertificateRejected": .clientCertificateRejected,
        "clientCertificateRequired": .clientCertificateRequired, "unknown": .unknown,
    ]

    @Test(
        "An error contains no URL with user information, even if a character combines with the @",
        arguments: ["@", "@\u{301}", "\u{600}@"])
    func userInformation(at: String) {
        let error = CurlError.error(CURLE_COULDNT_RESOLVE_PROXY, "Could not resolve u:canary\(at)h")
        #expect(!error.localizedDescription.contains("u:canar"))
        #expect(error.code == .cannotFindHost)
    }

    @Test(
        "A connection that is closed within the head or the body is lost",
        arguments: [1, 16, 17, 50, 200])
    func cut(count: Int) async throws {
        let server = try MockServer()
        var response = MockResponse.text(String(repeating: "ale", count: 100))
        response.wire = .cut(after: count)
        server.on(.any, response)
        let service = WebService(server.baseURLString, session: try CurlSession())
        let error = await #expect(throws: URLError.self) { try await service.GET("/").string().value }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test("rule 7: Every error code of libcurl is mapped to the URLError that the Guide specifies")
    func table() throws {
        let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../..").standardized
        let article = root.appendingPathComponent("Sources/WebServiceCurl/WebServiceCurl.docc/ErrorsOfCurlSession.md")
        let page = try String(contentsOf: article, encoding: .utf8)
        var expected: [UInt32: URLError.Code] = [:]
        for line in page.split(separator: "\n") where line.hasPrefix("| `CURLE_") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
            let code = try #require(Self.codes[cells[1]], "\(cells[1])")
            for name in line.matches(of: /CURLE_(\w+)/) {
                expected[try #require(Self.names[String(name.1)], "\(name.1)")] = code
            }
        }
        #expect(expected.count == Self.names.count)
        for code in 1..<max(CURL_LAST.rawValue, 128) {
            #expect(CurlError.code(CURLcode(rawValue: code)) == expected[code] ?? .unknown, "\(code)")
        }
    }

    @Test("The error codes match the installed libcurl")
    func numbers() {
        for (name, code) in [
            ("HTTP2", CURLE_HTTP2), ("PROXY", CURLE_PROXY), ("SSL_CLIENTCERT", CURLE_SSL_CLIENTCERT),
            ("AUTH_ERROR", CURLE_AUTH_ERROR),
        ] {
            #expect(Self.names[name] == code.rawValue)
        }
    }

    @Test("The description of an error is the error text of libcurl")
    func text() {
        #expect(CurlError.error(CURLE_COULDNT_CONNECT, "").localizedDescription.isEmpty == false)
        #expect(
            CurlError.error(CURLE_COULDNT_CONNECT, "Connection refused").localizedDescription == "Connection refused")
    }
}
