import Foundation
import TestSupport
import WebServiceCore
import WebServiceCurl

extension CurlSession {
    /// Opens a connection to a port of a host.
    func connect(
        port: Int, host: String = "127.0.0.1", scheme: String = "http", _ change: (inout Request) -> Void = { _ in }
    ) async throws -> any ByteConnection {
        var request = Request(.GET, url: "\(scheme)://\(host):\(port)/chat")
        change(&request)
        return try await connect(EncodedRequest.encoding(request))
    }
}

extension ByteConnection {
    /// Receives exactly this number of bytes, or fewer at the end.
    func receive(count: Int) async throws -> Data {
        var bytes = Data()
        while bytes.count < count, case let next = try await receive(), !next.isEmpty { bytes += next }
        return bytes
    }

    /// Receives all bytes.
    func receiveAll() async throws -> Data { try await receive(count: .max) }

    /// Sends bytes and receives the same number.
    func exchange(_ bytes: Data) async throws -> Data {
        async let received = receive(count: bytes.count)
        try await send(bytes)
        return try await received
    }
}

/// Returns the result of an asynchronous call.
func outcome<Value: Sendable>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
    do { return .success(try await body()) } catch { return .failure(error) }
}
