import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The brewery API on this machine, for `--demo`.
enum DemoServer {
    static let brewers = (1...45).map {
        Brewer(id: $0, name: "Brewer \($0)", state: $0.isMultiple(of: 3) ? "maine" : "vermont")
    }
    static let poster = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })
    static let tappings = ["Pale Ale", "Porter", "Stout", "Wheat", "Lager"].enumerated().map {
        Tapping(tap: $0 + 1, beer: $1)
    }

    static func start() throws -> MockServer {
        let server = try MockServer()
        server.on(.GET, "/brewers") { request in
            let query = { name in request.queryItems.first { $0.name == name }?.value }
            let state = query("state")
            let matching = brewers.filter { state == nil || $0.state == state }
            let page = matching.dropFirst(query("offset").flatMap { Int($0) } ?? 0)
            return .json(Array(page.prefix(query("limit").flatMap { Int($0) } ?? 20)))
        }
        server.on(.GET, "/brewers/{id}") { request in
            guard let brewer = brewers.first(where: { "\($0.id)" == request.pathParameters["id"] }) else {
                return .problem(404, title: "There is no such brewer")
            }
            return .json(brewer)
        }
        server.on(.POST, "/orders") { request in
            guard request.headers[.authorization] == "Bearer demo" else { return .status(401) }
            let order = try request.decode(Order.self)
            guard order.kegs <= 10 else { return .problem(409, title: "Out of stock", detail: "10 kegs are left") }
            return .json(Receipt(number: 1_000 + order.brewer), status: 201)
        }
        server.on(.GET, "/poster") { MockResponse(file: poster, eTag: "\"1\"", for: $0) }
        server.on(.GET, "/tappings") { request in
            // The client has received all events, and is to connect no more.
            if request.headers["Last-Event-ID"] == "\(tappings.count)" { return .status(204) }
            var response = MockResponse(statusCode: 200) { body in
                for tapping in tappings {
                    let json = String(decoding: try JSONEncoder().encode(tapping), as: UTF8.self)
                    try body.write(Data("id: \(tapping.tap)\ndata: \(json)\n\n".utf8))
                    body.pause(for: .milliseconds(50))
                }
            }
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        return server
    }
}
