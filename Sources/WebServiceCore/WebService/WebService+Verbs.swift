extension WebService {
    /// Creates a request. ``absoluteURL(_:pathParameters:)`` defines the URL of the path.
    ///
    /// ```swift
    /// service.request(.GET, path: "/brewers/{id}", pathParameters: ["id": id])
    /// ```
    /// The request has the current ``options`` of the service, and its ``headers`` unless the URL
    /// has another origin.
    public func request(_ method: Request.Method, path: String, pathParameters: Parameters? = nil) -> Request {
        let location = location(path, pathParameters)
        var request = Request(method, location: location)
        (request.headers, request.boundFields, request.options) = core.requestDefaults
        // A plain path is below the base URL.
        if !location.isPlain { request.removeForeignFields() }
        return request
    }

    /// Creates a task for a request, or for a `URLRequest`. The request is sent when the task is
    /// resumed, with its own header fields and options.
    public func sessionTask(request: any URLRequestEncodable) -> SessionTask {
        SessionTask(core, Request(request))
    }

    /// Creates a task for a GET request.
    public func GET(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.GET, path, pathParameters)
    }

    /// Creates a task for a POST request.
    public func POST(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.POST, path, pathParameters)
    }

    /// Creates a task for a PUT request.
    public func PUT(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.PUT, path, pathParameters)
    }

    /// Creates a task for a PATCH request.
    public func PATCH(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.PATCH, path, pathParameters)
    }

    /// Creates a task for a DELETE request.
    public func DELETE(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.DELETE, path, pathParameters)
    }

    /// Creates a task for a QUERY request (RFC 10008), whose body is the query.
    public func QUERY(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.QUERY, path, pathParameters)
    }

    /// Creates a task for a HEAD request.
    public func HEAD(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.HEAD, path, pathParameters)
    }

    /// Creates a task for an OPTIONS request.
    public func OPTIONS(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.OPTIONS, path, pathParameters)
    }

    private func task(_ method: Request.Method, _ path: String, _ pathParameters: Parameters?) -> SessionTask {
        SessionTask(core, request(method, path: path, pathParameters: pathParameters))
    }
}
