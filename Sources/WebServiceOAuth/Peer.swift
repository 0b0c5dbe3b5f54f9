import Foundation
import WebServiceCore

/// The connection to an authorization server or a resource: the service that sends the requests,
/// and the URLs that are allowed.
struct Peer: Sendable {
    /// The maximum size of a document, in bytes.
    static let maximumBytes = 256 << 10

    let service: WebService
    let dpop: DPoP?
    private let origins: Set<Origin>
    private let allowsLoopbackHTTP: Bool

    init(_ service: WebService?, _ dpop: DPoP? = nil, _ origins: Set<Origin> = [], allowsLoopbackHTTP: Bool) {
        // The service is copied, because an interceptor that is added later may own this peer. The
        // copy has no `Authentication`, because an `Authentication` may depend on this peer.
        self.service = service?.clone() ?? WebService(baseURL: nil)
        self.service.interceptors = self.service.interceptors.compactMap(Self.usable)
        (self.dpop, self.origins, self.allowsLoopbackHTTP) = (dpop, origins, allowsLoopbackHTTP)
    }

    /// Returns an interceptor that sends a code to no other origin, and again only if it was not
    /// sent (RFC 6749, section 4.1.2); `nil` if there is none.
    private static func usable(_ interceptor: any Interceptor) -> (any Interceptor)? {
        if var policy = interceptor as? RetryPolicy {
            policy.retriesAnyMethod = false
            return policy
        }
        let place = (interceptor as? any PlacedInterceptor).map { type(of: $0).place }
        return interceptor is Authentication || place == .idempotencyKey || place == .endpoints ? nil : interceptor
    }

    var clock: TaskClock { service.core.clock }

    /// Returns a request that expects a JSON document.
    func request(_ method: Request.Method, _ url: URL) -> Request {
        var request = Request(method, url: url)
        request.options = service.options
        request.headers[.accept] = "application/json"
        request.options.redirectPolicy = .manual
        request.options.maximumResponseBytes = Self.maximumBytes
        request.options.shouldHandleCookies = false
        return request
    }

    /// Returns the response to a request, regardless of its status.
    func response(to request: Request, isTokenRequest: Bool = false) async throws -> Response {
        var request = request
        if isTokenRequest, let dpop { request.options.interceptors.append(dpop.forTokenRequests) }
        return try await service.sessionTask(request: request).empty().response
    }

    /// Returns the URL in a text, or `nil` if it is not an absolute URL without a fragment that
    /// uses https or, where allowed, http.
    func url(_ text: String) -> URL? {
        guard ASCII.isVisible(text.utf8), !text.utf8.contains(UInt8(ascii: "#")), let origin = Origin(text),
            origin.scheme == "https" || allowsLoopbackHTTP && origin.isLoopback
        else { return nil }
        return URL(string: text)
    }

    /// Returns the URL of a server's endpoint.
    ///
    /// - Throws: `WebServiceError.Code.invalidServerMetadata` if there is no such endpoint, or if
    ///   its URL is not allowed.
    func endpoint(
        _ read: (OAuth.ServerMetadata) -> URL?, _ name: String, of metadata: OAuth.ServerMetadata
    ) throws -> URL {
        guard let endpoint = read(metadata) else {
            throw WebServiceError(.invalidServerMetadata, "the authorization server has no \(name)")
        }
        guard url(endpoint.absoluteString) != nil, let origin = Origin(endpoint) else {
            throw WebServiceError(
                .invalidServerMetadata, "the \(name) is not an https URL; allowsLoopbackHTTP permits http for loopback")
        }
        guard origin == Origin(metadata.issuer) || origins.contains(origin) else {
            throw WebServiceError(
                .invalidServerMetadata,
                "the origin of the \(name), \(origin), differs from that of the issuer; to allow it, add it to "
                    + "'origins'")
        }
        return endpoint
    }
}

extension Origin {
    /// Whether the host is the device itself (RFC 8252, section 7.3).
    var isLoopback: Bool { ["127.0.0.1", "[::1]", "localhost"].contains(host) }
}
