import Dispatch
package import Foundation
import WebServiceMocking
package import WebServiceServer

extension ChildProcess {
    /// Runs the process to its end, and returns its status and what it writes to a pipe.
    package func finish(reading pipe: Pipe) async throws -> (status: Int32, output: String) {
        try await blocking {
            try self.run()
            let output = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            return (self.waitUntilExit(), output)
        }
    }
}

/// Runs a closure that blocks its thread on a thread that may be blocked.
package func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
    }
}

/// Returns the path of a program of this package, which is in the folder of the test executable.
package func programPath(_ name: String) -> String {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name).path
}
