import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A policy for redirects (RFC 9110, section 15.4), whose rules are the same for every session.
///
/// | status | method and body of the next request |
/// | --- | --- |
/// | 301, 302 | POST becomes GET; other methods are unchanged |
/// | 303 | every method except HEAD becomes GET |
/// | 307, 308 | unchanged |
///
/// When a method becomes GET, the body and the header fields that describe it are removed. The
/// conditions that a cache has added belong to the first URL, so every redirect removes them. A
/// response is delivered unchanged if it has another status, no `Location`, several different
/// `Location` values, or a `Location` that is not a usable URL. Foundation joins repeated fields,
/// so its sessions also deliver a redirect whose `Location` contains a comma and a space.
///
/// A redirect fails with ``WebServiceError/Code/redirectRefused`` if
/// - its target has a scheme other than http and https, user information, or a host that ends in a
///   number and is not an IPv4 address in canonical form (`127.1`, `0x7f000001`), because parsers
///   disagree about such hosts,
/// - it leads from https to http, unless ``allowsDowngrade`` is `true`,
/// - it sends a body, or the metadata of an upload, to another ``Origin``, unless
///   ``resendsBodyAcrossOrigins`` is `true`, or
/// - it would send an `httpBodyStream` a second time.
///
/// A redirect fails with ``WebServiceError/Code/tooManyRedirects`` if it exceeds ``maximum``, and
/// with ``WebServiceError/Code/bodyNotReplayable`` if it resends a body that can be read only once.
///
/// A backslash is part of the path and is percent-encoded (RFC 3986): `/\host/x` and `\\host/x`
/// remain on the same origin, whereas browsers (WHATWG URL) interpret both as references to another
/// host.
///
/// When the ``Origin`` changes, only the fields `Accept`, `Accept-Encoding`, `Accept-Language` and
/// `User-Agent` are sent. A request with a body also sends `Content-Type` and `Content-Encoding`, a
/// part of a download also sends `Range` and `If-Range`, and a part of an upload also sends the
/// fields of its protocol. All other fields may be credentials and are dropped for the remainder of
/// the chain, even if it returns to the first origin. This includes the `traceparent` of
/// ``Interceptor/traceContext()``. No `Referer` is added, and no fragment is inherited from the URL
/// that redirected.
public struct RedirectPolicy: Sendable, Hashable {
    /// The maximum number of consecutive redirects.
    ///
    /// If the value is 0, the first redirect is an error. A negative value becomes 0.
    public var maximum: Int {
        didSet { maximum = max(0, maximum) }
    }
    /// Whether redirects from https to http are followed.
    public var allowsDowngrade: Bool
    /// Whether a body, or the metadata of an upload, is sent again to another origin.
    public var resendsBodyAcrossOrigins: Bool
    /// Whether the policy follows redirects.
    ///
    /// If `false`, the redirect is delivered as the response.
    public var followsRedirects: Bool
    /// Whether a redirect that changes the method or the origin is delivered as the response.
    package var keepsMethodAndOrigin = false

    /// Creates a policy. The default arguments are those of ``follow``.
    public init(
        maximum: Int = 20, allowsDowngrade: Bool = false, resendsBodyAcrossOrigins: Bool = false,
        followsRedirects: Bool = true
    ) {
        self.maximum = max(0, maximum)
        self.allowsDowngrade = allowsDowngrade
        self.resendsBodyAcrossOrigins = resendsBodyAcrossOrigins
        self.followsRedirects = followsRedirects
    }

    /// A policy that follows up to 20 redirects.
    public static let follow = RedirectPolicy()
    /// A policy that follows no redirects and delivers them as responses.
    public static let manual = RedirectPolicy(followsRedirects: false)
}

extension WebServiceError.Code {
    /// A redirect that ``RedirectPolicy`` refuses, because it could disclose or lose data.
    public static let redirectRefused = WebServiceError.Code("redirectRefused")
    /// More redirects than ``RedirectPolicy/maximum``.
    public static let tooManyRedirects = WebServiceError.Code("tooManyRedirects")
}

extension RedirectPolicy {
    package enum Decision: Sendable {
        /// The response is delivered.
        case deliver
        /// The next request. `droppedCredentials` indicates that its origin differs from that of
        /// the previous request, whose credentials must not be added again.
        case follow(Request, droppedCredentials: Bool)
        case fail(WebServiceError)
    }

    /// Returns the decision for a response.
    ///
    /// `Exchange` applies the decision and sends the next request.
    ///
    /// - Parameters:
    ///   - request: The request, as sent, that received the response.
    ///   - url: The absolute URL of that request.
    ///   - locations: The values of `Location`.
    ///   - followed: The number of redirects already followed.
    package func decision(
        for request: Request, at url: String, status: Int, locations: [String], followed: Int
    ) -> Decision {
        guard followsRedirects, [301, 302, 303, 307, 308].contains(status), let location = locations.first,
            locations.allSatisfy({ $0.utf8.elementsEqual(location.utf8) }),
            let here = Origin(url), let reference = Self.usable(location),
            let target = URLReference.resolve(reference, against: url)
        else { return .deliver }
        let parts = URLReference(target)
        guard parts.scheme.map({ Self.isWeb($0) }) == true else {
            return refuse(request, "the redirect leads to a scheme other than http and https")
        }
        if parts.authority?.contains(UInt8(ascii: "@")) == true {
            return refuse(request, "the redirect leads to a URL with user information")
        }
        if let authority = parts.authority, BaseURL.hasAmbiguousHost(authority) {
            return refuse(request, "the redirect leads to a host that \(BaseURL.ambiguousNumber)")
        }
        guard let text = Self.encoded(target), let there = Origin(text) else { return .deliver }
        let becomesGET = status == 303 ? request.method != .HEAD : status < 303 && request.method == .POST
        if keepsMethodAndOrigin, here != there || becomesGET && request.method != .GET { return .deliver }
        guard followed < maximum else {
            return .fail(
                WebServiceError(
                    .tooManyRedirects,
                    "the server sent more than \(maximum) consecutive redirects; check for a loop or increase "
                        + "RedirectPolicy.maximum",
                    request: request))
        }
        if here.scheme == "https", there.scheme == "http", !allowsDowngrade {
            return refuse(request, "the redirect leads from https to http; set allowsDowngrade to follow it")
        }
        if !becomesGET, request.template?.httpBodyStream != nil {
            return refuse(
                request, "the body is an httpBodyStream, which cannot be sent a second time; use a Request.Body")
        }
        if !becomesGET, here != there, request.hasBody, !resendsBodyAcrossOrigins {
            return refuse(
                request,
                "the redirect would send the body to another origin; set resendsBodyAcrossOrigins to follow it")
        }
        if !becomesGET, here != there, request.hasUploadMetadata, !resendsBodyAcrossOrigins {
            return refuse(
                request,
                "the redirect would send the metadata of the upload to another origin; set resendsBodyAcrossOrigins "
                    + "to follow it")
        }
        guard becomesGET || request.canSendBody else { return .fail(.bodyNotReplayable(request)) }
        return .follow(
            request.redirected(to: text, becomesGET: becomesGET, crossesOrigins: here != there),
            droppedCredentials: here != there)
    }

    private func refuse(_ request: Request, _ message: String) -> Decision {
        .fail(WebServiceError(.redirectRefused, message, request: request))
    }

    private static func isWeb(_ scheme: ArraySlice<UInt8>) -> Bool {
        let scheme = String(decoding: scheme, as: UTF8.self)
        return scheme.equalsIgnoringASCIICase("https") || scheme.equalsIgnoringASCIICase("http")
    }

    /// Returns the value without surrounding whitespace, or `nil` if it is too long or contains
    /// control characters or invalid UTF-8. Other characters that are illegal in a URL are
    /// percent-encoded later.
    private static func usable(_ location: String) -> String? {
        guard location.utf8.count <= Request.maximumHeaderValueLength else { return nil }
        let text = String(Substring(ASCII.trimmed(location.utf8)))
        let isClean = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "\u{FFFD}" }
        return isClean ? text : nil
    }

    /// Returns the target as the URL of a request: a valid host, only legal bytes, no fragment.
    /// Returns `nil` if no request can be sent to it, or if it exceeds the maximum length of a
    /// header value. This limit ends chains of growing URLs.
    private static func encoded(_ target: String) -> String? {
        guard target.utf8.count <= Request.maximumHeaderValueLength else { return nil }
        // Here `{` does not start a placeholder.
        let pieces = target.utf8.split(separator: UInt8(ascii: "{"), omittingEmptySubsequences: false)
        let text = String(decoding: Array(pieces.joined(separator: "%7B".utf8)), as: UTF8.self)
        var writer = ByteWriter(reserving: text.utf8.count)
        do throws(WebServiceError) {
            _ = try Request.Location.absolute(text).write(into: &writer)
        } catch {
            return nil
        }
        return writer.text
    }
}

extension Request {
    fileprivate var hasBody: Bool {
        if parametersBelongInBody { return true }
        return switch content.content {
        case .none: false
        case .data(let data, _): !data.isEmpty
        case .form(let parameters): !parameters.isEmpty
        case .multipart, .file, .stream, .provider, .invalid: true
        }
    }

    private static let uploadMetadata = "upload-metadata"

    fileprivate var hasUploadMetadata: Bool { uploadsPart && headers[Self.uploadMetadata] != nil }

    /// The fields of a request of an upload that a redirect to another origin retains, except its
    /// metadata.
    private static let uploadFields = [
        "upload-offset", "upload-length", "upload-complete", "upload-draft-interop-version", "upload-checksum",
        "tus-resumable",
    ]

    /// Returns the next request of a chain. The target is complete, so query parameters are not
    /// added again.
    fileprivate func redirected(to target: String, becomesGET: Bool, crossesOrigins: Bool) -> Request {
        var next = self
        next.location = .absolute(target)
        next.queryParameters = nil
        next.queryParameterEncoder = nil
        if becomesGET {
            next.method = .GET
            next.content = .none
        }
        if becomesGET || !parametersBelongInBody { next.parameters = nil }
        if crossesOrigins { next.options[TraceParent.self] = nil }
        let hasCacheConditions = options[CacheConditions.self]
        if hasCacheConditions { next.options[CacheConditions.self] = false }
        var survivors = Self.unboundFields
        if downloadsPart { survivors += ["range", "if-range"] }
        if uploadsPart { survivors += Self.uploadFields + (becomesGET ? [] : [Self.uploadMetadata]) }
        if !becomesGET, hasBody { survivors += ["content-type", "content-encoding"] }
        next.headers = headers.filtered { field in
            let name = field.name.asciiLowercased()
            if hasCacheConditions, ["if-none-match", "if-modified-since"].contains(name) { return false }
            if crossesOrigins { return survivors.contains(name) }
            return !becomesGET || !(name.hasPrefix("content-") || name == "digest" || name == "last-modified")
        }
        return next
    }
}
