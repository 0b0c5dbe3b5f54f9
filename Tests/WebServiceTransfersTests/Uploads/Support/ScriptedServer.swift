import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A server that expects certain requests in order, as in the examples of a specification.
final class ScriptedServer: Sendable {
    struct Step: Sendable {
        /// The method and the target of the expected request.
        let request: String
        /// The fields that it must have; an empty value stands for an absent field.
        let fields: [String: String]
        /// The length of its body.
        let length: Int
        let response: MockResponse

        init(
            _ request: String, _ fields: [String: String] = [:], length: Int = 0, status: Int,
            _ response: [String: String] = [:], body: String = ""
        ) {
            self.request = request
            self.fields = fields
            self.length = length
            self.response = MockResponse(statusCode: status, headers: response, data: Data(body.utf8))
        }

        func lost() -> Step {
            Step(self, .lost)
        }

        /// Creates a step whose response follows interim responses with these fields.
        init(_ step: Step, interim: [[String: String]]) {
            var response = step.response
            response.interim = interim.map { fields in
                MockResponse(
                    statusCode: 104, headers: fields.merging(["Upload-Draft-Interop-Version": "8"]) { $1 })
            }
            self.init(step, response)
        }

        private init(_ step: Step, _ response: MockResponse) {
            (request, fields, length, self.response) = (step.request, step.fields, step.length, response)
        }
    }

    private final class Progress: Sendable {
        let state: Mutex<(steps: [Step], failures: [String])>

        init(_ steps: [Step]) { state = Mutex((steps, [])) }
    }

    let server: MockServer
    private let progress: Progress

    init(_ steps: [Step]) throws {
        let progress = Progress(steps)
        self.progress = progress
        server = try MockServer.forTest { request in
            progress.state.withLock { state in
                let found = "\(request.method) \(request.target)"
                guard let step = state.steps.first else {
                    state.failures.append("surplus request \(found)")
                    return MockResponse(statusCode: 400)
                }
                state.steps.removeFirst()
                if found != step.request { state.failures.append("\(found) instead of \(step.request)") }
                for (name, value) in step.fields where request.headers[name] ?? "" != value {
                    state.failures.append("\(found): \(name) is \(request.headers[name] ?? "absent")")
                }
                if request.body.count != step.length {
                    state.failures.append("\(found): \(request.body.count) bytes instead of \(step.length)")
                }
                return step.response
            }
        }
    }

    /// What differed from the script, and the requests that did not arrive.
    var failures: [String] {
        progress.state.withLock { $0.failures + $0.steps.map { "missing request \($0.request)" } }
    }
}
