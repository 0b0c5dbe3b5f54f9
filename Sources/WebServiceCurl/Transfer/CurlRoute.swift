import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The proxy and the addresses that closures of the configuration return for one request.
struct CurlRoute: Sendable {
    /// The proxy; `nil` to use the proxy of the configuration.
    var proxy: CurlSession.Proxy?
    /// The addresses of the host in the syntax of libcurl; `nil` to let libcurl look them up.
    var resolution: String?
}

extension CurlSession.Configuration {
    /// Whether closures determine the route of a request.
    var hasRoutes: Bool {
        if resolver != nil { return true }
        if case .perRequest = proxy { return true }
        return false
    }

    /// Calls the closures for a request.
    ///
    /// - Throws: The errors of the closures, or `WebServiceError.Code.curl` for a result that
    ///   cannot be used.
    func route(for request: EncodedRequest) async throws -> CurlRoute {
        var route = CurlRoute()
        guard unixSocketPath == nil else { return route }
        if case .perRequest(let select) = proxy {
            guard let url = URL(string: request.url) else { throw URLError(.badURL) }
            let proxy = try await select(url)
            if case .perRequest = proxy {
                throw WebServiceError(.curl, "the closure of perRequest returned perRequest; return another case")
            }
            if proxy.scheme == "https", !CurlSession.Proxy.supportsHTTPS {
                throw WebServiceError(.curl, "this build of libcurl does not support https proxies; use an http proxy")
            }
            try proxy.check()
            route.proxy = proxy
        }
        if let resolver, (route.proxy ?? proxy).address == nil, let origin = Origin(request.url),
            case let name = "\(origin.host):\(origin.port)", try resolutions()[name] == nil,
            origin.host.first != "[", !Self.isAddress(origin.host),
            let addresses = try await resolver(origin.host, origin.port)
        {
            route.resolution = try Self.resolution(of: name, addresses, "the result of 'resolver'")
        }
        return route
    }
}
