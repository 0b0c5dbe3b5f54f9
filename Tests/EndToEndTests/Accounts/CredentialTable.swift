import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The servers and requests of ``CredentialTableTests``.
///
/// A request names its redirects in its path: `/chain/<id>/302-port/307-home` redirects with 302
/// to another port and from there with 307 back to the first origin.
struct CredentialTable {
    /// The target of a redirect.
    enum Place: String, CaseIterable {
        /// The origin of the base URL.
        case home
        /// The same host with another port.
        case port
        /// The same server by another host name.
        case name
        /// Another host name and another port.
        case other
    }

    /// A request and its redirects.
    struct Row: CustomStringConvertible {
        let method: Request.Method
        let status: Int
        let places: [Place]
        var resendsBody = false

        var hasBody: Bool { [.POST, .PUT, .PATCH].contains(method) }
        var path: String { places.map { "/\(status)-\($0)" }.joined() }
        var description: String { "\(method) \(path)\(resendsBody ? " with its body" : "")" }

        /// Whether a redirect removes the body (RFC 9110, section 15.4).
        private var becomesGET: Bool { status == 303 ? method != .HEAD : status < 303 && method == .POST }

        /// The places that receive a request, and whether the redirect after them is refused.
        var outcome: (hops: [Place], isRefused: Bool) {
            guard hasBody, !becomesGET, !resendsBody else { return ([.home] + places, false) }
            let hops = [Place.home] + places.prefix { $0 == .home }
            return (hops, hops.count <= places.count)
        }

        func sendsBody(atHop number: Int) -> Bool { hasBody && (number == 0 || !becomesGET) }
    }

    /// All rows: statuses, methods and chains, including those that return to the first origin.
    static let rows: [Row] = {
        let chains: [[Place]] = [
            [.home], [.port], [.name], [.other], [.home, .port], [.port, .home], [.name, .home],
            [.other, .port, .home],
        ]
        return [301, 302, 303, 307, 308].flatMap { status in
            [Request.Method.GET, .HEAD, .DELETE, .POST, .PUT].flatMap { method in
                chains.flatMap { places in
                    let row = Row(method: method, status: status, places: places)
                    let open = Row(method: method, status: status, places: places, resendsBody: true)
                    return row.hasBody && status >= 307 ? [row, open] : [row]
                }
            }
        }
    }()

    /// The fields with credentials that a request has, by their source.
    static let fields: [Headers.Name] = [
        "Authorization", "Cookie", "X-API-Key", "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key", "Referer",
        "X-Service-Key", "X-Default-Key", "X-Interceptor-Key", "X-Account-Token", "traceparent", "tracestate",
    ]

    let home: MockServer
    let away: MockServer

    init() throws {
        let servers = Mutex<(home: Int, away: Int)>((0, 0))
        let handler: MockServer.Handler = { request in
            let parts = request.path.split(separator: "/")
            var response = MockResponse(statusCode: 200, data: Data("end".utf8))
            response.headers["Cache-Control"] = "no-store"
            guard parts.count > 2 else { return response }
            let hop = parts[2].split(separator: "-")
            let (home, away) = servers.withLock { $0 }
            let origin =
                switch Place(rawValue: String(hop[1])) {
                case .home: "127.0.0.1:\(home)"
                case .port: "127.0.0.1:\(away)"
                case .name: "localhost:\(home)"
                case .other, nil: "localhost:\(away)"
                }
            response.statusCode = Int(hop[0]) ?? 500
            response.headers[.location] =
                "http://\(origin)/" + (parts[..<2] + parts[3...]).joined(separator: "/")
            return response
        }
        home = try MockServer(handler: handler)
        away = try MockServer(handler: handler)
        servers.withLock { $0 = (home.port, away.port) }
    }

    func stop() {
        home.stop()
        away.stop()
    }

    /// Returns a service whose requests have every kind of credential.
    func service(over session: any Session) -> WebService {
        let service = WebService(home.baseURLString, session: session)
        service.headers = ["X-Service-Key": "canary-service"]
        service.interceptors = [
            .headers(["X-Default-Key": "canary-default"]), .traceContext(),
            .closure { request, next in
                var request = request
                request.headers["X-Interceptor-Key"] = "canary-interceptor"
                return try await next(request)
            },
            Authentication(TokenSource(Credential(header: "X-Account-Token", value: "canary-token"))),
        ]
        return service
    }

    /// Returns the task of a row.
    func task(_ row: Row, id: Int, _ service: WebService) -> SessionTask {
        var request = service.request(row.method, path: "/chain/\(id)\(row.path)")
        request.queryParameters = ["key": "canary-query"]
        for field in Self.fields where field.rawValue.hasPrefix("X-A") || !field.rawValue.hasPrefix("X-") {
            if field != "X-Account-Token", field != "traceparent" { request.headers[field] = "canary-field" }
        }
        request.headers["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        request.headers[.accept] = "text/plain"
        if row.hasBody { request.body = Data("canary-body".utf8) }
        request.options.redirectPolicy.resendsBodyAcrossOrigins = row.resendsBody
        return service.sessionTask(request: request)
    }
}
