import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: proxies", .permit)
struct CurlProxyTests {
    private static func refusing(_ status: Int) throws -> MockServer {
        try MockServer { request in
            var response = MockResponse(statusCode: status, data: Data("who are you?".utf8))
            response.headers["Proxy-Authenticate"] = #"Basic realm="proxy""#
            return response
        }
    }

    @Test("A 407 to a request over HTTP is delivered as the response")
    func plain() async throws {
        let proxy = try Self.refusing(407)
        defer { proxy.stop() }
        for userinfo in ["", "proxy-user:proxy-secret@"] {
            let service = WebService(
                "http://brewhapi.invalid",
                session: try CurlSession { $0.proxy = .url("http://\(userinfo)127.0.0.1:\(proxy.port)") })
            let response = try await service.GET("/").data().validateNothing().response
            #expect(response.status == 407)
            #expect(response.header("Proxy-Authenticate") == #"Basic realm="proxy""#)
            #expect(response.data == Data("who are you?".utf8))
            #expect(response.attempts == 1)
        }
        #expect(
            proxy.receivedRequests.map { $0.headers["Proxy-Authorization"] } == [
                nil, "Basic cHJveHktdXNlcjpwcm94eS1zZWNyZXQ=",
            ])
    }

    @Test(
        "A proxy that refuses the tunnel is a typed error with the status and without the password",
        arguments: [
            (407, URLError.Code.userAuthenticationRequired), (403, .cannotConnectToHost), (502, .cannotConnectToHost),
        ])
    func tunnel(status: Int, code: URLError.Code) async throws {
        let proxy = try Self.refusing(status)
        defer { proxy.stop() }
        let service = WebService(
            "https://brewhapi.invalid",
            session: try CurlSession { $0.proxy = .url("http://proxy-user:proxy-secret@127.0.0.1:\(proxy.port)") })
        let result = await service.GET("/").string().result
        #expect(result.urlErrorCode == code, "\(result)")
        let text = "\(result) \(result.error?.localizedDescription ?? "")"
        #expect(text.contains("\(status)"))
        #expect(!text.contains("proxy-secret"))
        #expect(text.contains("the user name and password of the proxy") == (status == 407))
        let received = proxy.receivedRequests
        #expect(received.map(\.target) == ["brewhapi.invalid:443"])
        #expect(received.first?.method == "CONNECT")
    }

    @Test(
        "A SOCKS5 proxy that rejects the password, or requires one, is userAuthenticationRequired",
        arguments: ["http", "https"], [true, false])
    func socks(scheme: String, readsPassword: Bool) async throws {
        let proxy = try BytePeer { connection in
            guard !connection.receive().isEmpty else { return }
            guard readsPassword else { return _ = connection.send([5, 0xFF]) }
            guard connection.send([5, 2]), !connection.receive().isEmpty else { return }
            connection.send([1, 1])
        }
        let service = WebService(
            "\(scheme)://brewhapi.invalid",
            session: try CurlSession {
                $0.proxy = .authenticated(
                    url: "socks5h://127.0.0.1:\(proxy.port)", user: "proxy-user", password: "proxy-canary")
            })
        let result = await service.GET("/").data().result
        #expect(result.urlErrorCode == .userAuthenticationRequired, "\(result)")
        let text = result.error?.localizedDescription ?? ""
        #expect(text.contains("the user name and password of the proxy"), "\(text)")
        #expect(!text.contains("canary"), "\(text)")
    }

    @Test("A 407 that is not acceptable is an error that names the proxy")
    func unacceptable() async throws {
        let proxy = try Self.refusing(407)
        defer { proxy.stop() }
        let service = WebService(
            "http://brewhapi.invalid", session: try CurlSession { $0.proxy = .url(proxy.baseURLString) })
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/").string().value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.message.contains("the user name and password of the proxy") == true)
    }

    @Test(
        "A session is not created with a proxy that libcurl cannot use",
        arguments: [
            "ftp://h:1", "htp://h:1", "socks6://h:1", "://h:1", "h:1", "h", "h.example", "u:secret@h:1", "http:/h:1",
            "http://", "http:///", "http://u:secret@", "http://h:0", "http://h:99999", "http://h:x", "http://h:1:2",
            "http://h:1/path", "http://h:1?secret", "http://h:1#secret", "http://[::", "http://a b:1", "http://127.1:1",
            "http://u:sec/ret@h:1", "file:///secret", "-", " http://h:1", "http://h:1 ",
        ])
    func unusable(url: String) {
        let error = #expect(throws: WebServiceError.self) { try CurlSession { $0.proxy = .url(url) } }
        #expect(error?.code == .curl)
        #expect(error?.message.contains("proxy") == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test("A POST whose tunnel the proxy has refused was not sent, and is retried")
    func refusedPost() async throws {
        let proxy = try Self.refusing(502)
        defer { proxy.stop() }
        let service = WebService(
            "https://brewhapi.invalid", session: try CurlSession { $0.proxy = .url(proxy.baseURLString) })
        service.interceptors = [.retry(baseDelay: .nanoseconds(1))]
        let result = await service.POST("/orders").setBody(Data("ale".utf8)).string().result
        #expect((result.error as? URLError)?.requestWasNotSent == true)
        #expect(proxy.receivedRequests.count == 3)
    }

    @Test(
        "A session is created with every kind of proxy that libcurl can use",
        arguments: [
            "http://h", "http://h:3128", "HTTP://h:3128/", "http://u:p%40@h:1", "http://u:p@x@h:1", "http://[::1]:1",
            "http://127.0.0.1:1", "socks4://h:1", "socks4a://h:1", "socks5://u:p@h:1", "socks5h://h",
        ])
    func usable(url: String) throws {
        _ = try CurlSession { $0.proxy = .url(url) }
    }

    @Test("A proxy that closes the connection instead of opening a tunnel is an error")
    func lostTunnel() async throws {
        let proxy = try MockServer.forTest { _ in MockResponse("", wire: .disconnect) }
        let service = WebService(
            "https://brewhapi.invalid", session: try CurlSession { $0.proxy = .url(proxy.baseURLString) })
        let result = await service.GET("/").string().result
        #expect(
            result.urlErrorCode == .cannotConnectToHost || result.urlErrorCode == .networkConnectionLost, "\(result)")
    }

    // MARK: The environment

    /// Runs the test ``child()`` of this suite in a process with these environment variables.
    private func run(_ environment: [String: String]) async throws -> (status: Int32, output: String) {
        let output = Pipe()
        let process = ChildProcess(
            URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path,
            ["--testing-library", "swift-testing", "--filter", "CurlProxyTests/child"],
            environment: environment.merging(Self.variables.filter { $0.key.hasSuffix("SAN_OPTIONS") }) { $1 }
                .merging(["WEBSERVICE_CHILD": "proxy", "SWIFT_BACKTRACE": "enable=no"]) { $1 }, input: .null,
            output: .pipe(output), errors: .pipe(output))
        // A sanitizer has the same options in both processes.
        return try await process.finish(reading: output)
    }

    private static let variables = ProcessInfo.processInfo.environment

    @Test(
        "The child process sends the requests that its environment specifies",
        .enabled(if: variables["WEBSERVICE_CHILD"] == "proxy", "run by another test"))
    func child() async throws {
        for url in (Self.variables["WEBSERVICE_URLS"] ?? "").split(separator: " ") {
            let service = WebService(baseURLString: String(url))
            service.session = try CurlSession { configuration in
                guard let proxy = Self.variables["WEBSERVICE_PROXY"] else { return }
                configuration.proxy = proxy == "none" ? .none : .url(proxy)
            }
            let task = service.GET("/").setHeaderValue("pale", forName: "X-Brew")
            let result = await task.string().result
            print("result: \(url) \((try? result.get()) ?? "failed")")  // the parent compares the requests received
            print(
                "log: \(result) \(result.error?.localizedDescription ?? "") \(String(decoding: task.httpArchive(), as: UTF8.self))"
            )
        }
    }

    @Test(
        "Environment proxies are used as libcurl documents, and their password is only sent to the proxy",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/exe"), "the test runs its own executable"))
    func environment() async throws {
        let proxy = try MockServer { request in
            request.method == "CONNECT" ? MockResponse(statusCode: 403) : MockResponse("by way of the proxy")
        }
        let origin = try MockServer { _ in MockResponse("directly") }
        defer { proxy.stop(); origin.stop() }
        let address = "http://proxy-user:proxy-secret@127.0.0.1:\(proxy.port)"
        let base = origin.baseURLString
        let home = TemporaryFolder.forTest().url
        let netrc = home.appendingPathComponent(".netrc")
        try Data("machine 127.0.0.1 login proxy-user password proxy-secret\n".utf8).write(to: netrc)
        try Data("proxy = \(address)\nuser = a:b\n".utf8).write(to: home.appendingPathComponent(".curlrc"))
        let urls = "\(base) https://brewhapi.invalid"
        func lines(_ output: String) -> [String] {
            output.split(separator: "\n").filter { $0.hasPrefix("result: ") }.map { String($0.dropFirst(8)) }
        }
        let expectations: [(environment: [String: String], lines: [String], targets: [String])] = [
            (
                ["http_proxy": address, "https_proxy": address], ["\(base) by way of the proxy"],
                ["\(base)/", "brewhapi.invalid:443"]
            ),
            (["all_proxy": address], ["\(base) by way of the proxy"], ["\(base)/", "brewhapi.invalid:443"]),
            (["http_proxy": address, "NO_PROXY": "127.0.0.1"], ["\(base) directly"], []),
            (["http_proxy": address, "no_proxy": "*"], ["\(base) directly"], []),
            (["http_proxy": address, "no_proxy": "example.com"], ["\(base) by way of the proxy"], ["\(base)/"]),
            // RFC 3875: the `Proxy` field of a request sets this variable in CGI programs, so
            // libcurl does not read it.
            (["HTTP_PROXY": address], ["\(base) directly"], []),
            (["http_proxy": address, "WEBSERVICE_PROXY": "none"], ["\(base) directly"], []),
            // a proxy that is set explicitly is used for every host.
            (["no_proxy": "*", "WEBSERVICE_PROXY": address], ["\(base) by way of the proxy"], ["\(base)/"]),
            (["NO_PROXY": "127.0.0.1", "WEBSERVICE_PROXY": address], ["\(base) by way of the proxy"], ["\(base)/"]),
            (
                ["http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1", "WEBSERVICE_PROXY": address],
                ["\(base) by way of the proxy"], ["\(base)/"]
            ),
            // libcurl reads neither its passwords nor the options of its tool.
            (["HOME": home.path, "CURL_HOME": home.path, "NETRC": netrc.path], ["\(base) directly"], []),
        ]
        var seen = 0
        for (environment, expected, targets) in expectations {
            let asked = targets.count == 2 ? urls : base
            let (status, output) = try await run(environment.merging(["WEBSERVICE_URLS": asked]) { $1 })
            #expect(status == 0, "\(output)")
            #expect(Array(lines(output).prefix(1)) == expected, "\(environment.keys.sorted()): \(output)")
            let received = proxy.receivedRequests.dropFirst(seen)
            seen = proxy.receivedRequests.count
            #expect(received.map(\.target) == targets)
            #expect(
                received.allSatisfy { $0.headers["Proxy-Authorization"] == "Basic cHJveHktdXNlcjpwcm94eS1zZWNyZXQ=" })
            // A proxy receives the fields of a request only if it forwards the request.
            #expect(received.allSatisfy { ($0.headers["X-Brew"] == "pale") == ($0.method != "CONNECT") })
            #expect(!output.contains("proxy-secret"), "\(output)")
            #expect(!output.contains("cHJveHkt"), "\(output)")
        }
        #expect(origin.receivedRequests.allSatisfy { $0.headers["Proxy-Authorization"] == nil })
        #expect(origin.receivedRequests.allSatisfy { $0.headers["Authorization"] == nil })
    }
}
