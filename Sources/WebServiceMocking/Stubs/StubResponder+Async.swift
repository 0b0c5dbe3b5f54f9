public import WebServiceCore

extension StubResponder {
    /// Adds a stub whose asynchronous closure responds to requests with the given method and path.
    ///
    /// For details of the closure, see the variant with a matcher.
    @discardableResult
    public func on(
        _ method: Request.Method, _ path: String, fileID: String = #fileID, filePath: String = #filePath,
        line: Int = #line, column: Int = #column, handler: @escaping Stub.AsyncHandler
    ) -> Stub {
        on(
            .route(method, path), fileID: fileID, filePath: filePath, line: line, column: column,
            handler: handler)
    }

    /// Adds a stub that responds with the result of an asynchronous closure.
    ///
    /// ```swift
    /// session.on(.GET, "/users") { _ in .json(try await store.users()) }
    /// ```
    /// For a ``MockSession``, no thread waits for the closure. For a `MockServer`, the closure
    /// occupies the thread of the connection.
    ///
    /// - Parameters:
    ///   - matcher: The requests to which the stub responds.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    ///   - handler: A closure that returns the response; see ``Stub/AsyncHandler``. An error has
    ///     the same effect as an error of a synchronous closure.
    @discardableResult
    public func on(
        _ matcher: RequestMatcher, fileID: String = #fileID, filePath: String = #filePath, line: Int = #line,
        column: Int = #column, handler: @escaping Stub.AsyncHandler
    ) -> Stub {
        add(
            .matcher(matcher), .asyncHandler(handler), fileID: fileID, filePath: filePath, line: line, column: column)
    }
}
