public import WebServiceCore

/// A mock that responds to requests from stubs: a ``MockSession`` or a `MockServer`.
///
/// ```swift
/// session.on(.GET, "/users", .json(users))
/// session.on(.GET, "/users/{id}") { request in .json(users[request.pathParameters["id"] ?? ""]) }
/// session.on(.POST, "/users", [503, 503, .status(201)])
/// ```
/// If several stubs match a request, the last one that was added responds. A request that no stub
/// matches fails with an explanation that contains the closest stubs and the differences. All
/// members may be called from any thread.
public protocol StubResponder: AnyObject, Sendable {
    /// The stubs and the requests.
    var stubTable: StubTable { get }
}

extension StubResponder {
    /// The requests in the order of arrival, including those that match no stub.
    ///
    /// A request is recorded before its handler is called.
    public var receivedRequests: [ReceivedRequest] { stubTable.receivedRequests }

    /// Adds a stub that returns a response to each request with the given method and path.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path or a pattern; see ``RequestMatcher/path(_:)``. A query is ignored.
    ///   - response: The response.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    @discardableResult
    public func on(
        _ method: Request.Method, _ path: String, _ response: MockResponse, fileID: String = #fileID,
        filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        on(.route(method, path), response, fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Adds a stub that returns successive responses to requests with the given method and path.
    ///
    /// See ``on(_:_:fileID:filePath:line:column:)-(_,[MockResponse],_,_,_,_)``.
    @discardableResult
    public func on(
        _ method: Request.Method, _ path: String, _ responses: [MockResponse], fileID: String = #fileID,
        filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        on(.route(method, path), responses, fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Adds a stub whose closure responds to requests with the given method and path.
    ///
    /// For details of the closure, see the variant with a matcher.
    @discardableResult
    public func on(
        _ method: Request.Method, _ path: String, fileID: String = #fileID, filePath: String = #filePath,
        line: Int = #line, column: Int = #column, handler: @escaping Stub.Handler
    ) -> Stub {
        on(
            .route(method, path), fileID: fileID, filePath: filePath, line: line, column: column,
            handler: handler)
    }

    /// Adds a stub that returns a response to each request that a matcher accepts.
    ///
    /// See ``on(_:_:_:fileID:filePath:line:column:)-(_,_,MockResponse,_,_,_,_)``.
    @discardableResult
    public func on(
        _ matcher: RequestMatcher, _ response: MockResponse, fileID: String = #fileID,
        filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        add(.matcher(matcher), .sequence([response]), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Adds a stub that returns successive responses, and repeats the last one.
    ///
    /// ```swift
    /// session.on(.GET, "/user", [503, 503, .json(user)])
    /// ```
    /// If `responses` is empty, the stub responds with status 500.
    ///
    /// - Parameters:
    ///   - matcher: The requests to which the stub responds.
    ///   - responses: The responses.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    @discardableResult
    public func on(
        _ matcher: RequestMatcher, _ responses: [MockResponse], fileID: String = #fileID,
        filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        add(.matcher(matcher), .sequence(responses), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Adds a stub that responds with the result of a closure.
    ///
    /// - Parameters:
    ///   - matcher: The requests to which the stub responds.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    ///   - handler: A closure that returns the response. If it throws an error, a request over a
    ///     ``MockSession`` fails with that error, and a `MockServer` responds with status 500. A
    ///     server retains the handler until `MockServer.stop()`, so a handler that retains the
    ///     server prevents the deallocation of both until then.
    @discardableResult
    public func on(
        _ matcher: RequestMatcher, fileID: String = #fileID, filePath: String = #filePath, line: Int = #line,
        column: Int = #column, handler: @escaping Stub.Handler
    ) -> Stub {
        add(.matcher(matcher), .handler(handler), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Verifies that the requests correspond to the stubs.
    ///
    /// Call this method at the end of a test, when all requests have completed. Each stub must have
    /// been used as often as ``Stub/times(_:)`` specifies, or else at least once, unless it is
    /// ``Stub/optional()``. Each request must have matched a stub.
    ///
    /// - Parameters:
    ///   - inOrder: Whether the stubs must have been used in the order in which they were declared.
    ///     Defaults to `false`.
    ///   - fileID: The module and file of the verification.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    /// - Throws: ``VerificationError`` with all violations and their locations.
    public func verify(
        inOrder: Bool = false, fileID: String = #fileID, filePath: String = #filePath, line: Int = #line,
        column: Int = #column
    ) throws(VerificationError) {
        let location = Stub.Location(fileID: fileID, filePath: filePath, line: line, column: column)
        let violations = stubTable.violations(inOrder: inOrder, location)
        if !violations.isEmpty { throw VerificationError(violations: violations) }
    }

    func add(
        _ condition: Stub.Condition, _ responder: Stub.Responder, fileID: String, filePath: String, line: Int,
        column: Int
    ) -> Stub {
        stubTable.add(
            Stub(
                condition, responder, Stub.Location(fileID: fileID, filePath: filePath, line: line, column: column)))
    }
}
