public import Foundation

extension WebService {
    /// Returns the absolute URL of a path. The result is the base URL or below it, unless the path
    /// is an absolute URL.
    ///
    /// | path, with the base `https://h/v1` or `https://h/v1/` | URL |
    /// | --- | --- |
    /// | `brewers`, `/brewers` | `https://h/v1/brewers` |
    /// | *(empty)* | the base URL, unchanged |
    /// | `/` | `https://h/v1/` |
    /// | `brewers/` | `https://h/v1/brewers/` |
    /// | `a/../b`, `a/%2e%2e/b` | `https://h/v1/b` |
    /// | `../b`, and any other path that leads above the base | error |
    /// | `//evil.host/x` | `https://h/v1/evil.host/x` |
    /// | `/\evil` | `https://h/v1/%5Cevil` |
    /// | `@evil.host`, `:8080/x` | `https://h/v1/@evil.host`, `https://h/v1/:8080/x` |
    /// | `brewers?state=ny`, `?state=ny` | with the query, to which parameters are added |
    /// | `brewers#top` | `https://h/v1/brewers`, because fragments are not sent |
    /// | `a b/é/100%` | `https://h/v1/a%20b/%C3%A9/100%25`; `%41` stays `%41` |
    /// | `https://other/x`, `HTTP://other/x` | the same URL, with scheme and host in lower case |
    /// | `ftp://h`, `file:/x`, `mailto:x`, `x:y` | error: a scheme must be http or https |
    /// | `/users/{id}` with `["id": "a/b"]` | `https://h/v1/users/a%2Fb` |
    /// | `/users/{id}` with `["id": ".."]` or `["id": ""]`, or without a value | error |
    ///
    /// A query of the base URL precedes the query of the path. Without a base URL, the path must be
    /// an absolute URL. User information (`user:password@`) is an error everywhere.
    ///
    /// - Parameters:
    ///   - path: A path below the base URL, or an absolute URL.
    ///   - pathParameters: The values of the placeholders `{name}` in the path. Each value is
    ///     percent-encoded, including slashes, and must have a placeholder. Defaults to `nil`, for
    ///     a path without placeholders.
    /// - Throws: ``WebServiceError/Code/invalidURL``, or the error of ``urlBuilder``, which
    ///   replaces these rules.
    public func absoluteURL(_ path: String, pathParameters: Parameters? = nil) throws -> URL {
        try location(path, pathParameters).url()
    }

    func location(_ path: String, _ pathParameters: Parameters?) -> Request.Location {
        if let urlBuilder {
            do {
                return .absolute(try urlBuilder(baseURL, path).absoluteString)
            } catch {
                return .invalid(
                    error as? WebServiceError
                        ?? WebServiceError(
                            .invalidURL, "the urlBuilder failed; see the underlying error", underlying: error))
            }
        }
        switch core.base {
        case .none: return .path(path, pathParameters, below: nil)
        case .url(let base): return .path(path, pathParameters, below: base)
        case .invalid(let error): return .invalid(error)
        }
    }
}
