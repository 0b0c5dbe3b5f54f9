import Foundation
public import Testing
public import WebServiceCassettes
public import WebServiceCore
import WebServiceMocking

/// A trait that creates a `CassetteSession` for each test and finishes it at the end.
///
/// ```swift
/// @Test(.cassette("brewers")) func brewers() async throws {
///     service.session = try CassetteSession.current
///     #expect(try await BreweryClient(service: service).brewers().count == 3)
/// }
/// ```
/// The file is `Cassettes/brewers.json` in the folder of the test's source file. The first run
/// records the file, and later runs replay it. At the end of the test, the trait writes a
/// recording, or reports an issue if exchanges were not replayed. If the test throws an error,
/// nothing is written.
public struct CassetteTrait: TestTrait, TestScoping {
    let name: String
    let mode: CassetteSession.Mode
    let session: @Sendable () -> any Session

    /// Runs a test with a new session, then finishes the session.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let place = test.sourceLocation
        let folder = URL(fileURLWithPath: place.filePath).deletingLastPathComponent()
        let file = folder.appendingPathComponent("Cassettes").appendingPathComponent(name + ".json")
        let cassette = try CassetteSession(file: file, mode: mode, session: session())
        try await CassetteSession.$scoped.withValue(cassette) { try await function() }
        do { try cassette.finish() } catch { Issue.record(error, sourceLocation: place) }
    }
}

extension CassetteSession {
    /// The session of the current test, which the trait ``Testing/Trait/cassette(_:mode:session:)``
    /// creates.
    ///
    /// - Throws: An error if the current test does not have the trait, or in a detached task.
    public static var current: CassetteSession {
        get throws {
            guard let current = scoped else { throw MissingCassette() }
            return current
        }
    }

    @TaskLocal static var scoped: CassetteSession?
}

/// The error of ``WebServiceCassettes/CassetteSession/current`` if the test does not have the
/// trait.
struct MissingCassette: Error, CustomStringConvertible {
    var description: String { "the current test has no trait .cassette; add @Test(.cassette(…))" }
}

extension Trait where Self == CassetteTrait {
    /// Creates a `CassetteSession` for each test and finishes it at the end.
    ///
    /// - Parameters:
    ///   - name: The name of the file without its extension, in the folder `Cassettes` next to the
    ///     test's source file. The name may contain folders. The cases of a parameterized test
    ///     share the file, so such a test can only replay it.
    ///   - mode: Whether the file is recorded or replayed. Defaults to `once`.
    ///   - session: The session that sends the requests of a recording, evaluated for each test.
    ///     Defaults to `FoundationSession.shared`.
    public static func cassette(
        _ name: String, mode: CassetteSession.Mode = .once,
        session: @autoclosure @escaping @Sendable () -> any Session = FoundationSession.shared
    ) -> Self {
        CassetteTrait(name: name, mode: mode, session: session)
    }
}
