extension WebService {
    /// Makes a request; see ``absoluteURL(_:pathParameters:)`` for how the path becomes a URL.
    ///
    /// ```swift
    /// service.request(.GET, path: "/brewers/{id}", pathParameters: ["id": id])
    /// ```
    public func request(_ method: Request.Method, path: String, pathParameters: Parameters? = nil) -> Request {
        Request(method, location: location(path, pathParameters))
    }

    /// Makes a task for a request, or for a plain `URLRequest`. Nothing is sent before it is resumed.
    public func sessionTask(request: any URLRequestEncodable) -> SessionTask {
        SessionTask(core, Request(request))
    }

    /// Makes a task for a GET request.
    public func GET(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.GET, path, pathParameters)
    }

    /// Makes a task for a POST request.
    public func POST(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.POST, path, pathParameters)
    }

    /// Makes a task for a PUT request.
    public func PUT(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.PUT, path, pathParameters)
    }

    /// Makes a task for a PATCH request.
    public func PATCH(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.PATCH, path, pathParameters)
    }

    /// Makes a task for a DELETE request.
    public func DELETE(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.DELETE, path, pathParameters)
    }

    /// Makes a task for a HEAD request.
    public func HEAD(_ path: String, pathParameters: Parameters? = nil) -> SessionTask {
        task(.HEAD, path, pathParameters)
    }

    private func task(_ method: Request.Method, _ path: String, _ pathParameters: Parameters?) -> SessionTask {
        SessionTask(core, request(method, path: path, pathParameters: pathParameters))
    }
}
