public import WebServiceCore

/// A session that responds from stubs, with the stub methods of ELWebService.
///
/// Conforming types are ``MockSession`` and ``RequestRecordingSession``.
public typealias MockableSession = Session & StubResponder

extension StubResponder where Self: Session {
    /// Adds a stub that returns a result to each request that a matcher accepts.
    ///
    /// - Parameters:
    ///   - result: The result of every matching request.
    ///   - requestMatcher: A closure that returns whether the stub applies. Defaults to all
    ///     requests.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    @discardableResult
    public func addStub(
        _ result: any MockableDataTaskResult, requestMatcher: @escaping MockSession.Matcher = { _ in true },
        fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        add(.encodable(requestMatcher), .result(result), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Adds a stub whose closure determines the result of each request that a matcher accepts.
    ///
    /// - Parameters:
    ///   - requestMatcher: A closure that returns whether the stub applies. Defaults to all
    ///     requests.
    ///   - fileID: The module and file of the stub.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    ///   - responder: A closure that returns the result. It is called on a background queue,
    ///     concurrently for different requests. If it throws an error, the request fails with that
    ///     error.
    @discardableResult
    public func addStub(
        requestMatcher: @escaping MockSession.Matcher = { _ in true }, fileID: String = #fileID,
        filePath: String = #filePath, line: Int = #line, column: Int = #column,
        responder: @escaping @Sendable (_ request: any URLRequestEncodable) throws -> any MockableDataTaskResult
    ) -> Stub {
        add(
            .encodable(requestMatcher), .result(ComputedResult(compute: responder)), fileID: fileID, filePath: filePath,
            line: line, column: column)
    }

    /// The same as ``addStub(_:requestMatcher:fileID:filePath:line:column:)``.
    @discardableResult
    public func stub(
        _ result: any MockableDataTaskResult, requestMatcher: @escaping MockSession.Matcher,
        fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
    ) -> Stub {
        addStub(
            result, requestMatcher: requestMatcher, fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Removes all stubs.
    ///
    /// Requests that are already resumed still use them. Recorded requests are retained.
    public func removeAllStubs() {
        stubTable.removeAll()
    }
}
