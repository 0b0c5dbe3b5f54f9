import Foundation
import WebServiceCore
import WebServiceMocking

/// Compressed bodies. A session that does not accept gzip receives uncompressed bodies.
extension SessionScenario {
    static let codings: [SessionScenario] = [
        gzip("a gzip response is decoded", text, gives: .response(200, plain)),
        gzip("a chunked gzip response is decoded", text, .chunked(size: 10), gives: .response(200, plain)),
        gzip("a truncated gzip body with a matching Content-Length is an error", text.prefix(40), gives: .broken),
        gzip("a gzip body without its checksum is an error", text.dropLast(8), gives: .broken),
        gzip(
            "a gzip body with a wrong checksum is an error", text.dropLast(8) + Data([1, 2, 3, 4]) + text.suffix(4),
            gives: .broken),
        gzip(
            "a body that is not gzip despite its Content-Encoding is an error", Data("no gzip at all".utf8),
            gives: .broken),
    ]

    /// Serves bytes as gzip to requests that accept it, and the plain body to all others.
    static func serveGzip(
        _ bytes: Data, _ wire: MockResponse.Wire = .fixedLength, mock: any MockableDataTaskResult,
        on stage: ScenarioStage
    ) {
        stage.serve { request in
            guard acceptsGzip(request) || stage.server == nil else { return ScenarioReply(200, plain) }
            var response = MockResponse(statusCode: 200, data: bytes)
            response.wire = wire
            response.headers["Content-Encoding"] = "gzip"
            return ScenarioReply(response, mock: mock)
        }
    }

    static func acceptsGzip(_ request: ScenarioRequest) -> Bool {
        request.headers["Accept-Encoding"]?.contains("gzip") == true
    }

    private static func gzip(
        _ name: String, _ bytes: Data, _ wire: MockResponse.Wire = .fixedLength, gives expected: ScenarioExpectation
    ) -> SessionScenario {
        SessionScenario(name) { stage in
            serveGzip(bytes, wire, mock: expected.mockResult(headers: [:]), on: stage)
            let outcome = try await stage.send(stage.request())
            let request = try stage.arrived(1)
            let isCoded = stage.server == nil || acceptsGzip(request)
            try stage.expect(isCoded ? expected : .response(200, plain), outcome)
        }
    }

    private static let plain = "ale, porter, stout, lager, pilsner, bock, weizen, saison, ale, porter, stout, lager"
    private static let text =
        Data(
            base64Encoded:
                "H4sIAAAAAAACA0vMSdVRKMgvKkkt0lEoLskvLdFRyElMB/EKMnOK80CMpPzkbB2F8tTMqtQ8oKLEzOJ8IJ2ISycA4oRG4VMAAAA=")
        ?? Data()

    /// Returns a gzip stream of zeros without its end (RFC 1951, section 3.2.6).
    ///
    /// The stream consists of one zero byte and copies of the last byte, 258 at a time. Each copy
    /// takes 13 bits. The end is omitted, because the limit is exceeded earlier.
    ///
    /// - Parameter blocks: The number of blocks of 13 bytes, each of which expands to about 2,064
    ///   zeros.
    static func bomb(blocks: Int) -> Data {
        var data = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x63, 0x18])
        let block: [UInt8] = [0x05, 0xA3, 0x60, 0x14, 0x8C, 0x82, 0x51, 0x30, 0x0A, 0x46, 0xC1, 0x28, 0x18]
        for _ in 0..<blocks { data.append(contentsOf: block) }
        return data
    }
}
