import Foundation
import WebServiceCore
import WebServiceMocking

extension Probe {
    /// Runs exchanges over `FoundationSession` with a server with TLS, without and with trust in its
    /// certificate.
    ///
    /// Foundation on Linux reads the trusted certificates from a file that an environment variable
    /// of the process names, which is why this is a probe.
    static func trust() async throws -> Outcome {
        #if os(Linux)
        let server: MockServer
        do {
            server = try MockServer(tls: true)
        } catch let error as WebServiceError where error.code == .tlsUnavailable {
            return .impossible
        }
        server.on(.POST, "/echo") { MockResponse(statusCode: 200, data: $0.body) }
        let service = WebService(baseURLString: server.baseURLString)
        let refused = await service.POST("/echo").setBody(Data("ale".utf8)).data().result
        guard refused.isFailure(.serverCertificateUntrusted), server.receivedRequests.isEmpty else {
            tell("without trust: \(refused)")
            return .broken
        }
        setenv("URLSessionCertificateAuthorityInfoFile", server.certificateFile?.path ?? "", 1)
        for size in [0, 1, 16 << 10, 3_000_000] {
            let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            guard try await service.POST("/echo").setBody(body).data().value == body else {
                tell("another body of \(size) bytes")
                return .broken
            }
        }
        for wire in [MockResponse.Wire.cut(after: 200), .reset(after: 200), .disconnect] {
            var response = MockResponse.text(String(repeating: "ale", count: 100))
            response.wire = wire
            server.on(.GET, "/", response)
            let result = await service.GET("/").data().result
            guard result.isFailure(.networkConnectionLost) else {
                tell("\(wire): \(result)")
                return .broken
            }
        }
        return .holds
        #else
        return .impossible
        #endif
    }
}

extension Result {
    fileprivate func isFailure(_ code: URLError.Code) -> Bool {
        if case .failure(let error as URLError) = self { error.code == code } else { false }
    }
}
