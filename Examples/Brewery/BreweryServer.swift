import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A small brewery API on a ``MockServer``.
enum BreweryServer {
    static func start() throws -> MockServer {
        let cellar = Cellar()
        return try MockServer { request in
            let parts = request.path.split(separator: "/").map(String.init)
            switch (request.method, parts.count, parts.first) {
            case (.GET, 1, "brewers"):
                return try json(200, cellar.list(state: request.queryItems.first { $0.name == "state" }?.value))
            case (.POST, 1, "brewers"):
                guard let brewer = try? JSONDecoder().decode(Brewer.self, from: request.body)  // responds with 400
                else { break }
                return try json(201, cellar.add(brewer))
            case (.GET, 2, "brewers"):
                return try Int(parts[1]).flatMap(cellar.brewer).map { try json(200, $0) } ?? notFound
            case (.PUT, 2, "brewers"):
                guard let name = request.formItems.first(where: { $0.name == "name" })?.value else { break }
                return try Int(parts[1]).flatMap { cellar.rename($0, to: name) }.map { try json(200, $0) } ?? notFound
            case (.DELETE, 2, "brewers"):
                return Int(parts[1]).flatMap(cellar.remove) == nil ? notFound : MockResponse(statusCode: 204)
            case (.GET, 1, "specials"):
                guard request.headers[.authorization] == "Bearer fresh" else { return MockResponse(statusCode: 401) }
                guard cellar.isServed() else {
                    var busy = MockResponse(statusCode: 503)
                    busy.headers[.retryAfter] = "1"
                    return busy
                }
                return try json(200, cellar.list(state: "vermont"))
            case (.GET, 1, "archive"):
                let number = { (name: String) in
                    request.queryItems.first { $0.name == name }.flatMap { Int($0.value) }
                }
                return try json(200, cellar.archive(from: number("offset") ?? 0, limit: number("limit") ?? 10))
            case (.GET, 1, "poster"):
                return MockResponse(file: poster, eTag: "\"1\"", for: request)
            case (.POST, 1, "chat"):
                return reply
            case (.GET, 1, "menu"):
                return MockResponse(statusCode: 200, data: Data("<html>Today: soup</html>".utf8))
            default:
                return notFound
            }
            return MockResponse(statusCode: 400, json: ["error": "the request body is malformed"])
        }
    }

    /// A reply in the event format of the APIs of large language models.
    private static let reply: MockResponse = {
        var response = MockResponse(statusCode: 200) { body in
            let text = "I recommend the Long Trail Ale from Vermont. It is malty, mild and served fresh."
            for token in text.split(separator: " ", omittingEmptySubsequences: false) {
                let json = try JSONEncoder().encode(Chat.Token(token: token == "I" ? "I" : " \(token)"))
                try body.write(Data("data: ".utf8) + json + Data("\n\n".utf8))
                body.pause(for: .milliseconds(20))
            }
            try body.write(Data("data: [DONE]\n\n".utf8))
        }
        response.headers[.contentType] = "text/event-stream"
        return response
    }()

    /// A file of a megabyte.
    static let poster = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })

    private static let notFound = MockResponse(statusCode: 404, json: ["error": "not found"])

    private static func json(_ status: Int, _ value: some Encodable) throws -> MockResponse {
        var response = MockResponse(statusCode: status, data: try JSONEncoder().encode(value))
        response.headers[.contentType] = ContentType.json
        return response
    }
}
