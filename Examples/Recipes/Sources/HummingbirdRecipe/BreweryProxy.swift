import Hummingbird
import WebServiceCore

/// Returns a router whose handler calls another service.
///
/// `service` is created once and shared by all requests of the server, so that they share its
/// connections.
public func breweryProxy(service: WebService) -> Router<BasicRequestContext> {
    let router = Router()
    router.get("states/{state}/brewers") { request, context -> [String] in
        struct Brewer: Decodable, Sendable { var name: String }
        let state = try context.parameters.require("state")
        do {
            return try await service.GET("/brewers").setQueryParameters(["state": state])
                .decode([Brewer].self).value.map(\.name)
        } catch {
            context.logger.error("the list of breweries cannot be loaded: \(error)")
            throw HTTPError(.badGateway)
        }
    }
    // The body of the other service passes through in pieces.
    router.get("log") { request, context -> Hummingbird.Response in
        let log = try await service.GET("/log").stream().value
        return Hummingbird.Response(
            status: .ok,
            body: Hummingbird.ResponseBody { writer in
                for try await chunk in log.body { try await writer.write(ByteBuffer(bytes: chunk)) }
                try await writer.finish(nil)
            })
    }
    return router
}
