public import WebServiceMocking

extension MockService {
    /// The service of the current test, which the trait ``Testing/Trait/mockService`` creates.
    ///
    /// - Throws: ``MissingMockService`` outside of a test with the trait, and in a detached task.
    public static var current: MockService {
        get throws {
            guard let current = scoped else { throw MissingMockService() }
            return current
        }
    }

    @TaskLocal static var scoped: MockService?
}

/// The error of ``WebServiceMocking/MockService/current`` without the trait.
public struct MissingMockService: Error, CustomStringConvertible {
    /// The reason in one sentence.
    public var description: String { "the current test has no trait .mockService" }
}
