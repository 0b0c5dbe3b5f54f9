import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

/// Compiles delegates with the Swift compiler and the modules of this build.
@Suite("Signatures of delegates", .permit)
struct DelegateSignatureTests {
    /// The methods of a delegate that a program needs, by name.
    private static let methods = [
        "requestSent": "func requestSent(request: URLRequest) {}",
        "responseReceived":
            "func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: Error?) {}",
        "serviceResultFailure":
            "func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: Error) {}",
        "updateUIBegin": "func updateUIBegin(response: URLResponse?) {}",
        "updateUIEnd": "func updateUIEnd(response: URLResponse?) {}",
        "didFinishCollectingTaskMetrics": """
        func didFinishCollectingTaskMetrics(
            metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: Error?) {}
        """,
    ]

    private static let modules = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("Modules").path

    /// Returns the output of the compiler for a source file, and whether it compiles.
    private func compile(_ source: String) async throws -> (compiles: Bool, output: String) {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("delegate-\(UUID().uuidString).swift")
        let imports = """
            import Foundation
            import WebServiceCore
            #if canImport(FoundationNetworking)
            import FoundationNetworking
            #endif

            """
        try Data((imports + source).utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }  // best effort
        let output = Pipe()
        let process = ChildProcess(
            "/usr/bin/env", ["swiftc", "-typecheck", "-swift-version", "6", "-I", Self.modules, file.path],
            input: .null, output: .pipe(output), errors: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        return (status == 0, text)
    }

    private func delegate(_ name: String, _ missing: String? = nil, _ other: String = "") -> String {
        let methods = Self.methods.filter { $0.key != missing }.map(\.value).sorted()
        return "final class \(name): ServicePassthroughDelegate {\n\((methods + [other]).joined(separator: "\n"))\n}\n"
    }

    @Test("A delegate with the signatures of the programming guide compiles")
    func guide() async throws {
        let hooks = """
            func modifiedRequest(request: URLRequest) -> URLRequest? { nil }
            func validateResponse(response: URLResponse?, data: Data?, error: Error?) throws {}
            """
        let result = try await compile(delegate("Plain") + delegate("WithHooks", nil, hooks))
        #expect(result.compiles, "\(result.output)")
    }

    @Test("A delegate without one of the required methods, or with a wrong signature, does not compile")
    func wrong() async throws {
        let wrong = [
            ("requestSent", "func requestSent(_ request: URLRequest) {}"),
            ("responseReceived", "func responseReceived(response: URLResponse?, data: Data?, error: Error?) {}"),
            (
                "serviceResultFailure",
                "func serviceResultFailure(response: URLResponse, data: Data?, request: URLRequest?, error: Error) {}"
            ),
            ("updateUIBegin", "func updateUIBegin() {}"), ("updateUIEnd", ""),
            (
                "didFinishCollectingTaskMetrics",
                "func didFinishCollectingTaskMetrics(metrics: ServiceTaskMetrics, request: URLRequest) {}"
            ),
        ]
        let source = wrong.map { delegate("Wrong_\($0.0)", $0.0, $0.1) }.joined()
        let result = try await compile(source)
        #expect(!result.compiles)
        for (name, _) in wrong {
            let messages = [
                "type 'Wrong_\(name)' does not conform to protocol 'ServicePassthroughDelegate'",
                "instance method '\(name)' has different argument labels from those required by protocol",
            ]
            #expect(messages.contains { result.output.contains($0) }, "\(result.output)")
        }
    }
}
