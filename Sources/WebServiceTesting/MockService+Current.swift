public import WebServiceMocking

extension MockService {
    /// The service of the current test, which the trait ``Testing/Trait/mockService`` creates.
    ///
    /// - Throws: An error if the current test does not have the trait, or in a detached task.
    public static var current: MockService {
        get throws {
            guard let current = scoped else { throw MissingMockService() }
            return current
        }
    }

    @TaskLocal static var scoped: MockService?
}

/// The error of ``WebServiceMocking/MockService/current`` if the test does not have the trait.
struct MissingMockService: Error, CustomStringConvertible {
    var description: String { "the current test has no trait .mockService; add @Test(.mockService)" }
}
