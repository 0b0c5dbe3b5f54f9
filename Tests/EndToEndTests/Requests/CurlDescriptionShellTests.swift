import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

/// The output of `curlDescription`, run by real shells with the real curl and compared with the
/// requests that the framework sends.
@Suite(
    "Curl descriptions in a shell", .enabled(if: Shell.curl != nil, "curl must be on the PATH"),
    .permit
)
struct CurlDescriptionShellTests {
    /// Sends each request over ``FoundationSession``, then all of them by their descriptions
    /// through the shell, and expects the same requests on the wire.
    private func expectSame(_ shell: Shell, locale: String = "C.UTF-8", _ make: (WebService) throws -> [Request])
        async throws
    {
        let server = try MockServer { _ in MockResponse(statusCode: 200) }
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        let requests = try make(service)
        for request in requests {
            #expect(await service.sessionTask(request: request).delivered().status == 200, "\(request)")
        }
        let sent = server.receivedRequests
        #expect(sent.count == requests.count)

        let outcome = try await shell.run(requests.map { $0.curlDescription(redaction: nil) }, locale: locale)
        #expect(outcome == .clean)
        let typed = server.receivedRequests.dropFirst(sent.count)
        #expect(typed.count == requests.count)
        for (request, (sent, typed)) in zip(requests, zip(sent, typed))
        where Message(typed, of: request) != Message(sent, of: request) {
            Issue.record(
                "\(Message(typed, of: request)) instead of \(Message(sent, of: request)), by \(request.curlDescription(redaction: nil))"
            )
        }
    }

    // MARK: - Equal requests on the wire

    /// Strings that a shell, printf or curl could misinterpret.
    private static let hostile = [
        "$(touch CANARY)", "`touch CANARY`", "'$(touch CANARY)'", "\"; touch CANARY; \"", "'; touch CANARY; '",
        "'\u{301}; touch CANARY; '\u{301}",
        "x\ntouch CANARY\n", "\r\ntouch CANARY\r\n", "| touch CANARY", "& touch CANARY &", "> CANARY",
        "\\'; touch CANARY; \\'", "${IFS}",
        "@file", "@", "@-", "@\u{301}", "<file", "--config", "--config file", "-K file", "-o CANARY", "--output=CANARY",
        "-", "--", "!", "!!", "'!!'",
        "x!\n!!", "^touch^x", "%", "%s%n", "%41", "\\", "\\n\\0101\\c", "\\\\", "''", "'", "\"", "~", "*", "{a,b}",
        "[1-3]", "#x", "a#b", "\t",
        "\u{1B}[31m", "\u{7F}", "\u{FEFF}", "\u{FEFF}@x", "\u{202E}", "é 🍺", "e\u{301}", "ぁあぃ", "\u{10FFFF}", " a  b ",
        "a&b=c", "a+b", "\0", "a\0b",
        "a\t'!!'", "\0$(touch CANARY)", "$'x\\n'", "$", "$$", "$0", "9", "\u{1}9", "\n", "\n\n", "",
    ]

    private func expectSame(_ shell: Shell, locale: String = "C.UTF-8", texts: [String]) async throws {
        try await expectSame(shell, locale: locale) { service in
            texts.map { text in
                var request = service.request(.POST, path: "/a'b;$(touch)`!!*'(&)?raw='$(x)'&a=b")
                request.queryParameters = ["q": .init(text), text: 1]
                let legal = text.unicodeScalars.filter { $0 >= " " && $0 != "\u{7F}" || $0 == "\t" }
                request.headers = ["X-Text": String(String.UnicodeScalarView(legal))]
                request.body = Data(text.utf8)
                return request
            }
        }
    }

    @Test(
        "Hostile strings in the query, header fields and body are sent unchanged",
        arguments: Shell.all)
    func hostile(shell: Shell) async throws {
        // Every scalar after a quote, with which it may form one `Character`: with and without
        // unprintable scalars.
        let scalars = (0x20...UInt32(amount(0x5FF, thorough: 0x2FFF))).compactMap(Unicode.Scalar.init)
        let printable = scalars.filter { "\($0)".escapingControls.utf8.count == "\($0)".utf8.count }
        let texts = [scalars, printable].flatMap { scalars in
            stride(from: 0, to: scalars.count, by: 1000).map {
                scalars[$0..<min($0 + 1000, scalars.count)].map { "'\($0)" }.joined()
            }
        }
        try await expectSame(shell, locale: "C", texts: Self.hostile + texts)
    }

    private static let strings = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0 + "/blns/blns.json")
    }

    @Test(
        "Every naughty string in the query, header fields and body is sent unchanged",
        .enabled(if: strings != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"), arguments: Shell.all)
    func naughtyStrings(shell: Shell) async throws {
        let texts = try JSONDecoder().decode([String].self, from: Data(contentsOf: #require(Self.strings)))
        #expect(texts.count == 515)
        try await expectSame(shell, texts: sample(texts, every: 16, thorough: 4))
    }

    @Test(
        "Methods, header fields, forms, JSON and bytes of all kinds are sent unchanged",
        arguments: Shell.all)
    func kinds(shell: Shell) async throws {
        let bytes = Data(UInt8.min...UInt8.max)
        try await expectSame(shell) { service in
            var requests: [Request] = []
            func add(_ method: Request.Method, _ change: (inout Request) throws -> Void) rethrows {
                var request = service.request(method, path: "/v1/\(requests.count)")
                try change(&request)
                requests.append(request)
            }
            for name in [
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "-o", "`id`", "a'b", "$HOME",
                "x!y", "*",
            ] {
                let method = Request.Method(rawValue: name)
                add(method) { _ in }
                add(method) { $0.body = Data() }
                if method != .GET && method != .HEAD { add(method) { $0.body = Data("x".utf8) } }
            }
            add(.GET) { request in
                request.headers = [
                    "Empty": "", "Repeated": "1", "repeated": "2", "Cookie": "a=1", "cookie": "b='2'",
                    "User-Agent": "it's; \"me\"", "Accept": "",
                    "Accept-Encoding": "identity", "Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
                    "-x": "--config", "X-At": "@file",
                    "!#$%&'*+.^_`|~": "`$x`",
                ]
            }
            add(.POST) { $0.headers = ["Content-Type": ""] }
            add(.POST) { ($0.contentType, $0.body) = ("text/plain; charset=\"it's\"", Data("x".utf8)) }
            add(.POST) { $0.formParameters = ["name": "A & B's", "plus": "1+2", "umlaut": "ä", "at": "@file"] }
            add(.POST) { $0.formParameters = [:] }
            try add(.PUT) { try $0.serialize(json: ["it's": ["a\nb", true, 1.5, "\u{2028}", "\\"] as [any Sendable]]) }
            try add(.POST) { try $0.serialize(json: "@file") }
            add(.PATCH) { ($0.parameters, $0.parameterEncoding) = (["at": ["lat": 1], "tag": ["a", "b"]], .json) }
            for body in [
                bytes, bytes + bytes, Data([0]), Data([0, 0x30]), Data([0xFF]), Data("@".utf8) + bytes,
                Data("-".utf8) + [0xC3], Data([0xC3, 0x28]),
                Data(repeating: 0x78, count: 65_536), Data(repeating: 0x27, count: 65_536),
                Data(repeating: 0x78, count: 200_000),
                DownloadFixture.content(1_200_000),
            ] {
                add(.POST) { $0.body = body }
            }
            for path in [
                "", "/", "/?", "?x", "/a?b?c=//", "/%41%2f%2F%c3", "/a//b/", "/a;b=c,d:e@f", "/x?y=[1-2]{a,b}",
            ] {
                requests.append(service.request(.GET, path: path))
            }
            return requests
        }
    }

    // MARK: - Placeholders and errors

    @Test("A redacted command runs and sends the placeholders", arguments: Shell.all)
    func redacted(shell: Shell) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let service = WebService(baseURLString: server.baseURLString)
        var request = service.request(.POST, path: "/login?access_token=canary&page=2")
        request.headers = ["Authorization": "Bearer canary", "X-Other": "1"]
        request.formParameters = ["user": "it's me", "password": "canary"]
        var provided = service.request(.PUT, path: "/file")
        provided.setBodyProvider { Data("canary".utf8) }
        var opaque = service.request(.PUT, path: "/file")
        opaque.body = Data("canary".utf8)
        let other = request.curlDescription(redaction: Redaction(placeholder: "it's \u{2022}"))
        #expect(try await shell.run([request, provided, opaque].map { $0.curlDescription() } + [other]) == .clean)
        let received = server.receivedRequests
        #expect(
            received.map(\.target) == [
                "/login?access_token=[redacted]&page=2", "/file", "/file",
                "/login?access_token=it's%20%E2%80%A2&page=2",
            ])
        #expect(received.map { $0.headers["Authorization"] } == ["[redacted]", nil, nil, "it's \u{2022}"])
        #expect(
            received.map { String(decoding: $0.body, as: UTF8.self) }
                == [
                    "user=it%27s+me&password=[redacted]", "[body created when sent]", "[redacted]",
                    "user=it%27s+me&password=it's \u{2022}",
                ])
        #expect(!received.contains { $0.rawBytes.firstRange(of: Data("canary".utf8)) != nil })
    }

    @Test("The description of a request that cannot be encoded has no effect in a shell", arguments: Shell.all)
    func errors(shell: Shell) async throws {
        let service = WebService(baseURLString: "http://127.0.0.1:1")
        var name = service.request(.GET, path: "/")
        name.headers = ["Proxy-`touch`$CANARY'": "x"]
        var parameter = service.request(.GET, path: "/")
        parameter.queryParameters = ["\ntouch CANARY\n$(touch CANARY)'": Double.nan]
        let method = service.request("touch CANARY", path: "/")
        #expect(try await shell.run([name, parameter, method].map { $0.curlDescription() }) == .clean)
    }

    // MARK: - The test setup

    @Test(
        "The setup detects canary files, error output, exit statuses, a .curlrc and history expansion",
        arguments: Shell.all)
    func instruments(shell: Shell) async throws {
        #expect(try await shell.run(["touch CANARY"]).files == [".curlrc", "CANARY", "file"])
        #expect(try await shell.run(["false"]).errors == "command 0 failed\n")
        if shell.name == "bash" { #expect(try await shell.run(["true 1", "true !!"]).errors.contains("true true 1")) }
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        #expect(try await shell.run(["curl --url \(server.baseURLString)"]) == .clean)
        #expect(server.receivedRequests.first?.headers["X-Curlrc"] == "1")
        server.stop()
        #expect(try await shell.run(["curl --url \(server.baseURLString)"]).errors.contains("command 0 failed"))
    }
}

/// The parts of two received requests that must be equal: request line, body and all header fields
/// except those that each client sets differently.
private struct Message: Equatable, CustomStringConvertible {
    private static let transportFields = [
        "host", "user-agent", "accept", "accept-encoding", "accept-language", "connection",
    ]
    let head: Data
    let body: Data
    var description: String { String(reflecting: String(decoding: head, as: UTF8.self)) }

    init(_ received: ReceivedRequest, of request: Request) {
        let lines = received.rawBytes.dropLast(received.body.count).split(separator: UInt8(ascii: "\n"))
        let fields = lines.dropFirst().filter { line in
            let name = String(decoding: line.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
            // Foundation adds the length of an absent body to more methods than curl.
            let isAbsentBody =
                name.lowercased() == "content-length" && received.body.isEmpty
                && ![.POST, .PUT, .PATCH].contains(request.method)
            return !isAbsentBody && !Self.transportFields.contains(name.lowercased()) || request.headers[name] != nil
        }
        head = Data(
            (lines.prefix(1) + fields.sorted { $0.lexicographicallyPrecedes($1) }).joined(separator: [
                UInt8(ascii: "\n")
            ]))
        body = received.body
    }
}

/// A shell that is installed on this machine.
struct Shell: Sendable, CustomTestStringConvertible {
    /// The result of commands, and the contents of the folder in which they ran.
    struct Outcome: Equatable {
        var status: Int32
        var errors: String
        var files: [String]

        static let clean = Outcome(status: 0, errors: "", files: [".curlrc", "file"])
    }

    let name: String
    let program: URL
    var testDescription: String { name }

    static let all = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "yash"].compactMap { name in
        find(name).map { Shell(name: name, program: $0) }
    }
    static let curl = find("curl")
    private static let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"

    private static func find(_ program: String) -> URL? {
        path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/\(program)") }.first {
            FileManager.default.isExecutableFile(atPath: $0.path)
        }
    }

    /// Runs commands one after another in a temporary folder, which is also the home folder. curl
    /// prints only errors.
    func run(_ commands: [String], locale: String = "C.UTF-8") async throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("curl-\(UUID().uuidString)")
        let home = folder.appendingPathComponent("home")
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        try Data("header = \"X-Curlrc: 1\"\n".utf8).write(to: home.appendingPathComponent(".curlrc"))
        try Data("contents of the file".utf8).write(to: home.appendingPathComponent("file"))

        // An interactive shell expands `!`.
        var lines = name == "bash" ? ["unset HISTFILE", "set -o history", "set -o histexpand"] : []
        lines.append("curl () { command curl \"$@\" --silent --show-error; }")
        lines += commands.enumerated().map { "\($1) || echo 'command \($0) failed' >&2" }
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: folder.appendingPathComponent("script"))

        let errors = Pipe()
        let process = ChildProcess(
            "/usr/bin/env", ["-C", home.path, program.path, "../script"],
            environment: ["PATH": Self.path, "HOME": home.path, "LC_ALL": locale], input: .null, output: .null,
            errors: .pipe(errors))
        let (status, complaints) = try await process.finish(reading: errors)
        return Outcome(
            status: status, errors: complaints,
            files: try FileManager.default.contentsOfDirectory(atPath: home.path).sorted())
    }
}
