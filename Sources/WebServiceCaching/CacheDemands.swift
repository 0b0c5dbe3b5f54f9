import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The cache requirements of a request, from its `Request.Options.cachePolicy` and its
/// `Cache-Control` (RFC 9111, section 5.2.1).
struct CacheDemands: Sendable {
    enum Mode: Sendable, Hashable {
        /// A stored response that is fresh enough is used.
        case fresh
        /// A stored response is used after the server has validated it.
        case validated
        /// No stored response is used.
        case reload
        /// A stored response is used regardless of its age.
        case any
    }

    let mode: Mode
    /// Whether only a stored response may be used. If there is none, the exchange fails with
    /// `URLError.resourceUnavailable`.
    let isOffline: Bool
    let control: CacheControl

    init(_ request: Request) {
        let fields = request.headers.values(for: .cacheControl)
        let isPragma =
            fields.isEmpty && request.headers.values(for: "Pragma").flatMap(CacheControl.names).contains("no-cache")
        control = CacheControl(isPragma ? ["no-cache"] : fields)
        isOffline = request.options.cachePolicy == .returnCacheDataDontLoad
        switch request.options.cachePolicy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: mode = .reload
        case .returnCacheDataElseLoad, .returnCacheDataDontLoad: mode = .any
        case .reloadRevalidatingCacheData: mode = .validated
        default: mode = control.has("no-store") ? .reload : control.has("no-cache") ? .validated : .fresh
        }
    }

    /// Whether the response may be stored.
    var stores: Bool { !control.has("no-store") }
    /// Whether the cache returns status 504 instead of sending the request if it has no suitable
    /// response.
    var isOnlyIfCached: Bool { control.has("only-if-cached") }

    /// Returns the request with the header fields that apply the cache policy to other caches on
    /// the path to the server.
    func message(_ request: Request) -> Request {
        guard request.headers[.cacheControl] == nil else { return request }
        var message = request
        switch request.options.cachePolicy {
        case .reloadIgnoringLocalAndRemoteCacheData:
            message.headers[.cacheControl] = "no-cache"
            message.headers["Pragma"] = "no-cache"
        case .reloadRevalidatingCacheData: message.headers[.cacheControl] = "max-age=0"
        default: break
        }
        return message
    }
}
