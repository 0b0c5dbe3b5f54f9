import Foundation
import WebServiceCore
import WebServiceMocking

extension Probe {
    /// Runs exchanges over `FoundationSession` with a server with TLS, whose certificate is in a file
    /// that the system trusts. The environment contains the URL of the server.
    static func trust() async throws -> Outcome {
        guard let url = ProcessInfo.processInfo.environment["WEBSERVICE_SERVER"] else { return .impossible }
        let service = WebService(baseURLString: url)
        for size in [0, 1, 16 << 10, 3_000_000] {
            let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            guard try await service.POST("/echo").setBody(body).data().value == body else {
                tell("another body of \(size) bytes")
                return .broken
            }
        }
        for path in ["/cut", "/reset", "/disconnect"] {
            let result = await service.GET(path).data().result
            guard case .failure(let error as URLError) = result, error.code == .networkConnectionLost else {
                tell("\(path): \(result)")
                return .broken
            }
        }
        return .holds
    }
}
