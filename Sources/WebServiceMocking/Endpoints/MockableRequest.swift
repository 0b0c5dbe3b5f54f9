public import WebServiceCore

/// A typed request that defines its own mock output, for an API that does not exist yet.
///
/// A ``MockEndpoint`` handles mocked requests.
///
/// ```swift
/// extension PageRequest: MockableRequest {
///     var mockDelay: Duration { .seconds(3) }
///     var mockHelperIdentifier: String? { "template" }
///     func makeMockHelper() -> String { "<html><body>%BODY%</body></html>" }
///     func mockOutput(helper template: String) -> String {
///         template.replacingOccurrences(of: "%BODY%", with: site)
///     }
/// }
/// ```
public protocol MockableRequest: ServiceRequest {
    /// A value that is expensive to create and shared by several requests, such as a template.
    ///
    /// Defaults to `Void`, for mocks without a helper.
    associatedtype MockHelper: Sendable = Void

    /// Whether this request is mocked. Defaults to `true`.
    var isMocked: Bool { get }

    /// The delay before the output is created, measured by the service's clock. Defaults to zero.
    var mockDelay: Duration { get }

    /// The identifier under which an endpoint stores the helper.
    ///
    /// An endpoint creates one helper per identifier and passes it to all requests with that
    /// identifier. Defaults to `nil`: a new helper is created for each request.
    var mockHelperIdentifier: String? { get }

    /// Creates the helper. This method is called in the background.
    func makeMockHelper() throws -> MockHelper

    /// Returns the output of the request. This method is called in the background.
    ///
    /// If the method throws an error, the request fails with that error.
    func mockOutput(helper: MockHelper) throws -> Output
}

extension MockableRequest {
    /// `true`, so the request is mocked.
    public var isMocked: Bool { true }

    /// Zero: the output is created without a delay.
    public var mockDelay: Duration { .zero }

    /// `nil`: a new helper is created for each request.
    public var mockHelperIdentifier: String? { nil }
}

extension MockableRequest where MockHelper == Void {
    /// Creates no helper.
    public func makeMockHelper() {}
}
