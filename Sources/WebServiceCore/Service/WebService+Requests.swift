public import Foundation

extension WebService {
    /// Creates a request, whose URL follows the rules of ``absoluteURL(_:pathParameters:)``.
    ///
    /// ```swift
    /// service.request(.GET, path: "/brewers/{id}", pathParameters: ["id": id])
    /// ```
    /// The request has the current ``options`` of the service, and those of its ``headers`` that
    /// may be sent to the origin of the URL.
    public func request(_ method: Request.Method, path: String, pathParameters: Parameters? = nil) -> Request {
        let location = location(path, pathParameters)
        var request = Request(method, location: location)
        (request.headers, request.boundFields, request.options) = core.requestDefaults
        // The URL of a plain path is below the base URL, so its request keeps all fields.
        if !location.isPlain { request.removeForeignFields() }
        return request
    }

    /// Creates a task for a ``Request`` or a `URLRequest`. The request is sent with its own header
    /// fields and options when the task is resumed.
    ///
    /// Debug builds report the file and the line of a task that is deallocated without being sent;
    /// see ``reportsUnsentTasks``.
    public func sessionTask(
        request: any URLRequestEncodable, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        SessionTask(core, Request(request)).created(at: file, line)
    }

    /// Creates a task for a GET request.
    public func GET(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.GET, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a POST request.
    public func POST(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.POST, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a PUT request.
    public func PUT(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.PUT, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a PATCH request.
    public func PATCH(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.PATCH, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a DELETE request.
    public func DELETE(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.DELETE, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a QUERY request (RFC 10008), whose body is the query.
    public func QUERY(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.QUERY, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for a HEAD request.
    public func HEAD(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.HEAD, path, pathParameters).created(at: file, line)
    }

    /// Creates a task for an OPTIONS request.
    public func OPTIONS(
        _ path: String, pathParameters: Parameters? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> SessionTask {
        task(.OPTIONS, path, pathParameters).created(at: file, line)
    }

    private func task(_ method: Request.Method, _ path: String, _ pathParameters: Parameters?) -> SessionTask {
        SessionTask(core, request(method, path: path, pathParameters: pathParameters))
    }
}

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
    /// A query of the base URL precedes the query of the path. If there is no base URL, the path
    /// must be an absolute URL. User information (`user:password@`) is an error everywhere.
    ///
    /// - Parameters:
    ///   - path: A path below the base URL, or an absolute URL.
    ///   - pathParameters: The values of the placeholders `{name}` in the path. Each value is
    ///     percent-encoded, including slashes, and must have a placeholder. If the service has a
    ///     ``urlBuilder``, there must be none. Defaults to `nil`, for a path without placeholders.
    /// - Throws: ``WebServiceError/Code/invalidURL``. If a ``urlBuilder`` replaces these rules, a
    ///   ``WebServiceError`` that it throws is thrown unchanged, and any other error is the
    ///   ``WebServiceError/underlying`` error.
    public func absoluteURL(_ path: String, pathParameters: Parameters? = nil) throws -> URL {
        try location(path, pathParameters).url()
    }

    func location(_ path: String, _ pathParameters: Parameters?) -> Request.Location {
        if let urlBuilder {
            guard pathParameters?.isEmpty ?? true else {
                return .invalid(
                    WebServiceError(
                        .invalidURL,
                        "a urlBuilder does not receive pathParameters; insert the values into the path"))
            }
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
