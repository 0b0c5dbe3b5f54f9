import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Content codings of response bodies that the client did not ask for, over real sockets.
@Suite("Content codings over sockets", .permit)
struct BodyCodingTests {
    private static let plain =
        "ale, porter, stout, lager, pilsner, bock, weizen, saison, ale, porter, stout, lager"
    private static let zlib = data(
        "eJxLzEnVUSjILypJLdJRKC7JLy3RUchJTAfxCjJzivNAjKT85GwdhfLUzKrUPKCixMzifCCdiEsnAMdjHTA=")
    private static let raw = data(
        "S8xJ1VEoyC8qSS3SUSguyS8t0VHISUwH8Qoyc4rzQIyk/ORsHYXy1Myq1DygosTM4nwgnYhLJwA=")
    private static let gzip = data(
        "H4sIAAAAAAACA0vMSdVRKMgvKkkt0lEoLskvLdFRyElMB/EKMnOK80CMpPzkbB2F8tTMqtQ8oKLEzOJ8IJ2ISycA4oRG4VMAAAA=")

    /// The text, encoded twice.
    private static let twice = data(
        "H4sIAAAAAAACA5Pv5mAAASZm7zOeVwM1TuhreepeCtTQO6mvezHwhKcP+0cuo+Kuzw49S/48yZFt/XTlzKorNgsWHTnzqEZhboe3OsOjFreHwUATALn7NopKAAAA"
    )

    private static func data(_ base64: String) -> Data { Data(base64Encoded: base64) ?? Data() }

    private static func server(_ body: Data, _ coding: String) throws -> MockServer {
        try MockServer { _ in MockResponse(statusCode: 200, headers: ["Content-Encoding": coding], data: body) }
    }

    /// Reads the body of `/` in one way.
    private enum Consumption: CaseIterable {
        case whole, stream, lines, download

        func text(_ service: WebService) async throws -> String {
            switch self {
            case .whole: return try await service.GET("/").string().value
            case .stream:
                var bytes = Data()
                for try await chunk in try await service.GET("/").stream().value.body { bytes.append(chunk) }
                return String(decoding: bytes, as: UTF8.self)
            case .lines:
                var lines: [String] = []
                for try await line in service.GET("/").lines() { lines.append(line) }
                return lines.joined(separator: "\n")
            case .download:
                let manager = FileManager.default
                let folder = manager.temporaryDirectory.appendingPathComponent("webservice-\(UUID().uuidString)")
                try manager.createDirectory(at: folder, withIntermediateDirectories: true)
                defer { try? manager.removeItem(at: folder) }  // a folder of this test
                let file = try await service.GET("/").download(to: folder.appendingPathComponent("file")).value
                return try String(contentsOf: file.url, encoding: .utf8)
            }
        }
    }

    @Test(
        "A deflate body is decoded with and without the zlib format, however it is read",
        arguments: RealSession.allCases, [zlib, raw])
    func deflate(session: RealSession, body: Data) async throws {
        let server = try Self.server(body, "deflate")
        defer { server.stop() }
        let service = try session.service(server)
        for consumption in Consumption.allCases {
            #expect(try await consumption.text(service) == Self.plain, "\(consumption)")
        }
    }

    @Test(
        "The codings x-gzip, identity, none and lists of two are decoded, however the body is read",
        arguments: RealSession.allCases,
        [
            ("x-gzip", gzip), ("identity", Data(plain.utf8)), ("none", Data(plain.utf8)), ("gzip, gzip", twice),
            ("identity, GZIP,none", gzip),
        ])
    func aliases(session: RealSession, coded: (name: String, body: Data)) async throws {
        let server = try Self.server(coded.body, coded.name)
        defer { server.stop() }
        let service = try session.service(server)
        for consumption in Consumption.allCases {
            #expect(try await consumption.text(service) == Self.plain, "\(consumption)")
        }
    }

    @Test(
        "A body with an unknown coding is an error that names the coding, however it is read",
        arguments: RealSession.allCases)
    func unknown(session: RealSession) async throws {
        let server = try Self.server(Data("1234".utf8), "aes128gcm")
        defer { server.stop() }
        let service = try session.service(server)
        for consumption in Consumption.allCases {
            let error = await #expect(throws: URLError.self, "\(consumption)") { try await consumption.text(service) }
            // A `URLSession` provides no response that names the coding (Foundation on Linux).
            guard session != .urlSession else { continue }
            #expect(error?.code == .cannotDecodeContentData, "\(consumption)")
            #expect(error?.localizedDescription.contains("aes128gcm") == true, "\(consumption): \(error as Any)")
        }
    }

    @Test(
        "A damaged body is an error that names the coding", arguments: RealSession.streaming,
        ["gzip", "deflate"])
    func damaged(session: RealSession, coding: String) async throws {
        let server = try Self.server(Data("no compressed bytes".utf8), coding)
        defer { server.stop() }
        let service = try session.service(server)
        for consumption in Consumption.allCases {
            let error = await #expect(throws: URLError.self, "\(consumption)") { try await consumption.text(service) }
            #expect(error?.code == .cannotDecodeContentData, "\(consumption)")
            #expect(error?.localizedDescription.contains(coding) == true, "\(consumption): \(error as Any)")
        }
    }
}
