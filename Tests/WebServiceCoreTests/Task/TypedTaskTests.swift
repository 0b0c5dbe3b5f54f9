import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

private struct Beer: Codable, Equatable, Sendable {
    var name: String
    var abv: Double?
}

/// A type that is isolated to the main actor together with its `Decodable` conformance.
@MainActor
private struct MainBeer: @MainActor Decodable, Equatable {
    var name: String
}

extension HandSession {
    /// Creates a session that responds with a body and header fields.
    convenience init(_ body: Data, status: Int = 200, headers: [String: String] = [:]) {
        self.init { exchange in
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            exchange.completion(
                body, HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers), nil
            )
        }
    }
}

@Suite("Typed tasks", .permit)
struct TypedTaskTests {
    private func service(_ text: String, status: Int = 200, type: String? = nil) -> WebService {
        .make(HandSession(Data(text.utf8), status: status, headers: type.map { ["Content-Type": $0] } ?? [:]))
    }

    @Test("A closure of an awaited task runs on the handler pool, not on the thread of the caller")
    func closureOfAwaitedTask() async throws {
        #expect(try await service("ale").GET("/x").string().map { _ in HandlerPool.isCurrent }.value)
    }

    private func failure<Value>(_ task: TypedTask<Value>) async throws -> WebServiceError {
        let result = await task.result
        guard case .failure(let error) = result else {
            Issue.record("the task succeeded")
            throw TestError()
        }
        return try #require(error as? WebServiceError)
    }

    // MARK: Decoding

    @Test("JSON and property lists are decoded with the specified decoder")
    func decoding() async throws {
        let beers = try await service(#"[{"name":"Ale","abv":5.5}]"#).GET("/x").decode([Beer].self).value
        #expect(beers == [Beer(name: "Ale", abv: 5.5)])

        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        struct Snake: Decodable, Sendable { var fullName: String }
        #expect(
            try await service(#"{"full_name":"x"}"#).GET("/x").decode(Snake.self, decoder: decoder).value.fullName
                == "x")

        let plist = try PropertyListEncoder().encode(Beer(name: "Ale"))
        let beer = try await WebService.make(HandSession(plist)).GET("/x").decode(
            Beer.self, decoder: PropertyListDecoder()
        ).value
        #expect(beer == Beer(name: "Ale"))
    }

    @Test("A decoding error names the coding path and contains the body")
    func decodingError() async throws {
        let error = try await failure(
            service(#"{"beers":[{"name":"x"},{"name":7}]}"#).GET("/x").decode([String: [Beer]].self))
        #expect(error.code == .decoding)
        // The keys of a dictionary are data of the server.
        #expect(error.message.contains("*[1].name"))
        #expect(!error.message.contains("beers"))
        #expect(error.underlying is DecodingError)
        #expect(error.body?.count == 35)
        #expect(error.request?.url?.path == "/v1/x")
        let missing = try await failure(service("{}").GET("/x").decode(Beer.self))
        #expect(missing.message.contains("no value for 'name' at the top level"))
    }

    @Test("A main-actor-isolated type is decoded on the main actor")
    func mainActor() async throws {
        let task = service(#"{"name":"Ale"}"#).GET("/x").decode { @MainActor response in
            MainActor.assertIsolated()
            return try JSONDecoder().decode(MainBeer.self, from: response.data)
        }
        let beer = try await task.value
        #expect(await MainActor.run { beer == MainBeer(name: "Ale") })
    }

    @Test("Void and optional outputs accept 204 and empty bodies; other decoded types fail with emptyResponse")
    func emptyBodies() async throws {
        try await service("", status: 204).GET("/x").empty().value
        try await service("anything").GET("/x").empty().value
        #expect(try await service("", status: 204).GET("/x").decode(Beer?.self).value == nil)
        #expect(try await service(#"{"name":"Ale"}"#).GET("/x").decode(Beer?.self).value == Beer(name: "Ale"))
        #expect(try await service("").GET("/x").data().value == Data())
        let error = try await failure(service("", status: 204).GET("/x").decode(Beer.self))
        #expect(error.code == .emptyResponse)
        #expect(error.message.contains("Beer"))
        #expect(error.message.contains("204"))
    }

    @Test(
        "A string is decoded with the charset of the Content-Type field",
        arguments: [
            ("text/plain", [0xC3, 0xA9], "é"), ("text/plain; charset=utf-8", [0xC3, 0xA9], "é"),
            ("text/plain; charset=\"ISO-8859-1\"", [0xE9], "é"), ("text/plain;Charset=windows-1252", [0x80], "€"),
            ("text/plain; charset=utf-16be", [0x00, 0x41], "A"),
            ("text/plain; title=\"a; charset=utf-16be\"; charset=latin1", [0xE9], "é"),
            ("text/plain; title=\"a\\\"; charset=utf-16be; \"; charset = \"lat\\in1\"", [0xE9], "é"),
            ("text/plain; charset='latin1'", [0xE9], "é"),
        ] as [(String, [UInt8], String)])
    func charsets(type: String, bytes: [UInt8], text: String) async throws {
        let service = WebService.make(HandSession(Data(bytes), headers: ["Content-Type": type]))
        #expect(try await service.GET("/x").string().value == text)
    }

    @Test("Bytes that are invalid in the charset and unsupported charsets are decoding errors")
    func badCharsets() async throws {
        let broken = WebService.make(
            HandSession(Data([0xFF, 0xFE, 0xFF]), headers: ["Content-Type": "text/plain; charset=utf-8"]))
        #expect(try await failure(broken.GET("/x").string()).code == .decoding)
        #expect(try await failure(service("x", type: "text/plain; charset=utf-7").GET("/x").string()).code == .decoding)
    }

    @Test("Untyped JSON is accessed by name and index")
    func anyJSON() async throws {
        let json = try await service(#"{"a":[1,true,null,"x",2.5,{"b":{}}]}"#).GET("/x").json().value
        let list = try #require(json["a"])
        #expect(list[0]?.int == 1)
        #expect(list[1]?.bool == true)
        #expect(list[2] == .null)
        #expect(list[2]?.isNull == true)
        #expect(list[3]?.string == "x")
        #expect(list[4]?.double == 2.5)
        #expect(list[4]?.int == nil)
        #expect(list[5]?["b"] == .object([:]))
        #expect(list[6] == nil)
        #expect(json["nothing"] == nil)
        #expect(list.array?.count == 6)
        #expect(json.object?.count == 1)
    }

    @Test("JSONValue is decoded as a part of other types, and malformed JSON is a decoding error")
    func anyJSONDecoding() async throws {
        #expect(try await failure(service("{").GET("/x").json()).code == .decoding)
        let decoded = try await service(#"{"a":[1,true,null]}"#).GET("/x").decode([String: JSONValue].self).value
        #expect(decoded["a"] == .array([.integer(1), .bool(true), .null]))
    }

    // MARK: Validation

    @Test(
        "Only statuses from 200 to 299 are accepted, and the error contains the body of the response",
        arguments: [199, 200, 299, 300, 404, 500])
    func statuses(status: Int) async throws {
        let task = service(#"{"error":"why"}"#, status: status).GET("/x").data()
        if (200...299).contains(status) {
            #expect(try await task.value.count == 15)
        } else {
            let error = try await failure(task)
            #expect(error.code == .unacceptableStatus)
            #expect(error.status == status)
            #expect(error.response?.status == status)
            #expect(error.body == Data(#"{"error":"why"}"#.utf8))
        }
    }

    @Test("Validation steps replace or remove the default status check, before or after other steps")
    func validation() async throws {
        #expect(try await service("x", status: 404).GET("/x").data().validate(statuses: [404]).value.count == 1)
        #expect(try await service("x", status: 500).GET("/x").string().map(\.count).validateNothing().value == 1)
        #expect(
            try await failure(service("x").GET("/x").data().validate(statuses: 201...204)).code == .unacceptableStatus)
        let result = await service("x").GET("/x").data().validate { _ in throw TestError(name: "mine") }.result
        #expect(throws: TestError(name: "mine")) { try result.get() }
    }

    @Test(
        "Media types are compared without case and parameters, and a +json suffix matches JSON",
        arguments: [
            ("application/json; charset=utf-8", true), ("APPLICATION/JSON", true), ("application/problem+json", true),
            ("text/html", false),
            (nil, false),
        ])
    func contentTypes(type: String?, accepted: Bool) async throws {
        let task = service("{}", type: type).GET("/x").json().validate(contentTypes: ["application/json"])
        if accepted {
            #expect(try await task.value == .object([:]))
        } else {
            #expect(try await failure(task).code == .unexpectedContentType)
        }
    }

    @Test(
        "A pattern matches its own media type, type/* matches every subtype, and */* matches everything",
        arguments: [
            ("text/plain", "text/*", true), ("TEXT/html; a=b", "text/*", true), ("text/", "text/*", true),
            ("textual/plain", "text/*", false),
            ("text", "text/*", false), ("text2/plain", "text/*", false), ("image/text", "text/*", false),
            ("a/b", "*/*", true), ("", "*/*", true),
            ("text/json", "application/json", false), ("application/xjson", "application/json", false),
            ("a/b+json", "application/json", true),
            ("a/b+json", "application/xml", false), ("application/json;\u{301}a=b", "application/json", true),
            ("application/json\u{600};a=b", "application/json", true),
            ("text/html;, application/json", "application/json", false),
        ])
    func mediaTypes(type: String, pattern: String, matches: Bool) {
        #expect(MediaType.matches(type, pattern: pattern) == matches)
    }

    @Test(
        "A charset is parsed with or without quotation marks and after a delimiter with a combining character",
        arguments: [
            ("text/plain; charset=latin1", "latin1"), ("a/b;charset=\"latin1\"", "latin1"),
            ("a/b; CharSet = 'latin1' ", "latin1"),
            ("a/b; a=b; charset=latin1; charset=utf-8", "latin1"), ("a/b;charset=", nil), ("a/b;charset", nil),
            ("charset=latin1", nil),
            ("a/b; xcharset=latin1", nil), ("a/b\u{600};charset=latin1", "latin1"),
            ("a/b; a=\u{301}b;charset=latin1", "latin1"),
            ("a/b; charset=\u{301}x", "\u{301}x"), ("a/b; a=b;\u{301};charset=latin1", "latin1"),
            ("a/b; charset=x=y", "x=y"),
        ] as [(String, String?)])
    func charsets(type: String, charset: String?) {
        #expect(MediaType.parameter("charset", of: type).map { Array($0.utf8) } == charset.map { Array($0.utf8) })
    }

    @Test(
        "Validation checks run in order, and the first failure ends them and is the error of the task",
        arguments: [(true, true), (false, true), (true, false), (false, false)])
    func severalChecks(first: Bool, second: Bool) async throws {
        let made = Collected<Int>()
        let task = service("x").GET("/x").data()
            .validate { _ in
                made.add(1)
                if !first { throw TestError(name: "first") }
            }
            .validate { _ in
                made.add(2)
                if !second { throw TestError(name: "second") }
            }
        let result = await task.result
        if first, second {
            #expect(try result.get() == Data("x".utf8))
        } else {
            #expect(throws: TestError(name: first ? "second" : "first")) { try result.get() }
        }
        #expect(made.values == (first ? [1, 2] : [1]))
    }

    @Test("A problem document is parsed from an error, and its body can be decoded as a custom type")
    func problem() async throws {
        let body =
            #"{"type":"https://h/p","title":"Out of stock","status":409,"detail":"no ale","instance":"/o/1","left":0}"#
        let error = try await failure(service(body, status: 409, type: "application/problem+json").GET("/x").data())
        let problem = try #require(error.problem)
        #expect(problem.type == "https://h/p")
        #expect(problem.title == "Out of stock")
        #expect(problem.status == 409)
        #expect(problem.detail == "no ale")
        #expect(problem.instance == "/o/1")
        #expect(problem.extensions["left"] == .integer(0))
        struct Left: Decodable { var left: Int }
        #expect(try error.decodeBody(Left.self).left == 0)
        let other = try await failure(service("{}", status: 409, type: "application/json").GET("/x").data())
        #expect(other.problem == nil)
    }

    // MARK: Steps

    @Test("The steps map, mapAsync, flatMap and recover are chained in order")
    func steps() async throws {
        let service = service("[1,2,3]")
        let sum = try await service.GET("/x").decode([Int].self)
            .map { $0.reduce(0, +) }
            .mapAsync { sum in
                await Task.yield()
                return sum * 10
            }
            .flatMap { value in service.GET("/y").decode([Int].self).map { $0.count + value } }
            .value
        #expect(sum == 63)
        let recovered = try await self.service("no", status: 500).GET("/x").string().recover { error in
            "recovered from \((error as? WebServiceError)?.status ?? 0)"
        }.value
        #expect(recovered == "recovered from 500")
        let failed = await self.service("1").GET("/x").decode(Int.self).map { _ -> Int in throw TestError(name: "map") }
            .map { $0 + 1 }.result
        #expect(throws: TestError(name: "map")) { try failed.get() }
    }

    @Test("Observers added before or after completion receive the result in order, UI observers on the main actor")
    func observers() async throws {
        let seen = Collected<String>()
        let task = service("7").GET("/x").decode(Int.self)
        task.onSuccess { seen.add("success \($0)") }
            .onError { _ in seen.add("must not run") }
            .updateUI { value in
                MainActor.assertIsolated()
                seen.add("ui \(value)")
            }
            .updateErrorUI { _ in seen.add("must not run") }
            .onCompletion { seen.add("completion \((try? $0.get()) ?? 0)") }
            .resume()
        await seen.wait(for: 3)
        task.onSuccess { seen.add("late \($0)") }
        #expect(await seen.wait(for: 4) == ["success 7", "ui 7", "completion 7", "late 7"])

        let errors = Collected<String>()
        service("x", status: 500).GET("/x").data().onSuccess { _ in errors.add("must not run") }
            .onError { _ in errors.add("error") }.updateErrorUI { _ in errors.add("ui") }.resume()
        #expect(await errors.wait(for: 2) == ["error", "ui"])
    }

    @Test("The result and the response can be awaited repeatedly, and the response is returned for any status")
    func awaiting() async throws {
        let session = HandSession(Data("x".utf8), status: 404)
        let task = WebService.make(session).GET("/x").data()
        async let first = task.result
        async let second = task.response
        let (result, response) = try await (first, second)
        #expect(throws: WebServiceError.self) { try result.get() }
        #expect(response.status == 404)
        #expect(response.data.count == 1)
        #expect(response.attempts == 1)
        #expect(session.exchanges.values.count == 1)
    }

    @Test("The error of an untyped handler before the typed step is the error of the typed task")
    func untypedFailure() async throws {
        let task = service("x").GET("/x").response { _, _ in throw TestError(name: "untyped") }.data()
        let result = await task.result
        #expect(throws: TestError(name: "untyped")) { try result.get() }
    }
}
