import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: configuration", .permit)
struct CurlConfigurationTests {
    @Test(
        "The user agent is sent unchanged, defaults to the program, and is omitted if it is nil"
    )
    func userAgent() async throws {
        let server = try MockServer.forTest {
            MockResponse($0.headers.values(for: "User-Agent").joined(separator: "|"))
        }
        #expect(
            try await WebService(server, try CurlSession()).GET("/").string().value == Headers.program[.userAgent])
        #expect(
            try await WebService(server, try CurlSession { $0.userAgent = "Brewery/1.0 (pale; ale)" }).GET("/").string()
                .value
                == "Brewery/1.0 (pale; ale)")
        #expect(try await WebService(server, try CurlSession { $0.userAgent = nil }).GET("/").string().value == "")
        let own = WebService(server, try CurlSession()).GET("/").setHeaderValue("Ale", forName: "User-Agent")
        #expect(try await own.string().value == "Ale")
    }

    @Test(
        "A user agent with a byte that no field value may contain is an error before any request",
        arguments: 0..<256)
    func userAgentBytes(byte: Int) async throws {
        let isAllowed = byte >= 0x20 && byte != 0x7F || byte == 0x09
        for text in [
            "\(Character(UnicodeScalar(UInt8(byte))))ale", "a\(Character(UnicodeScalar(UInt8(byte))))le",
            "ale\(Character(UnicodeScalar(UInt8(byte))))",
        ] {
            let result = Result { try CurlSession { $0.userAgent = text } }
            #expect((result.error == nil) == isAllowed, "\(byte)")
            if !isAllowed { #expect(result.code == .curl) }
            #expect(Result { try CurlSession { $0.acceptLanguage = text } }.code == result.code)
        }
        for text in ["ale\r\nX-Evil: 1", "ale\nX-Evil: 1", "ale\r\n\r\nGET /evil HTTP/1.1", "ale\0"] {
            #expect(Result { try CurlSession { $0.userAgent = text } }.code == .curl, "\(text.debugDescription)")
        }
    }

    @Test(
        "A path or key with NUL, or a proxy with NUL or a line break, is an error that does not repeat it"
    )
    func strings() {
        for byte in ["\0", "\n", "\r\n"] {
            let changes: [(inout CurlSession.Configuration) -> Void] = [
                { $0.proxy = .url("http://u:secret@127.0.0.1:1\(byte)") },
                { $0.proxy = .url("http://u:\(byte)secret@127.0.0.1:1") },
                { $0.tls.trustedCertificatesFile = "/a\(byte)secret" },
                { $0.tls.pinnedPublicKeys = ["sha256//AAA=\(byte)secret"] },
                { $0.tls.clientCertificate = .init(certificateFile: "/a\(byte)secret", keyFile: "/b") },
                { $0.tls.clientCertificate = .init(certificateFile: "/a", keyFile: "/b\(byte)secret") },
                {
                    $0.tls.clientCertificate = .init(
                        certificateFile: "/a", keyFile: "/b", keyPassword: "a\(byte)secret")
                },
            ]
            // A path may contain a line break.
            for change in byte == "\0" ? changes : Array(changes.prefix(2)) {
                let result = Result { try CurlSession(change) }
                #expect(result.code == .curl)
                let text = "\(String(describing: result.error)) \(result.error?.localizedDescription ?? "")"
                #expect(!text.contains("secret"))
            }
        }
        #expect(Result { try CurlSession { $0.proxy = .url("") } }.code == .curl)
    }

    /// Durations that no clock and no integer of libcurl can represent.
    private static let allDurations: [Duration] = [
        .zero, .seconds(-1), .nanoseconds(-1), .nanoseconds(1), .seconds(Int64.max), .seconds(Int64.min),
        .seconds(Int64.max) + .milliseconds(999),
    ]

    @Test("A duration out of range is clamped to the nearest possible one", arguments: allDurations)
    func durations(duration: Duration) async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let session = try CurlSession { $0.idleConnectionLifetime = duration }
        #expect(try await WebService(server, session).GET("/").string().value == "ale")
        let connecting = try CurlSession { $0.connectTimeout = duration }
        let result = await WebService(server, connecting).GET("/").string().result
        // A millisecond may be too short even on loopback.
        #expect(
            (try? result.get()) == "ale" || duration <= .milliseconds(1) && result.urlErrorCode == .cannotConnectToHost,
            "\(result)")
    }

    @Test(
        "A count out of range is clamped to the nearest possible one",
        arguments: [Int.min, -1, 0, 1, Int.max])
    func counts(count: Int) async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let session = try CurlSession {
            $0.maximumConnectionsPerHost = count
            $0.maximumConnections = count
            $0.maximumIdleConnections = count
            $0.loops = min(count, 3)
        }
        let service = WebService(server, session)
        for _ in 0..<3 { #expect(try await service.GET("/").string().value == "ale") }
        let narrow = WebService(server, try CurlSession { $0.maximumHeaderBytes = count })
        let result = await narrow.GET("/").string().result
        if count > 1 { #expect(try result.get() == "ale") } else { #expect(result.code == .responseTooLarge) }
    }

    @Test(
        "A request's connect timeout that is not a duration is an error or clamped, and never traps",
        arguments: allDurations + [.nanoseconds(1) / 1_000_000_000])
    func requestTimeouts(timeout: Duration) async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let session = try CurlSession()
        let service = WebService(server, session)
        var request = service.request(.GET, path: "/")
        request.options.connectTimeout = timeout
        let result = await service.sessionTask(request: request).string().result
        if timeout > .zero {
            #expect(
                (try? result.get()) == "ale"
                    || timeout < .milliseconds(1) && result.urlErrorCode == .cannotConnectToHost,
                "\(result)")
        } else {
            #expect(result.code == .encoding, "\(result)")
        }
        var silent = Request(.GET, url: server.baseURLString)
        silent.options.timeout = timeout
        let ended: Result<Response, any Error> = await withCheckedContinuation { continuation in
            session.responseTask(request: silent, progress: nil) { result, _ in continuation.resume(returning: result) }
                .resume()
        }
        #expect(ended.error == nil || ended.code == .encoding || ended.urlErrorCode == .timedOut, "\(ended)")
    }

    @Test("A maximum body size out of range never traps", arguments: [Int.min, -1, 0, 2, 3, Int.max])
    func longestBody(count: Int) async throws {
        let server = try MockServer.forTest {
            $0.path == "/chunked" ? MockResponse("ale", wire: .chunked(size: 2)) : MockResponse("ale")
        }
        let service = WebService(server, try CurlSession())
        for path in ["/", "/chunked"] {
            var request = service.request(.GET, path: path)
            request.options.maximumResponseBytes = count
            let result = await service.sessionTask(request: request).string().result
            if count >= 3 {
                #expect(try result.get() == "ale")
            } else {
                #expect(result.code == .responseTooLarge, "\(result)")
            }
        }
    }

    @Test("No dump, description or error contains the password of a proxy or of a key")
    func passwords() async throws {
        let secrets = ["proxy-secret", "key-secret", "proxy-user"]
        for proxy in [
            "http://proxy-user:proxy-secret@127.0.0.1:1", "proxy-user:proxy-secret@127.0.0.1:1",
            "http://proxy-user:a/@proxy-secret@127.0.0.1:1",
            "ftp://proxy-user:proxy-secret@127.0.0.1:1", "http://proxy-user:proxy-secret@127.0.0.1:99999",
            "http://proxy-user:proxy-secret@[::",
        ] {
            var configuration = CurlSession.Configuration()
            configuration.proxy = .url(proxy)
            configuration.tls.clientCertificate = .init(
                certificateFile: "/client.pem", keyFile: "/client.key", keyPassword: "key-secret")
            var text =
                "\(configuration) \(String(reflecting: configuration)) \(configuration.proxy) \(String(reflecting: configuration.proxy))"
            text += " \(configuration.tls) \(String(describing: configuration.tls.clientCertificate))"
            dump(configuration, to: &text)
            dump(configuration.proxy, to: &text)
            dump(configuration.tls.clientCertificate, to: &text)
            Self.walk(Mirror(reflecting: configuration), into: &text)
            let service = WebService(baseURLString: "http://127.0.0.1:2")
            configuration.tls.clientCertificate = nil
            var error: (any Error)?
            do {
                let session = try CurlSession(configuration: configuration)
                dump(session, to: &text)
                service.session = session
                let task = service.GET("/")
                error = await task.string().result.error
                text += " \(task.httpArchive().count)"
            } catch let refused {
                error = refused
            }
            text += " \(String(describing: error)) \(error?.localizedDescription ?? "none")"
            dump(error, to: &text)
            for secret in secrets { #expect(!text.contains(secret), "\(secret) in \(text)") }
            #expect(text.contains("/client.key"))
            #expect((text.contains("127.0.0.1") || !proxy.contains("127.0.0.1")))
        }
        #expect("\(CurlSession.Proxy.environment) \(CurlSession.Proxy.none)" == "environment none")
        #expect("\(CurlSession.Proxy.url("socks5h://u:p@h:1080"))" == "socks5h://h:1080")
    }

    @Test(
        "A character that combines with a delimiter does not reveal the password of a proxy",
        arguments: [
            ("http://u:canary@\u{301}h:80", "http://\u{301}h:80"), ("http://u:canary\u{600}@h", "http://h"),
            ("http://\u{301}u:canary@h", "http://h"),
            ("u:canary@\u{301}h://x", "url"), ("u:canary@\u{301}h", "\u{301}h"),
            ("http://h\u{600}/canary", "http://h\u{600}"),
            ("http://h?\u{301}canary", "http://h"), ("http://h#\u{301}canary", "http://h"),
        ])
    func combiningCharacters(url: String, expected: String) {
        #expect(Array(CurlSession.Proxy.url(url).description.utf8) == Array(expected.utf8))
    }

    private static func walk(_ mirror: Mirror, into text: inout String) {
        for child in mirror.children {
            text += " \(child.value)"
            walk(Mirror(reflecting: child.value), into: &text)
        }
    }
}
