import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Header fields on the wire, over every session that uses the network.
@Suite("Header fields on the wire", .serialized, .exclusive)
struct HeaderInjectionTests {
    /// RFC 9110, section 5.6.2.
    private static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8.map(Int.init))

    /// Returns the string with a scalar at its start, in its middle and at its end.
    private static func placed(_ code: Int, in text: String) -> [String] {
        let scalar = String(Unicode.Scalar(UInt8(code)))
        return [scalar + text, text + scalar + text, text + scalar]
    }

    @Test(
        "Each of 256 bytes in a field name or value is sent unchanged or refused, and adds nothing",
        arguments: RealSession.allCases)
    func bytes(_ kind: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 204) }
        let service = try kind.service(server)
        func send(_ name: String, _ value: String) async -> (
            result: Result<Data, any Error>, received: [ReceivedRequest]
        ) {
            let count = server.receivedRequests.count
            let result = await service.GET("/").setHeaderValue(value, forName: name).data().validateNothing().result
            return (result, Array(server.receivedRequests.dropFirst(count)))
        }
        let usual = Set(await send("X-Probe", "v").received.first?.headers.map { $0.name.lowercased() } ?? [])
        #expect(usual.contains("x-probe"))
        var sent = 0
        for code in 0..<256 {
            for value in Self.placed(code, in: "pale") {
                let (result, received) = await send("X-Probe", value)
                if code < 0x20 && code != 0x09 || code == 0x7F {
                    #expect(
                        (result.error as? WebServiceError)?.code == .invalidHeader,
                        "value, byte \(code)")
                    #expect(
                        received.isEmpty,
                        "value, byte \(code)")
                    continue
                }
                sent += 1
                let trimmed = value.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
                #expect(result.error == nil, "value, byte \(code)")
                #expect(received.count == 1, "value, byte \(code)")
                #expect(received.first?.headers.values(for: "X-Probe") == [trimmed], "value, byte \(code)")
                #expect(Set(received.first?.headers.map { $0.name.lowercased() } ?? []) == usual, "value, byte \(code)")
            }
            for name in Self.placed(code, in: "X-Probe") {
                let (result, received) = await send(name, "pale")
                guard Self.tokenBytes.contains(code) else {
                    #expect(
                        (result.error as? WebServiceError)?.code == .invalidHeader,
                        "name, byte \(code)")
                    #expect(
                        received.isEmpty,
                        "name, byte \(code)")
                    continue
                }
                sent += 1
                #expect(result.error == nil, "name, byte \(code)")
                #expect(received.count == 1, "name, byte \(code)")
                #expect(
                    received.first?.headers.filter { $0.value == "pale" }.map { $0.name.lowercased() } == [
                        name.lowercased()
                    ], "name, byte \(code)")
                let others = Set(received.first?.headers.map { $0.name.lowercased() } ?? []).subtracting([
                    name.lowercased()
                ])
                #expect(others == usual.subtracting(["x-probe"]), "name, byte \(code)")
            }
        }
        #expect(sent == 3 * (256 - 32) + 3 * Self.tokenBytes.count)
    }
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
