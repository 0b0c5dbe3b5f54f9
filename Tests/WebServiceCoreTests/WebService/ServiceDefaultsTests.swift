import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Defaults of a service", .timeLimit(.minutes(10)))
struct ServiceDefaultsTests {
    private struct Brew: Codable, Equatable, Sendable {
        var brewName: String
    }

    private struct Search: ParameterizedRequest {
        typealias Output = Data
        var path: String { "/search" }
        var headers: Headers { ["accept": "text/plain", "X-Part": "1"] }
    }

    private static let snakeCase: (decoder: JSONDecoder, encoder: JSONEncoder) = {
        let (decoder, encoder) = (JSONDecoder(), JSONEncoder())
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return (decoder, encoder)
    }()

    private func sent(_ session: HandSession) throws -> URLRequest {
        try #require(session.exchanges.values.last).request.urlRequestValue
    }

    @Test("A task has the header fields and options of its service, and can replace or remove each one")
    func fields() async throws {
        let session = HandSession(text: "x")
        let service = WebService.make(session)
        service.headers = ["Accept": "a/b", "X-App": "1", "X-Old": "2"]
        service.options.timeout = .seconds(7)
        service.options.maximumResponseBytes = 9
        let task = service.GET("/x").setHeaderValue("c/d", forName: "accept").setHeaderValue(nil, forName: "X-Old")
            .setTimeout(.seconds(3))
        _ = try await task.data().value
        let sent = try sent(session)
        #expect(sent.allHTTPHeaderFields == ["accept": "c/d", "X-App": "1"])
        #expect(sent.timeoutInterval == 3 && task.request.options.maximumResponseBytes == 9)
        #expect(service.headers[.accept] == "a/b" && service.options.timeout == .seconds(7))
    }

    @Test("Requests have the defaults at the time of their creation, and a clone has its own defaults")
    func creation() {
        let service = WebService.make()
        service.headers = ["X-App": "1"]
        service.options.deadline = .seconds(5)
        let request = service.request(.GET, path: "/x")
        let task = service.DELETE("/x")
        let clone = service.clone()
        service.headers = ["X-App": "2"]
        service.options = Request.Options()
        for request in [request, task.request, clone.GET("/x").request] {
            #expect(request.headers == ["X-App": "1"] && request.options.deadline == .seconds(5))
        }
        #expect(service.GET("/x").request.headers == ["X-App": "2"])
        #expect(service.GET("/x").request.options.deadline == .seconds(600))
    }

    @Test("A request that was created elsewhere is sent with its own header fields and options")
    func elsewhere() async throws {
        let session = HandSession(text: "x")
        let service = WebService.make(session)
        service.headers = ["X-App": "1"]
        service.options.timeout = .seconds(7)
        let url = try #require(URL(string: "https://h/x"))
        let requests: [any URLRequestEncodable] = [Request(url: url), URLRequest(url: url)]
        for request in requests {
            _ = try await service.sessionTask(request: request).data().value
            let sent = try sent(session)
            #expect(sent.value(forHTTPHeaderField: "X-App") == nil && sent.timeoutInterval == 60)
        }
    }

    @Test("A parameterized request adds its header fields to those of the service")
    func parameterized() throws {
        let service = WebService.make()
        service.headers = ["Accept": "a/b", "X-App": "1", "X-App": "2"]
        service.options.timeout = .seconds(7)
        let request = try Search().request(for: service)
        #expect(request.headers == ["accept": "text/plain", "X-Part": "1", "X-App": "1", "X-App": "2"])
        #expect(request.options.timeout == .seconds(7))
    }

    @Test("Values are decoded by the decoder of the service unless the call specifies one")
    func decoder() async throws {
        let service = WebService.make(HandSession(text: #"{"brew_name":"Ale"}"#))
        let before = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").decode(Brew.self).value
        }
        #expect(before?.code == .decoding)
        service.decoder = Self.snakeCase.decoder
        #expect(try await service.GET("/x").decode(Brew.self).value == Brew(brewName: "Ale"))
        let explicit = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").decode(Brew.self, decoder: JSONDecoder()).value
        }
        #expect(explicit?.code == .decoding)
    }

    @Test("The elements of a stream are decoded by the decoder of the service")
    func streamDecoder() async throws {
        let service = WebService.make(HandSession(text: #"{"brew_name":"Ale"}"# + "\n"))
        service.decoder = Self.snakeCase.decoder
        var brews: [Brew] = []
        for try await brew in service.GET("/x").jsonLines(Brew.self) { brews.append(brew) }
        #expect(brews == [Brew(brewName: "Ale")])
    }

    private struct Brews: ParameterizedRequest, RawStorableRequest {
        typealias Output = Brew
        var method: Request.Method { .POST }
        var path: String { "/brews" }
        var storageIdentifier: String? { "brews" }
        var body: some Encodable { Brew(brewName: "Ale") }
    }

    private struct OwnBrews: ParameterizedRequest {
        typealias Output = Brew
        var method: Request.Method { .POST }
        var path: String { "/brews" }
        var body: some Encodable { Brew(brewName: "Ale") }
        var decoder: any BodyDecoder { JSONDecoder() }
        var encoder: any BodyEncoder { JSONEncoder() }
    }

    @Test("Typed requests use the decoder and the encoder of the service unless they define their own")
    func typed() async throws {
        let session = HandSession(text: #"{"brew_name":"Ale"}"#)
        let service = WebService.make(session)
        service.storages = [MemoryStorage()]
        (service.decoder, service.encoder) = Self.snakeCase
        #expect(try await service.perform(Brews()).value == Brew(brewName: "Ale"))
        #expect(try sent(session).httpBody == Data(#"{"brew_name":"Ale"}"#.utf8))
        #expect(try await service.stored(Brews()).value.value == Brew(brewName: "Ale"))
        #expect(try Brews().request(for: service).body == Data(#"{"brew_name":"Ale"}"#.utf8))
        let error = await #expect(throws: WebServiceError.self) { try await service.perform(OwnBrews()).value }
        #expect(error?.code == .decoding)
        #expect(try sent(session).httpBody == Data(#"{"brewName":"Ale"}"#.utf8))
    }

    @Test("Values are encoded by the encoder of the service unless the call specifies one")
    func encoder() async throws {
        let session = HandSession(text: "x")
        let service = WebService.make(session)
        service.encoder = Self.snakeCase.encoder
        _ = try await service.POST("/x").setJSON(Brew(brewName: "Ale")).data().value
        #expect(try sent(session).httpBody == Data(#"{"brew_name":"Ale"}"#.utf8))
        _ = try await service.POST("/x").setJSON(Brew(brewName: "Ale"), encoder: JSONEncoder()).data().value
        #expect(try sent(session).httpBody == Data(#"{"brewName":"Ale"}"#.utf8))
    }
}
