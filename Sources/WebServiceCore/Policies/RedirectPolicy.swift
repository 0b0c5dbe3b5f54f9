import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What to do with an answer that points elsewhere (RFC 9110, section 15.4): the same rules over every session.
///
/// | status | method and body of the next request |
/// | --- | --- |
/// | 301, 302 | POST becomes GET; all others stay |
/// | 303 | everything but HEAD becomes GET |
/// | 307, 308 | stay |
///
/// Where a method becomes GET, the body goes, and the header fields that describe it with it. All
/// other statuses, an answer without a `Location` and one whose `Location` is no usable URL are
/// delivered as they are. A redirect fails with ``WebServiceError/Code/redirectRefused`` when it
/// leads to anything but http and https, to a URL with user information, to a host that ends in a
/// number and is not an IPv4 address in canonical form (`127.1`, `0x7f000001`: parsers do not agree
/// on the host), from https to http, or to another ``Origin`` with a body, and when it needs a body
/// stream a second time; with ``WebServiceError/Code/tooManyRedirects`` when it is one too many.
///
/// A backslash is a character of the path and is percent-encoded (RFC 3986): `/\host/x` and
/// `\\host/x` stay on the origin, while browsers (WHATWG URL) take both for another host.
///
/// When the ``Origin`` changes, only `Accept`, `Accept-Encoding`, `Accept-Language` and `User-Agent` go along, and with a body its `Content-Type` and
/// `Content-Encoding`. Everything else may be a credential and is dropped for the rest of the chain, also where that leads back. Neither
/// `Referer` nor a fragment is ever made from the URL that redirected.
public struct RedirectPolicy: Sendable, Hashable {
    /// How many redirects are followed one after another. With 0 the first one is an error; a negative number is taken for 0.
    public var maximum: Int {
        didSet { maximum = max(0, maximum) }
    }
    /// Whether a redirect may lead from https to http, where everybody on the way can read along.
    public var allowsDowngrade: Bool
    /// Whether a body may be sent again to another origin.
    public var resendsBodyAcrossOrigins: Bool
    /// Whether redirects are followed at all; if not, the answer that redirects is the outcome.
    public var followsRedirects: Bool

    /// Makes a policy; what is left out is that of ``follow``.
    public init(
        maximum: Int = 20, allowsDowngrade: Bool = false, resendsBodyAcrossOrigins: Bool = false, followsRedirects: Bool = true
    ) {
        self.maximum = max(0, maximum)
        self.allowsDowngrade = allowsDowngrade
        self.resendsBodyAcrossOrigins = resendsBodyAcrossOrigins
        self.followsRedirects = followsRedirects
    }

    /// Follows up to 20 redirects by the rules above.
    public static let follow = RedirectPolicy()
    /// Follows none: the answer that redirects is the outcome.
    public static let manual = RedirectPolicy(followsRedirects: false)
}

extension WebServiceError.Code {
    /// A redirect that ``RedirectPolicy`` does not follow because it could give away or lose something.
    public static let redirectRefused = WebServiceError.Code("redirectRefused")
    /// More redirects than ``RedirectPolicy/maximum``.
    public static let tooManyRedirects = WebServiceError.Code("tooManyRedirects")
}

extension RedirectPolicy {
    enum Decision: Sendable {
        /// The answer at hand is the outcome.
        case deliver
        /// The request for the next hop. `droppedCredentials` says that it goes to another origin than the request before: what belonged to that one
        /// must not be added to it again.
        case follow(Request, droppedCredentials: Bool)
        case fail(WebServiceError)
    }

    /// Decides what follows an answer.
    ///
    /// - Parameters:
    ///   - request: The request as it was sent on this hop.
    ///   - url: The absolute URL that it was sent to.
    ///   - locations: The values of `Location`; also one value that joins several with a comma and a blank.
    ///   - followed: How many redirects were followed before.
    func decision(for request: Request, at url: String, status: Int, locations: [String], followed: Int) -> Decision {
        guard followsRedirects, [301, 302, 303, 307, 308].contains(status), locations.count == 1, let location = locations.first,
            let here = Origin(url), let reference = Self.usable(location), let target = URLReference.resolve(reference, against: url)
        else { return .deliver }
        let parts = URLReference(target)
        guard parts.scheme.map({ Self.isWeb($0) }) == true else { return refuse(request, "only redirects to http and https are followed") }
        if parts.authority?.contains(UInt8(ascii: "@")) == true { return refuse(request, "the redirect leads to a URL with user information") }
        if let authority = parts.authority, BaseURL.hasAmbiguousHost(authority) {
            return refuse(request, "the redirect leads to a host that \(BaseURL.ambiguousNumber)")
        }
        guard let text = Self.encoded(target), let there = Origin(text) else { return .deliver }

        guard followed < maximum else {
            return .fail(WebServiceError(.tooManyRedirects, "more than \(maximum) redirects in a row", request: request))
        }
        if here.scheme == "https", there.scheme == "http", !allowsDowngrade { return refuse(request, "the redirect leads from https to http") }
        let becomesGET = status == 303 ? request.method != .HEAD : status < 303 && request.method == .POST
        if !becomesGET, request.template?.httpBodyStream != nil {
            return refuse(request, "the body is an httpBodyStream, which cannot be sent a second time")
        }
        if !becomesGET, here != there, request.hasBody, !resendsBodyAcrossOrigins {
            return refuse(request, "the redirect would send the body to another origin")
        }
        return .follow(request.redirected(to: text, becomesGET: becomesGET, crossesOrigins: here != there), droppedCredentials: here != there)
    }

    private func refuse(_ request: Request, _ message: String) -> Decision {
        .fail(WebServiceError(.redirectRefused, message, request: request))
    }

    private static func isWeb(_ scheme: ArraySlice<UInt8>) -> Bool {
        let scheme = String(decoding: scheme, as: UTF8.self)
        return scheme.equalsIgnoringASCIICase("https") || scheme.equalsIgnoringASCIICase("http")
    }

    /// The value without blanks around it. `nil` where it is too long, holds control characters, bytes that were no UTF-8, or several values joined to
    /// one; what else is illegal in a URL will be percent-encoded.
    private static func usable(_ location: String) -> String? {
        guard location.utf8.count <= Request.maximumHeaderValueLength else { return nil }
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let text = String(decoding: location.utf8.drop(while: isBlank).reversed().drop(while: isBlank).reversed(), as: UTF8.self)
        let isClean = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "\u{FFFD}" }
        let isJoined = zip(text.utf8, text.utf8.dropFirst()).contains { $0 == UInt8(ascii: ",") && $1 == UInt8(ascii: " ") }
        return isClean && !isJoined ? text : nil
    }

    /// The target as a request has it: host checked, every byte legal, no fragment. `nil` for what no request can be sent to, and for what is longer
    /// than a header value may be, so that URLs which grow with each hop come to an end.
    private static func encoded(_ target: String) -> String? {
        guard target.utf8.count <= Request.maximumHeaderValueLength else { return nil }
        // A brace begins no placeholder here.
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
        return switch content {
        case .none: false
        case .data(let data, _): !data.isEmpty
        case .form(let parameters): !parameters.isEmpty
        case .multipart, .provider, .invalid: true
        }
    }

    /// The next request of a chain. The target holds what its server wants in it, so the parameters for the URL are not added again.
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
        var survivors = ["accept", "accept-encoding", "accept-language", "user-agent"]
        if !becomesGET, hasBody { survivors += ["content-type", "content-encoding"] }
        next.headers = Headers(
            headers.lazy.map { ($0.name, $0.value) }.filter { name, _ in
                let name = name.asciiLowercased()
                if crossesOrigins { return survivors.contains(name) }
                return !becomesGET || !(name.hasPrefix("content-") || name == "digest" || name == "last-modified")
            })
        return next
    }
}
