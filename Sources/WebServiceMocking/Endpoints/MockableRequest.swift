public import WebServiceCore

/// A typed request that carries its own mock, for an API that is not there yet; ``MockEndpoint`` answers it.
///
/// ```swift
/// extension PageRequest: MockableRequest {
///     var mockDelay: Duration { .seconds(3) }
///     var mockHelperIdentifier: String? { "template" }
///     func makeMockHelper() -> String { "<html><body>%BODY%</body></html>" }
///     func mockOutput(helper template: String) -> String { template.replacingOccurrences(of: "%BODY%", with: site) }
/// }
/// ```
public protocol MockableRequest: ServiceRequest {
    /// Something that is expensive to make and serves several requests, such as a template. `Void` for nothing.
    associatedtype MockHelper: Sendable = Void

    /// Whether this request is to be mocked. Left out, it is.
    var isMocked: Bool { get }

    /// How long the answer takes, by the service's clock. Left out, it takes no time.
    var mockDelay: Duration { get }

    /// Under which name the helper is kept: one endpoint makes one for each name and gives it to all requests that have it. `nil`, which it is when left out,
    /// for a helper of its own each time.
    var mockHelperIdentifier: String? { get }

    /// Makes the helper, in the background.
    func makeMockHelper() throws -> MockHelper

    /// Makes the answer, in the background; what it throws is the error of the request.
    func mockOutput(helper: MockHelper) throws -> Output
}

extension MockableRequest {
    /// It is mocked.
    public var isMocked: Bool { true }

    /// No delay.
    public var mockDelay: Duration { .zero }

    /// A helper of its own each time.
    public var mockHelperIdentifier: String? { nil }
}

extension MockableRequest where MockHelper == Void {
    /// Nothing.
    public func makeMockHelper() {}
}
