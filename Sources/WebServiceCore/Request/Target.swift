import Foundation

/// The absolute URL a request is sent to, as checked ASCII text: what ``Request`` carries until it is encoded.
struct Target: Sendable, Hashable {
    /// `https://host:port/path?query`, every byte legal by RFC 3986.
    let text: String

    /// Whether the text has a query, so that parameters are added with `&`.
    let hasQuery: Bool

    /// Reads an absolute http or https URL.
    init(absolute text: String) throws(WebServiceError) {
        let url = try BaseURL(text)
        self.init(origin: url.origin, path: url.path, queries: url.query, nil)
    }

    /// Resolves a path by the rules of ``WebService/absoluteURL(_:pathParameters:)``.
    init(path: String, values: Parameters?, base: BaseURL?) throws(WebServiceError) {
        if let scheme = BaseURL.scheme(of: path) {
            let absolute = try BaseURL.splitOrigin(of: path, scheme: scheme)
            let reference = Reference(absolute.rest)
            let path = try PathJoin(reference.path, values: values).below("")
            self.init(origin: absolute.origin, path: path, queries: reference.encodedQuery, nil)
            return
        }
        guard let base else {
            throw WebServiceError(.invalidURL, "without a base URL the path has to be an absolute http or https URL")
        }
        let reference = Reference(path[...])
        let path = try PathJoin(reference.path, values: values).below(base.path)
        self.init(origin: base.origin, path: path, queries: base.query, reference.encodedQuery)
    }

    private init(origin: String, path: String, queries first: String?, _ second: String?) {
        var text = origin
        text.append(path)
        if let query = first.map({ first in second.map { "\(first)&\($0)" } ?? first }) ?? second {
            text.append("?")
            text.append(query)
            hasQuery = true
        } else {
            hasQuery = false
        }
        self.text = text
    }
}
