import Hummingbird
import WebServiceCore

/// A brewer with its reviews, from two requests.
struct BrewerPage: ResponseEncodable {
    var name: String
    var reviews: [String]
}

/// Returns the router of the server.
///
/// - Parameters:
///   - service: The service of the brewery API, which all requests of the server share.
///   - maximumDuration: The maximum duration of a handler's requests together.
func breweryRouter(
    service: WebService, maximumDuration: Duration = .seconds(10)
) -> Router<BasicRequestContext> {
    let router = Router()
    router.add(middleware: UpstreamErrorMiddleware())
    router.add(middleware: TraceContextMiddleware())

    let calls = router.group().add(middleware: DeadlineMiddleware(service: service, maximum: maximumDuration))
    calls.get("states/{state}/brewers") { request, context -> [String] in
        struct Brewer: Decodable, Sendable { var name: String }
        let state = try context.parameters.require("state")
        return try await service.GET("/brewers").setQueryParameters(["state": state])
            .decode([Brewer].self).value.map(\.name)
    }
    calls.get("brewers/{id}") { request, context -> BrewerPage in
        struct Brewer: Decodable, Sendable { var name: String }
        let id = try context.parameters.require("id", as: Int.self)
        // Both requests are in flight at the same time, and share the deadline.
        async let brewer = service.GET("/brewers/{id}", pathParameters: ["id": id]).decode(Brewer.self).value
        async let reviews = service.GET("/brewers/{id}/reviews", pathParameters: ["id": id])
            .decode([String].self).value
        return try await BrewerPage(name: brewer.name, reviews: reviews)
    }

    // A log may have no end, so it has no deadline.
    router.get("log") { request, context -> Hummingbird.Response in
        let log = try await service.GET("/log").stream().value
        var headers = HTTPFields()
        headers[.contentType] = log.headers[.contentType]
        return Hummingbird.Response(
            status: .ok, headers: headers,
            body: Hummingbird.ResponseBody { writer in
                // A client that disconnects ends the loop even while no piece arrives.
                try await request.body.consumeWithCancellationOnInboundClose { _ in
                    try await forward(log.body, to: &writer)
                }
                try await writer.finish(nil)
            })
    }
    return router
}

/// Writes the body of a response of the brewery API to a client of the server.
///
/// A piece is read after the client has received the previous one. If the client is slow, the
/// session stops reading from the connection, so that the memory in use stays small. If the client
/// disconnects, the loop ends, which closes the connection to the brewery API.
func forward(
    _ body: WebServiceCore.ResponseBody, to writer: inout any ResponseBodyWriter
) async throws {
    for try await chunk in body { try await writer.write(ByteBuffer(bytes: chunk)) }
}
