import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking

/// The import of HTTP archives.
@Suite(.permit) struct CassetteArchiveTests {
    private let temporary = TemporaryFolder()
    private var file: URL { temporary.url.appendingPathComponent("brewers.json") }
    private var archive: URL { temporary.url.appendingPathComponent("brewers.har") }

    private func write(_ entries: String) throws {
        try Data(#"{"log":{"version":"1.2","creator":{"name":"Browser"},"entries":[\#(entries)]}}"#.utf8)
            .write(to: archive)
    }

    /// Imports the archive in a new cassette, and returns a session that replays it.
    @discardableResult
    private func convert(
        allowed: Set<String> = [], count: Int? = nil, where isIncluded: (ReceivedRequest) -> Bool = { _ in true }
    ) throws -> CassetteSession {
        let cassette = try CassetteSession(file: file, mode: .record, allowed: allowed)
        let imported = try cassette.importArchive(archive, where: isIncluded)
        if let count { #expect(imported == count) }
        try cassette.finish()
        return try CassetteSession(file: file, mode: .replay)
    }

    private func service(_ session: any Session) -> WebService { WebService("https://h/v1", session: session) }

    @Test("The archive of a browser is replayed, with decoded bodies and without secrets")
    func browser() async throws {
        try write(
            """
            {"_initiator":{"type":"script"},"startedDateTime":"2026-01-01T00:00:00.000Z","time":12.5,
             "request":{"method":"GET","url":"https://h/v1/brewers?page=1","httpVersion":"http/2.0","cookies":[],
              "headers":[{"name":":authority","value":"h"},{"name":":method","value":"GET"},
               {"name":"accept","value":"*/*"},{"name":"cookie","value":"sid=canary-cookie"}],
              "queryString":[],"headersSize":-1,"bodySize":0},
             "response":{"status":200,"statusText":"","httpVersion":"http/2.0","cookies":[],
              "headers":[{"name":"content-type","value":"application/json"},{"name":"content-encoding","value":"br"},
               {"name":"content-length","value":"9"},{"name":"set-cookie","value":"a=canary-one\\nb=canary-two"}],
              "content":{"size":15,"mimeType":"application/json","text":"{\\"name\\":\\"alé\\"}"},
              "redirectURL":"","headersSize":-1,"bodySize":9,"_transferSize":99},
             "cache":{},"timings":{"send":0,"wait":12.5,"receive":0},"serverIPAddress":"127.0.0.1"},
            {"request":{"method":"GET","url":"https://h/v1/label","headers":[]},
             "response":{"status":200,"headers":[{"name":"Content-Type","value":"image/png"}],
              "content":{"size":4,"mimeType":"image/png","text":"iVBO\\nRw==","encoding":"base64"}}},
            {"request":{"method":"POST","url":"https://h/v1/orders","headers":[
               {"name":"Content-Type","value":"application/x-www-form-urlencoded"},
               {"name":"Content-Length","value":"6"},{"name":"Host","value":"h"}],
              "postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"kegs","value":"2"}]}},
             "response":{"status":201,"headers":[],"content":{"size":0,"mimeType":"x-unknown"}}},
            {"_resourceType":"websocket","request":{"method":"GET","url":"wss://h/v1/live","headers":[]},
             "response":{"status":101,"headers":[]},
             "_webSocketMessages":[{"type":"receive","time":1767225600.25,"opcode":1,"data":"canary"}]},
            {"request":{"method":"GET","url":"https://h/v1/blocked","headers":[]},
             "response":{"status":0,"headers":[],"content":{}}}
            """)
        let cassette = try convert(count: 3)
        let service = service(cassette)
        let response = try await service.GET("/brewers?page=1").data().response
        #expect(response.data == Data(#"{"name":"alé"}"#.utf8))
        #expect(response.header("Content-Encoding") == nil)
        #expect(response.headers.values(for: .setCookie) == ["a=redacted-2", "b=redacted-3"])
        #expect(try await service.GET("/label").data().value == Data([0x89, 0x50, 0x4E, 0x47]))
        #expect(try await service.POST("/orders").setFormParameters(["kegs": 2]).data().response.status == 201)
        try cassette.finish()
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(!text.contains("canary"))
        #expect(!text.contains("authority"))
    }

    @Test("A body has the charset of its type")
    func charset() async throws {
        try write(
            """
            {"request":{"method":"GET","url":"https://h/v1/a","headers":[]},
             "response":{"status":200,"headers":[{"name":"Content-Type","value":"text/plain; charset=iso-8859-1"}],
              "content":{"size":1,"mimeType":"text/plain; charset=iso-8859-1","text":"é"}}}
            """)
        #expect(try await service(convert()).GET("/a").string().value == "é")
    }

    @Test("The closure excludes entries, also those without a body")
    func exclusion() async throws {
        let entry = { (path: String, content: String) in
            """
            {"request":{"method":"GET","url":"https://h\(path)","headers":[]},
             "response":{"status":200,"headers":[{"name":"Content-Type","value":"text/plain"}],"content":\(content)}}
            """
        }
        try write(entry("/v1/a", #"{"size":3,"text":"ale"}"#) + "," + entry("/logo", #"{"size":900}"#))
        let error = #expect(throws: WebServiceError.self) { try convert() }
        #expect(error?.code == .cassette)
        #expect(
            error?.message == "entry 2 of the archive brewers.har has no content for its response; export the archive "
                + "with content, or exclude the entry")
        #expect(try await service(convert(count: 1) { $0.path.hasPrefix("/v1/") }).GET("/a").string().value == "ale")
    }

    @Test("An archive of this package is imported")
    func ownArchive() async throws {
        try write(
            #"{"request":{"method":"GET","url":"https://h/v1/a","headers":[]},"response":{"status":204,"#
                + #""headers":[],"content":{"size":0,"mimeType":""},"statusText":"","bodySize":0}}"#)
        #expect(try await service(convert(count: 1)).GET("/a").data().response.status == 204)
    }

    @Test(
        "A damaged archive is a typed error that names the file, and adds nothing",
        arguments: [
            "", "{}", #"{"log":{}}"#, "[]", #"{"log":{"entries":[{}]}}"#, String(repeating: "[", count: 100_000),
            CassetteArchiveTests.entry(request: #""url":"https://h/""#),
            CassetteArchiveTests.entry(request: #""method":"GE T","url":"https://h/""#),
            CassetteArchiveTests.entry(response: #""status":7"#),
            CassetteArchiveTests.entry(response: #""status":200,"headers":[{"name":"a b","value":""}]"#),
            CassetteArchiveTests.entry(response: #""status":200,"headers":[{"name":"a","value":"\u0000"}]"#),
            CassetteArchiveTests.entry(response: #""status":200,"content":{"text":"!","encoding":"gzip"}"#),
            CassetteArchiveTests.entry(response: #""status":200,"content":{"text":"===","encoding":"base64"}"#),
            CassetteArchiveTests.entry(
                request: #""method":"POST","url":"https://h/","postData":{"params":[{"name":"a"}]}"#),
        ])
    func damage(text: String) throws {
        try Data(text.utf8).write(to: archive)
        let cassette = try CassetteSession(file: file, mode: .record)
        let error = #expect(throws: WebServiceError.self) { try cassette.importArchive(archive) }
        #expect(error?.code == .cassette)
        #expect(error?.message.contains("brewers.har") == true)
    }

    private static func entry(
        request: String = #""method":"GET","url":"https://h/""#, response: String = #""status":200"#
    ) -> String {
        #"{"log":{"entries":[{"request":{\#(request)},"response":{\#(response)}}]}}"#
    }

    @Test("An archive of more than 128 MiB is not read")
    func huge() throws {
        try Data().write(to: archive)
        let handle = try FileHandle(forWritingTo: archive)
        try handle.truncate(atOffset: 128 << 20 + 1)
        try handle.close()
        let cassette = try CassetteSession(file: file, mode: .record)
        let error = #expect(throws: WebServiceError.self) { try cassette.importArchive(archive) }
        #expect(
            error?.message == "the archive brewers.har has \(128 << 20 + 1) bytes, but at most \(128 << 20) are "
                + "supported; export fewer requests")
    }

    @Test("A missing archive, and a session that does not record, are typed errors")
    func misuse() throws {
        let recording = try CassetteSession(file: file, mode: .record)
        let missing = #expect(throws: WebServiceError.self) { try recording.importArchive(archive) }
        #expect(missing?.code == .cassette)
        try write("")
        let passthrough = try CassetteSession(file: file, mode: .passthrough)
        let error = #expect(throws: WebServiceError.self) { try passthrough.importArchive(archive) }
        #expect(error?.message == "an archive can be added only to a recording; create the session with mode: .record")
    }
}
