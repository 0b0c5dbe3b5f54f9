import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct RequestBodyTests {
    private struct Brewer: Codable, Equatable {
        var name = "Éspresso/Ale"
        var since = 1999
    }

    private struct Failing: Encodable {
        var secret = "s3cret"
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(secret, .init(codingPath: [], debugDescription: secret))
        }
    }

    // MARK: JSON

    @Test("A JSON body is encoded with sorted keys and can be a single value")
    func json() throws {
        let rows: [(Any, String)] = [
            (
                ["b": [1, "x", true, NSNull(), 1.5] as [Any], "a": ["d": 1, "c": "é"]] as [String: Any],
                #"{"a":{"c":"é","d":1},"b":[1,"x",true,null,1.5]}"#
            ),
            ("a\"b\u{0}\n", #""a\"b\u0000\n""#), (5, "5"), (true, "true"), (false, "false"), (1.5, "1.5"),
            (-0.25, "-0.25"), (NSNull(), "null"),
            ([Any](), "[]"),
            ([String: Any](), "{}"), ("", #""""#), (Int64.min, "-9223372036854775808"),
            (UInt64.max, "18446744073709551615"), (["a"], #"["a"]"#),
            (Decimal(string: "1.50") ?? 0, "1.5"), ("\u{2028}\u{1F4A9}e\u{301}", "\"\u{2028}\u{1F4A9}e\u{301}\""),
        ]
        for (object, text) in rows {
            let request = try Request.make(.POST) { try $0.serialize(json: object) }
            #expect(Array(try #require(try request.encodedBody()).utf8) == Array(text.utf8))
            #expect(request.contentType == "application/json")
            #expect(request.body != nil)
            #expect(request.formParameters == nil)
        }
    }

    @Test(
        "A value that JSON cannot represent is an error that names its type, and the body is unchanged"
    )
    func noJSON() throws {
        final class Custom { let text = "s3cret" }
        let rows: [(Any, String)] = [
            (Double.nan, "Double"), (Float.infinity, "Float"), ([1, Double.nan], "Array"),
            (["a": -Double.infinity], "Dictionary"),
            (Decimal.nan, "Decimal"), (Date(timeIntervalSince1970: 0), "Date"),
            (Data("s3cret".utf8), "Data"), (["a": [Date(timeIntervalSince1970: 0)]], "Dictionary"),
            ([1: "s3cret"], "Dictionary"),
            (["s3cret"] as Set, "Set"),
            (Brewer(name: "s3cret"), "Brewer"),
            (URL(fileURLWithPath: "/s3cret"), "URL"), (UUID(), "UUID"), (["s3cret": Brewer()], "Dictionary"),
            (Custom(), "Custom"),
            ([Custom()], "Array"),
            (Optional<Int>.none as Any, "Optional"),
        ]
        for (object, type) in rows {
            var request = Request.make(.POST) { $0.body = Data("old".utf8) }
            expectFailure(.encoding, naming: [type], hiding: ["s3cret"]) { try request.serialize(json: object) }
            #expect(request.body == Data("old".utf8))
            #expect(request.contentType == "application/octet-stream")
            #expect(try request.encodedBody() == "old")
        }
    }

    @Test(
        "Values are validated and encoded as JSON at any depth",
        arguments: [1, 2, 40, 511])
    func deepValues(levels: Int) throws {
        func nested(_ value: Any) -> [Any] {
            [
                (0..<levels).reduce(value) { inner, _ in [inner] },
                (0..<levels).reduce(value) { inner, _ in ["a": inner] },
            ]
        }
        for value in [Double.nan, Date(timeIntervalSince1970: 0), Set(["a"]), [1: "a"]] as [Any] {
            for json in nested(value) {
                var request = Request.make(.POST)
                expectFailure(.encoding) { try request.serialize(json: json) }
                #expect(request.body == nil)
            }
        }
        let valid: [(Any, String)] = [
            ("é", #""é""#), (1, "1"), (true, "true"), (1.5, "1.5"), (NSNull(), "null"), (NSNumber(value: 2), "2"),
            ([Any](), "[]"),
            (Optional(3) as Any, "3"), (Optional<Int>.none as Any, "null"), (Float(0.5), "0.5"), (UInt8(7), "7"),
        ]
        for (value, text) in valid where levels < 511 || !(value is [Any]) {
            for json in nested(value) {
                let request = try Request.make(.POST) { try $0.serialize(json: json) }
                let isList = json is [Any]
                let start = String(repeating: isList ? "[" : #"{"a":"#, count: levels)
                #expect(
                    try request.encodedBody() == start + text + String(repeating: isList ? "]" : "}", count: levels))
            }
        }
    }

    // MARK: Encodable

    @Test("A value is encoded with the given encoder and media type")
    func encodable() throws {
        var request = try Request.make(.PUT) { try $0.serialize(Brewer()) }
        #expect(try JSONDecoder().decode(Brewer.self, from: #require(try request.encode().body)) == Brewer())
        #expect(request.contentType == "application/json")

        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try request.serialize(Brewer(), encoder: encoder, contentType: "application/vnd.brewer+json")
        #expect(try request.encodedBody() == #"{"name":"Éspresso/Ale","since":1999}"#)
        #expect(try request.urlRequest().value(forHTTPHeaderField: "Content-Type") == "application/vnd.brewer+json")

        try request.serialize(Brewer(), encoder: PropertyListEncoder(), contentType: "application/x-plist")
        #expect(try PropertyListDecoder().decode(Brewer.self, from: #require(request.body)) == Brewer())
        #expect(request.contentType == "application/x-plist")
    }

    @Test("A value that cannot be encoded is an error with the underlying encoder error, and the body is unchanged")
    func failingEncodable() throws {
        var request = Request.make(.POST) { $0.formParameters = ["a": 1] }
        for encoder in [JSONEncoder(), PropertyListEncoder()] as [any BodyEncoder] {
            let error = expectFailure(.encoding, naming: ["Failing"], hiding: ["s3cret"]) {
                try request.serialize(Failing(), encoder: encoder)
            }
            #expect(error?.underlying is EncodingError)
        }
        expectFailure(.encoding, naming: ["Double"]) { try request.serialize(Double.nan) }
        #expect(request.formParameters == ["a": 1])
        #expect(request.contentType == ContentType.formEncoded)
    }

    @Test("A stored error is thrown when the request is encoded, until another body is set")
    func keptError() throws {
        var request = Request.make(.POST)
        request.keepingError { try $0.serialize(Failing()) }
        #expect(request.body == nil)
        #expect(request.contentType == nil)
        expectFailure(.encoding, naming: ["Failing"], hiding: ["s3cret"]) { try request.urlRequest() }
        request.keepingError { _ in throw CocoaError(.fileNoSuchFile) }
        #expect(expectFailure(.encoding) { try request.urlRequest() }?.underlying is CocoaError)
        request.body = Data("x".utf8)
        #expect(try request.encodedBody() == "x")
    }

    // MARK: One body

    @Test("The body that was set last is used together with its media type")
    func lastBody() throws {
        let steps: [(String, String, (inout Request) throws -> Void)] = [
            ("data", "application/octet-stream", { $0.body = Data("data".utf8) }),
            ("a=1", "application/x-www-form-urlencoded", { $0.formParameters = ["a": 1] }),
            (#"{"a":1}"#, "application/json", { try $0.serialize(json: ["a": 1]) }),
            ("[1]", "text/json", { try $0.serialize([1], contentType: "text/json") }),
            ("provided", "text/plain", { $0.setBodyProvider(contentType: "text/plain") { Data() } }),
        ]
        for first in steps {
            for last in steps {
                let request = try Request.make(.POST) {
                    try first.2(&$0)
                    try last.2(&$0)
                }
                let encoded = try request.encode(provided: Data("provided".utf8))
                #expect(encoded.body == Data(last.0.utf8))
                #expect(encoded.urlRequestValue.allHTTPHeaderFields == ["Content-Type": last.1])
                #expect((request.formParameters != nil) == (last.0 == "a=1"))
                #expect(request.contentType == last.1)
            }
            var removed = try Request.make(.POST) { try first.2(&$0) }
            removed.body = nil
            #expect(try removed.encode(provided: Data("provided".utf8)).body == nil)
            #expect(removed.contentType == nil)
            #expect(try removed.urlRequest().allHTTPHeaderFields?.isEmpty != false)
        }
    }

    @Test(
        "Of a body and body parameters, the one set last is used, and an unused body provider is not called"
    )
    func lastOfBodyAndParameters() async throws {
        var form = MultipartFormData()
        form.append("x", name: "n")
        let multipart = form
        let bodies: [(String, String, (inout Request) throws -> Void)] = [
            ("data", "application/octet-stream", { $0.body = Data("data".utf8) }),
            ("", "application/octet-stream", { $0.body = Data() }),
            ("a=1", "application/x-www-form-urlencoded", { $0.formParameters = ["a": 1] }),
            (#"{"a":1}"#, "application/json", { try $0.serialize(json: ["a": 1]) }),
            (
                try #require(try Request.make(.POST) { $0.multipart = multipart }.encodedBody()), multipart.contentType,
                { $0.multipart = multipart }
            ),
            ("provided", "text/plain", { $0.setBodyProvider(contentType: "text/plain") { Data("provided".utf8) } }),
        ]
        let parameters: [(String, String, Request.ParameterEncoding)] = [
            ("p=1", "application/x-www-form-urlencoded", .percent), (#"{"p":1}"#, "application/json", .json),
        ]
        for (body, bodyType, setBody) in bodies {
            for (text, type, encoding) in parameters {
                var last = try Request.make(.POST) {
                    $0.parameterEncoding = encoding
                    try setBody(&$0)
                    $0.parameters = ["p": 1]
                }
                let provided = try await last.providingBody().encode()
                #expect(provided.body == Data(text.utf8))
                #expect(provided.contentType == type)
                #expect(last.contentType == type)
                last.parameters = nil
                #expect(try await last.providingBody().encode().body == Data(body.utf8))
                var first = try Request.make(.POST) {
                    $0.parameters = ["p": 1]
                    try setBody(&$0)
                }
                #expect(try await first.providingBody().encode().body == Data(body.utf8))
                #expect(first.contentType == bodyType)
                first.parameters = ["p": 1, "q": 2]
                #expect(try await first.providingBody().encode().body == Data("p=1&q=2".utf8))
                first.body = nil
                #expect(try first.encode().body == Data("p=1&q=2".utf8))
            }
        }
        // The parameters of a DELETE request are encoded in the URL, regardless of the order.
        var get = Request.make(.DELETE) {
            $0.body = Data("x".utf8)
            $0.parameters = ["p": 1]
        }
        #expect(try get.encode().body == Data("x".utf8))
        #expect(try get.encode().url.hasSuffix("?p=1"))
        get.method = .POST
        #expect(try get.encode().body == Data("p=1".utf8))
        // The error of a body that was replaced is not an error of the request.
        var replaced = Request.make(.POST) { $0.keepingError { _ in throw CocoaError(.fileNoSuchFile) } }
        replaced.parameters = ["p": 1]
        #expect(try replaced.encodedBody() == "p=1")
    }

    @Test("A task sends the body or parameters set last and does not call an unused body provider")
    func lastBodyOfTask() async throws {
        let session = HandSession(text: "{}")
        let service = WebService.make(session)
        let tasks = [
            service.POST("/x").setParameters(["p": 1]).setBody(Data("data".utf8)),
            service.POST("/x").setBody(Data("data".utf8)).setParameters(["p": 1]),
            service.POST("/x").setBody { throw TestError() }.setParameters(["p": 1], encoding: .json),
            service.POST("/x").setParameters(["p": 1]).setBody { Data("provided".utf8) },
            service.POST("/x").setJSON(["n": Double.nan] as [String: Any]).setParameters(["p": 1]),
        ]
        for task in tasks { _ = try await task.data().value }
        let sent = session.exchanges.values.map(\.request.urlRequestValue)
        #expect(
            sent.map { String(decoding: $0.httpBody ?? Data(), as: UTF8.self) } == [
                "data", "p=1", #"{"p":1}"#, "provided", "p=1",
            ])
        let form = "application/x-www-form-urlencoded"
        let types = ["application/octet-stream", form, "application/json", "application/octet-stream", form]
        #expect(sent.map { $0.value(forHTTPHeaderField: "Content-Type") } == types)
    }

    @Test("A body without a media type is sent as JSON if the parameter encoding is JSON")
    func jsonData() async throws {
        let session = HandSession(text: "{}")
        let service = WebService.make(session)
        let body = Data("[1]".utf8)
        let tasks = [
            service.POST("/x").setParameterEncoding(.json).setBody(body),
            service.POST("/x").setBody(body).setParameterEncoding(.json),
            service.POST("/x").setParameterEncoding(.json).setBody { body },
            service.POST("/x").setParameterEncoding(.json).setBody(body, contentType: "a/b"),
            service.POST("/x").setParameterEncoding(.percent).setBody(body),
            service.POST("/x").setParameterEncoding(.json).setHeaderValue("c/d", forName: "Content-Type").setBody(body),
            service.POST("/x").setParameterEncoding(.json),
        ]
        for task in tasks { _ = try await task.data().value }
        let types = session.exchanges.values.map {
            $0.request.urlRequestValue.value(forHTTPHeaderField: "Content-Type")
        }
        let json = "application/json"
        #expect(types == [json, json, json, "a/b", "application/octet-stream", "c/d", nil])
    }

    @Test("A Content-Type field overrides the media type of the body, regardless of order and case")
    func explicitContentType() throws {
        for setFirst in [true, false] {
            let request = try Request.make(.POST) {
                if setFirst { $0.headers["content-type"] = "a/b" }
                try $0.serialize(json: [1])
                if !setFirst { $0.headers["content-type"] = "a/b" }
            }
            #expect(request.contentType == "a/b")
            #expect(try request.urlRequest().allHTTPHeaderFields == ["content-type": "a/b"])
        }
    }

    @Test(
        "A body without a media type is sent as application/octet-stream, even if it is empty",
        arguments: ["", "x"])
    func octetStream(text: String) throws {
        let request = Request.make(.POST) { $0.body = Data(text.utf8) }
        #expect(request.contentType == "application/octet-stream")
        let sent = try request.urlRequest()
        #expect(sent.httpBody == Data(text.utf8))
        #expect(sent.allHTTPHeaderFields == ["Content-Type": "application/octet-stream"])
        #expect(try Request.make(.POST).urlRequest().value(forHTTPHeaderField: "Content-Type") == nil)
    }

    @Test("contentType and userAgent read and write the header fields")
    func accessors() throws {
        var request = Request.make(.POST) { $0.parameters = ["a": 1] }
        #expect(request.contentType == "application/x-www-form-urlencoded")
        #expect(request.userAgent == nil)
        request.parameterEncoding = .json
        #expect(request.contentType == "application/json")
        request.contentType = "a/b"
        request.userAgent = "Agent/1"
        #expect(request.headers == ["Content-Type": "a/b", "User-Agent": "Agent/1"])
        #expect(request.contentType == "a/b")
        #expect(request.userAgent == "Agent/1")
        request.headers["user-agent"] = "Agent/2"
        #expect(request.userAgent == "Agent/2")
        request.contentType = nil
        request.userAgent = nil
        #expect(request.headers.isEmpty)
        #expect(request.contentType == "application/json")
        #expect(Request.make(.GET) { $0.parameters = ["a": 1] }.contentType == nil)
    }

    @Test("A User-Agent field is sent as it was set and is not generated")
    func userAgent() throws {
        #expect(
            try Request.make { $0.userAgent = "Agent/1 (x; y)" }.urlRequest().allHTTPHeaderFields == [
                "User-Agent": "Agent/1 (x; y)"
            ])
        #expect(try Request.make().encode().headers.isEmpty)
    }

    @Test(
        "Every naughty string survives a round trip through a JSON body byte for byte",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func naughtyJSON() throws {
        let strings = try Corpora.naughtyStrings()
        #expect(strings.count > 500)
        for string in strings {
            var bodies: [Request] = []
            bodies.append(try .make(.POST) { try $0.serialize(json: [string: string]) })
            bodies.append(try .make(.POST) { try $0.serialize([string: string]) })
            bodies.append(
                .make(.POST) {
                    $0.parameters = Parameters([(string, .string(string))])
                    $0.parameterEncoding = .json
                })
            for request in bodies {
                let body = try #require(try request.encode().body)
                // JSONSerialization drops a byte order mark, so the raw bytes are compared.
                guard string != "\u{FEFF}" else {
                    #expect(body == Data("{\"\u{FEFF}\":\"\u{FEFF}\"}".utf8))
                    continue
                }
                let object = try #require(try JSONSerialization.jsonObject(with: body) as? [String: String])
                #expect(object.map { Array($0.key.utf8) } == [Array(string.utf8)])
                #expect(object.map { Array($0.value.utf8) } == [Array(string.utf8)])
            }
        }
    }
}
