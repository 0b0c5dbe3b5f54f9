import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct RequestBodyTests {
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

    @Test("C-31: a JSON body is the object with sorted keys, also a single value")
    func json() throws {
        let rows: [(Any, String)] = [
            (
                ["b": [1, "x", true, NSNull(), 1.5] as [Any], "a": ["d": 1, "c": "é"]] as [String: Any],
                #"{"a":{"c":"é","d":1},"b":[1,"x",true,null,1.5]}"#
            ),
            ("a\"b\u{0}\n", #""a\"b\u0000\n""#), (5, "5"), (true, "true"), (false, "false"), (1.5, "1.5"), (-0.25, "-0.25"), (NSNull(), "null"),
            ([Any](), "[]"),
            ([String: Any](), "{}"), ("", #""""#), (Int64.min, "-9223372036854775808"), (UInt64.max, "18446744073709551615"), (["a"], #"["a"]"#),
            (Decimal(string: "1.50") ?? 0, "1.5"), ("\u{2028}\u{1F4A9}e\u{301}", "\"\u{2028}\u{1F4A9}e\u{301}\""),
        ]
        for (object, text) in rows {
            let request = try Request.make(.POST) { try $0.serialize(json: object) }
            #expect(Array(try #require(try request.encodedBody()).utf8) == Array(text.utf8))
            #expect(request.contentType == "application/json" && request.body != nil && request.formParameters == nil)
        }
    }

    @Test("H-46: what JSON cannot say is an error that names the type, and the body stays as it was")
    func noJSON() throws {
        final class Custom { let text = "s3cret" }
        let rows: [(Any, String)] = [
            (Double.nan, "Double"), (Float.infinity, "Float"), ([1, Double.nan], "Array"), (["a": -Double.infinity], "Dictionary"),
            (Decimal.nan, "Decimal"), (Date(), "Date"),
            (Data("s3cret".utf8), "Data"), (["a": [Date()]], "Dictionary"), ([1: "s3cret"], "Dictionary"), (["s3cret"] as Set, "Set"),
            (Brewer(name: "s3cret"), "Brewer"),
            (URL(fileURLWithPath: "/s3cret"), "URL"), (UUID(), "UUID"), (["s3cret": Brewer()], "Dictionary"), (Custom(), "Custom"),
            ([Custom()], "Array"),
            (Optional<Int>.none as Any, "Optional"),
        ]
        for (object, type) in rows {
            var request = Request.make(.POST) { $0.body = Data("old".utf8) }
            expectFailure(.encoding, naming: [type], hiding: ["s3cret"]) { try request.serialize(json: object) }
            #expect(request.body == Data("old".utf8) && request.contentType == "application/octet-stream")
            #expect(try request.encodedBody() == "old")
        }
    }

    // MARK: Encodable

    @Test("A value is encoded by the given encoder under the given media type")
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

    @Test("A value that cannot be encoded is an error with the encoder's as its cause, and the body stays as it was")
    func failingEncodable() throws {
        var request = Request.make(.POST) { $0.formParameters = ["a": 1] }
        for encoder in [JSONEncoder(), PropertyListEncoder()] as [any BodyEncoder] {
            let error = expectFailure(.encoding, naming: ["Failing"], hiding: ["s3cret"]) { try request.serialize(Failing(), encoder: encoder) }
            #expect(error?.underlying is EncodingError)
        }
        expectFailure(.encoding, naming: ["Double"]) { try request.serialize(Double.nan) }
        #expect(request.formParameters == ["a": 1] && request.contentType == ContentType.formEncoded)
    }

    @Test("The error of a kept step comes back when the request is encoded, until another body is set")
    func keptError() throws {
        var request = Request.make(.POST)
        request.keepingError { try $0.serialize(Failing()) }
        #expect(request.body == nil && request.contentType == nil)
        expectFailure(.encoding, naming: ["Failing"], hiding: ["s3cret"]) { try request.urlRequest() }
        request.keepingError { _ in throw CocoaError(.fileNoSuchFile) }
        #expect(expectFailure(.encoding) { try request.urlRequest() }?.underlying is CocoaError)
        request.body = Data("x".utf8)
        #expect(try request.encodedBody() == "x")
    }

    // MARK: One body

    @Test("The last body counts, and its media type with it")
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
            #expect(try removed.encode(provided: Data("provided".utf8)).body == nil && removed.contentType == nil)
            #expect(try removed.urlRequest().allHTTPHeaderFields?.isEmpty != false)
        }
    }

    @Test("M-10: a Content-Type field counts before what the body brings along, whatever the order and the case")
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

    @Test("M-10: a body without a media type is sent as bytes of an unknown kind, an empty one as well", arguments: ["", "x"])
    func octetStream(text: String) throws {
        let request = Request.make(.POST) { $0.body = Data(text.utf8) }
        #expect(request.contentType == "application/octet-stream")
        let sent = try request.urlRequest()
        #expect(sent.httpBody == Data(text.utf8) && sent.allHTTPHeaderFields == ["Content-Type": "application/octet-stream"])
        #expect(try Request.make(.POST).urlRequest().value(forHTTPHeaderField: "Content-Type") == nil)
    }

    @Test("contentType and userAgent are the header fields")
    func accessors() throws {
        var request = Request.make(.POST) { $0.parameters = ["a": 1] }
        #expect(request.contentType == "application/x-www-form-urlencoded" && request.userAgent == nil)
        request.parameterEncoding = .json
        #expect(request.contentType == "application/json")
        request.contentType = "a/b"
        request.userAgent = "Agent/1"
        #expect(
            request.headers == ["Content-Type": "a/b", "User-Agent": "Agent/1"] && request.contentType == "a/b" && request.userAgent == "Agent/1")
        request.headers["user-agent"] = "Agent/2"
        #expect(request.userAgent == "Agent/2")
        request.contentType = nil
        request.userAgent = nil
        #expect(request.headers.isEmpty && request.contentType == "application/json")
        #expect(Request.make(.GET) { $0.parameters = ["a": 1] }.contentType == nil)
    }

    @Test("M-24: a User-Agent is sent as it was set, and none is made up")
    func userAgent() throws {
        #expect(try Request.make { $0.userAgent = "Agent/1 (x; y)" }.urlRequest().allHTTPHeaderFields == ["User-Agent": "Agent/1 (x; y)"])
        #expect(try Request.make().encode().headers.isEmpty)
    }

    @Test("G4: every naughty string comes back from a JSON body byte by byte", .enabled(if: Corpora.areThere, Corpora.comment))
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
                let object = try #require(try JSONSerialization.jsonObject(with: body) as? [String: String])
                #expect(object.map { Array($0.key.utf8) } == [Array(string.utf8)])
                #expect(object.map { Array($0.value.utf8) } == [Array(string.utf8)])
            }
        }
    }
}
