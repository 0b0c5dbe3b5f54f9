import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCore

/// The nesting depth of any JSON, decoded as an error, an output or a stored value.
private struct Shape: Codable, Error {
    let depth: Int

    init(from decoder: any Decoder) throws {
        if var list = try? decoder.unkeyedContainer() {  // JSON that is not an array is decoded as an object
            depth = list.isAtEnd ? 1 : 1 + (try list.decode(Shape.self).depth)
        } else if let object = try? decoder.container(keyedBy: Key.self), let key = object.allKeys.first {  // as above
            depth = 1 + (try object.decode(Shape.self, forKey: key).depth)
        } else {
            depth = 0
        }
    }

    func encode(to encoder: any Encoder) throws {}

    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

private struct StoredShape: ValueStorableRequest, HTTPServiceRequest, Hashable {
    typealias Output = Shape
    var storageIdentifier: String? { "shape" }
    func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
}

/// A type with an untyped JSON property.
private struct Holder: Decodable {
    let value: JSONValue
}

/// A `JSONValue` that `JSONDecoder` decodes as it decodes any other type.
private struct Untyped: Decodable {
    let value: JSONValue

    init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
}

/// A custom subclass of `JSONDecoder`.
private final class CustomDecoder: JSONDecoder, @unchecked Sendable {}

@Suite("Nesting depth of JSON", .permit)
struct JSONNestingTests {
    /// Every public function that parses JSON; each of them throws if it rejects the JSON.
    private static let ways: [String: @Sendable (Data) async throws -> Void] = [
        "responseJSON": { data in
            let results = Collected<Bool>()
            service(data).GET("/x").responseJSON { _, _ in results.add(true) }.responseError { _ in results.add(false) }
                .resume()
            guard await results.wait() == [true] else { throw TestError() }
        },
        "decode": { _ = try await service($0).GET("/x").decode(Shape.self).value },
        "decode with a subclass": {
            _ = try await service($0).GET("/x").decode(Shape.self, decoder: CustomDecoder()).value
        },
        "json": { _ = try await service($0).GET("/x").json().value },
        "decodeBody": { _ = try WebServiceError(.decoding, "", body: $0).decodeBody(Shape.self) },
        "an error mapper": { data in
            let mapper: any ErrorMapper = .decoding(Shape.self)
            guard mapper.error(for: Response(data: data, urlResponse: nil, source: .network, attempts: 1)) != nil else {
                throw TestError()
            }
        },
        "a stored value": { _ = try StoredShape().storedValue(from: $0) },
        "a typed request": { data in
            _ = try StoredShape().decode(Response(data: data, urlResponse: nil, source: .storage, attempts: 0))
        },
        "the entry": { _ = try JSON.object(from: $0) },
    ]

    private static func service(_ data: Data) -> WebService { .make(HandSession(data)) }

    private static func text(_ kind: String, depth: Int, isClosed: Bool) -> String {
        let isList: (Int) -> Bool = { kind == "arrays" || kind == "both" && $0 % 2 == depth % 2 }
        let levels = (1...depth).map(isList)
        let opened = levels.map { $0 ? "[" : #"{"\"[{\\":"# }.joined()
        let closed = levels.reversed().map { $0 ? "]" : "}" }.joined()
        return opened + (isClosed ? (levels.last == true ? "" : "0") + closed : "")
    }

    @Test(
        "Every public parsing function accepts 512 levels and rejects more levels and truncated JSON",
        arguments: Array(ways.keys))
    func depths(way: String) async throws {
        let parse = try #require(Self.ways[way])
        for depth in isThorough ? Array(510...514) : [512, 513] {
            for kind in ["arrays", "objects", "both"] {
                for isClosed in [true, false] {
                    let data = Data(Self.text(kind, depth: depth, isClosed: isClosed).utf8)
                    var isAccepted = true
                    do { try await parse(data) } catch { isAccepted = false }
                    #expect(isAccepted == (isClosed && depth <= 512), "\(depth) \(kind)")
                }
            }
        }
    }

    @Test("JSON that is nested too deeply is a decoding error that contains the body")
    func typedError() async throws {
        let data = Data(repeating: UInt8(ascii: "["), count: 513)
        let result = await Self.service(data).GET("/x").decode([String].self).result
        let error = try #require(throws: WebServiceError.self) { try result.get() }
        #expect(error.code == .decoding)
        #expect(error.body == data)
        #expect(error.underlying is DecodingError)
        let other = await Self.service(data).GET("/x").json().result
        #expect(try #require(throws: WebServiceError.self) { try other.get() }.underlying is DecodingError)
    }

    @Test("Problem documents have the same depth limit, and bodies of any depth are redacted")
    func problems() throws {
        let url = try #require(URL(string: "https://h/"))
        let headers: Headers = ["Content-Type": "application/problem+json"]
        for depth in 510...514 {
            for isClosed in [true, false] {
                let data = Data(Self.text("objects", depth: depth, isClosed: isClosed).utf8)
                let response = Response(status: 400, headers: headers, data: data, url: url, source: .mock)
                let error = WebServiceError(.unacceptableStatus, "", response: response)
                #expect((error.problem != nil) == (isClosed && depth <= 512), "\(depth)")
                #expect(error.bodySnippet != nil)
            }
        }
    }

    @Test(
        "The depth limit applies to UTF-16 and UTF-32 in every byte order, with and without a byte order mark",
        arguments: [
            String.Encoding.utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf32,
        ])
    func encodings(encoding: String.Encoding) async throws {
        // In the opposite byte order, the bytes of U+225B contain a quotation mark or a bracket.
        for prefix in [#"["\u225B","#, #"["≛","#] {
            for depth in 509...514 {
                let nested = Self.text("arrays", depth: depth - 1, isClosed: true)
                let closed = try #require("\(prefix)\(nested)]".data(using: encoding))
                #expect((try? JSON.object(from: closed)) != nil || depth > 512, "\(depth)")  // only depth matters
                let opened = try #require(
                    (prefix + Self.text("arrays", depth: depth - 1, isClosed: false)).data(using: encoding))
                #expect(throws: (any Error).self) { try JSON.decode(Shape.self, from: opened) }
                #expect(throws: (any Error).self) { try JSON.object(from: opened) }
            }
        }
    }

    @Test("Brackets in strings and closed brackets do not count as levels")
    func flat() throws {
        let brackets = String(repeating: #"[{\"\\"#, count: 2_000)
        let texts = [
            "[\"\(brackets)\"]", "{\"\(brackets)\":1}", "[" + String(repeating: "[],{},", count: 2_000) + "1]",
            "\"\(brackets)\"",
        ]
        for text in texts {
            let json = try JSON.object(from: Data(text.utf8))
            #expect(json is [Any] || json is [String: Any] || json is String)
            _ = try JSON.decode(JSONValue.self, from: Data(text.utf8))
        }
        #expect(throws: (any Error).self) { try JSON.object(from: Data(String(repeating: "]", count: 2_000).utf8)) }
    }

    @Test("JSON5 and property lists are decoded, and truncated nested JSON is an error for any decoder")
    func otherDecoders() throws {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let comment =
            "/* \(String(repeating: "[\"", count: 1_000)) */ {a: ['\"', +1,]} //" + String(repeating: "[", count: 600)
        #expect(
            try JSON.decode([String: [JSONValue]].self, from: Data(comment.utf8), using: decoder)["a"] == [
                .string("\""), .integer(1),
            ])
        for depth in 510...514 {
            let text = Data(Self.text("arrays", depth: depth, isClosed: false).utf8)
            #expect(throws: (any Error).self) { try JSON.decode(Shape.self, from: text, using: decoder) }
            let inner = Data((#""a":"# + Self.text("arrays", depth: depth, isClosed: false)).utf8)
            let bare = JSONDecoder()
            bare.assumesTopLevelDictionary = true
            #expect(throws: (any Error).self) { try JSON.decode(Shape.self, from: inner, using: bare) }
        }
        let list = try PropertyListEncoder().encode([String(repeating: "[", count: 600)])
        #expect(try JSON.decode([String].self, from: list, using: PropertyListDecoder()).first?.count == 600)
    }

    @Test(
        "JSON of 512 levels is serialized, and more levels are an encoding error",
        arguments: [511, 512, 513, 5_000])
    func serializing(depth: Int) throws {
        var list: Any = 1
        var object: Any = "x"
        for _ in 0..<depth {
            list = [list]
            object = ["a": object]
        }
        for json in [list, object] {
            var request = Request(.POST, url: "https://h/")
            if depth <= 512 {
                try request.serialize(json: json)
                #expect(request.body?.first == UInt8(ascii: json is [Any] ? "[" : "{"))
            } else {
                expectFailure(.encoding, naming: ["512"]) { try request.serialize(json: json) }
                #expect(request.body == nil)
            }
        }
    }

    @Test(
        "512 levels are serialized in under 100 ms of processor time",
        arguments: ["arrays", "objects", "both"])
    func serializingCost(kind: String) throws {
        let object = try JSON.object(from: Data(Self.text(kind, depth: 512, isClosed: true).utf8))
        var request = Request(.POST, url: "https://h/")
        let times = try (0..<3).map { _ in try processorTime { try request.serialize(json: object) } }
        #expect(try #require(times.min()) < 0.1)
    }

    @Test(
        "SetJSON, json and decode accept 512 levels and fail with a typed error for 513",
        arguments: [512, 513])
    func bothDirections(depth: Int) async throws {
        let text = Self.text("arrays", depth: depth, isClosed: true)
        var list: Any = [Any]()
        for _ in 1..<depth { list = [list] }
        let service = Self.service(Data(text.utf8))
        let written = await service.POST("/x").setJSON(list).data().result
        let read = await service.GET("/x").json().result
        let decoded = await service.GET("/x").decode(JSONValue.self).result
        let shape = await service.GET("/x").decode(Shape.self).result.map(\.depth)
        if depth == 512 {
            var value = JSONValue.array([])
            for _ in 1..<depth { value = .array([value]) }
            #expect(try written.get() == Data(text.utf8))
            #expect(try read.get() == value)
            #expect(try decoded.get() == value)
            #expect(try shape.get() == depth)
        } else {
            let refused = #expect(throws: WebServiceError.self) { try written.get() }
            #expect(refused?.code == .encoding)
            #expect(printed(refused as Any).contains("512"))
            for result in [read.map { _ in 0 }, decoded.map { _ in 0 }, shape] {
                let error = #expect(throws: WebServiceError.self) { try result.get() }
                #expect(error?.code == .decoding)
                let cause = printed(error?.underlying as Any)
                #expect(cause.contains("512"))
            }
        }
    }

    @Test(
        "Untyped JSON in another type has at most 64 levels, and more levels are a decoding error",
        arguments: ["arrays", "objects", "both"])
    func nestedLevels(kind: String) throws {
        func decode(_ depth: Int) throws -> JSONValue {
            let text = Self.text(kind, depth: depth - 1, isClosed: true)
            return try JSON.decode(Holder.self, from: Data(#"{"value":\#(text)}"#.utf8)).value
        }
        #expect(
            try decode(64)
                == JSONParser.value(from: Data(Self.text(kind, depth: 63, isClosed: true).utf8)))
        for depth in [65, 66, 200, 512] {
            let error = #expect(throws: DecodingError.self) { try decode(depth) }
            guard case .dataCorrupted(let context) = error else {
                Issue.record("\(depth): \(error as Any)")
                continue
            }
            #expect(context.debugDescription.contains("64"))
        }
        let list = try JSON.decode([JSONValue].self, from: Data(#"[null,true,1,"a",[null],{"b":null}]"#.utf8))
        #expect(list == [.null, .bool(true), .integer(1), .string("a"), .array([.null]), .object(["b": .null])])
    }

    @Test(
        "Decoding untyped JSON in another type takes less than 200 ms of processor time for any nesting",
        arguments: ["arrays", "objects", "both"])
    func nestedCost(kind: String) throws {
        for (depth, leaf) in [
            (511, "0"), (511, #"["","","",0,"",""]"#), (60, "[" + String(repeating: #""","#, count: 500) + "0]"),
        ] {
            let levels = (1..<depth).map { kind == "arrays" || kind == "both" && $0 % 2 == 0 }
            let nested =
                levels.map { $0 ? "[" : #"{"a":"# }.joined() + leaf + levels.reversed().map { $0 ? "]" : "}" }.joined()
            let data = Data(#"{"value":\#(nested)}"#.utf8)
            // Nesting beyond the limit throws; the time until the error counts as well.
            let times = (0..<3).map { _ in processorTime { _ = try? JSON.decode(Holder.self, from: data) } }
            #expect(try #require(times.min()) < 0.2, "\(depth)")
        }
    }

    @Test(
        "A problem document of 512 levels is parsed in less than 100 ms of processor time",
        arguments: ["arrays", "objects", "both"])
    func problemCost(kind: String) throws {
        let url = try #require(URL(string: "https://h/"))
        let headers: Headers = ["Content-Type": "application/problem+json"]
        let body = Data((#"{"title":"x","a":"# + Self.text(kind, depth: 511, isClosed: true) + "}").utf8)
        let response = Response(status: 400, headers: headers, data: body, url: url, source: .mock)
        let error = WebServiceError(.unacceptableStatus, "", response: response)
        let times = (0..<3).map { _ in
            processorTime {
                #expect(error.problem?.title == "x")
                #expect(error.problem?.extensions["a"] != nil)
            }
        }
        #expect(try #require(times.min()) < 0.1)
    }

    @Test("Parsing with the depth check takes at most four times as long as without it, plus one second")
    func cost() throws {
        let text =
            "[" + (0..<20_000).map { #"{"id":\#($0),"name":"Brewery \#($0)","tags":["a","b"]}"# }.joined(separator: ",")
            + "]"
        let data = Data(text.utf8)
        let guarded = try (0..<3).map { _ in try processorTime { _ = try JSON.object(from: data) } }.min()
        let bare = try (0..<3).map { _ in try processorTime { _ = try JSONSerialization.jsonObject(with: data) } }.min()
        // The check is slow in a debug build, so this bound only detects quadratic cost. The
        // change log contains the figure of a release build.
        #expect(try #require(guarded) < #require(bare) * 4 + 1)
    }

    @Test(
        "Files of JSONTestSuite are accepted or rejected as expected, and none crashes the process",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func testSuite() throws {
        let folder = try #require(Corpora.folder).appendingPathComponent("JSONTestSuite")
        var count = 0
        for part in ["test_parsing", "test_transform"] {
            let files = try FileManager.default.contentsOfDirectory(
                at: folder.appendingPathComponent(part), includingPropertiesForKeys: nil)
            for file in files where file.pathExtension == "json" {
                let data = try Data(contentsOf: file)
                let name = file.lastPathComponent
                let object = Result { try JSON.object(from: data) }
                let value = Result { try JSON.decode(JSONValue.self, from: data) }
                if name.hasPrefix("y_") {
                    #expect(throws: Never.self) { try object.get() }
                    // JSONDecoder does not decode 0e1 as a Double.
                    #expect(throws: Never.self, "\(name)") { try name == "y_number_0e1.json" ? .null : value.get() }
                }
                // Foundation accepts a trailing comma; any other invalid JSON is an error.
                if name.hasPrefix("n_") && !Self.isAccepted.contains(name) {
                    #expect(throws: (any Error).self, "\(name)") { try object.get() }
                    #expect(throws: (any Error).self, "\(name)") { try value.get() }
                }
                _ = Redaction.standard.body(data, contentType: "application/json")
                count += 1
            }
        }
        #expect(count == 318 + 22)
    }

    private static let isAccepted: Set<String> = [
        "n_array_extra_comma.json", "n_array_number_and_comma.json", "n_object_trailing_comma.json",
    ]

    @Test(
        "Unusual numbers, surrogates and byte order marks are the same value or an error in both ways of parsing",
        arguments: [
            ("1e400", nil), ("-1e400", nil), ("NaN", nil), ("Infinity", nil), ("-Infinity", nil),
            ("nan", nil), (#""\ud800""#, nil), (#""\udc00\ud800""#, nil), (#""\ud83c\udf7a""#, .string("🍺")),
            ("\u{FEFF}[1]", .array([.integer(1)])), ("[1]\u{FEFF}", nil), ("null", .null), ("", nil), (" ", nil),
            ("\u{FEFF}", nil),
            ("[1] 2", nil), ("[1,]", .array([.integer(1)])), ("'a'", nil), ("\"a\u{0}\"", nil), ("\0[\0]", .array([])),
            ("[", nil), ("{\"a\"", nil),
            ("12345678901234567890123456789", .double(1.2345678901234568e28)),
        ] as [(String, JSONValue?)])
    func values(text: String, expected: JSONValue?) throws {
        let data = Data(text.utf8)
        let object = Result { try JSON.decode(Untyped.self, from: data).value }
        let value = Result { try JSON.decode(JSONValue.self, from: data) }
        #expect((try? object.get()) == expected)  // an error counts as no value
        #expect((try? value.get()) == expected)  // as above
    }

    @Test("Of repeated keys, one value counts")
    func repeatedKeys() throws {
        let repeated = Data(#"{"a":1,"a":2}"#.utf8)
        #expect([1, 2].contains(try JSON.decode([String: Int].self, from: repeated)["a"]))
    }
}
