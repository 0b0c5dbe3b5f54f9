import Crypto
import Foundation
import Testing
import WebServiceCore
import WebServiceFields
import WebServiceMocking

@testable import Recipes

@Suite("Recipes with signatures", .timeLimit(.minutes(2)))
struct SignatureTests {
    let mock = MockService()

    // MARK: AWS

    /// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header".
    private static let s3 = AWSSigner(
        service: "s3", region: "us-east-1", now: { Date(timeIntervalSince1970: 1_369_353_600) }
    ) {
        s3Credentials
    }
    private static let s3Credentials = AWSSigner.Credentials(
        accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

    private func signature(_ request: Request, _ signer: AWSSigner, _ credentials: AWSSigner.Credentials) throws
        -> String
    {
        let field = try signer.signed(request, with: credentials).headers["Authorization"] ?? ""
        return field.components(separatedBy: "Signature=").last ?? ""
    }

    @Test(
        "AWS: the signature is that of the test suite of Signature Version 4",
        arguments: [
            ("GET", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            (
                "GET", "?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
            ),
            ("POST", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ])
    func suite(method: String, query: String, expected: String) throws {
        let credentials = AWSSigner.Credentials(
            accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        let signer = AWSSigner(
            service: "service", region: "us-east-1", now: { Date(timeIntervalSince1970: 1_440_938_160) }
        ) { credentials }
        let request = Request(Request.Method(rawValue: method), url: "https://example.amazonaws.com/\(query)")
        #expect(try signature(request, signer, credentials) == expected)
    }

    @Test(
        "AWS: the signature is that of the examples for S3",
        arguments: [
            ("/test.txt", "Range", "bytes=0-9", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            ("/?lifecycle", "", "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("/?max-keys=2&prefix=J", "", "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ])
    func objects(path: String, field: String, value: String, expected: String) throws {
        var request = Request(url: "https://examplebucket.s3.amazonaws.com\(path)")
        if !field.isEmpty { request.headers[Headers.Name(field)] = value }
        #expect(try signature(request, Self.s3, Self.s3Credentials) == expected)
    }

    @Test("AWS: a body in memory and the hash of a file have the signature of the example for S3")
    func bodies() throws {
        let expected = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        let text = Data("Welcome to Amazon S3.".utf8)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("s3-\(UUID().uuidString)")
        try text.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }  // in the temporary folder
        // The example has no Content-Type, which every request with a body has.
        var request = Request(.PUT, url: "https://examplebucket.s3.amazonaws.com/test$file.text")
        request.headers["Date"] = "Fri, 24 May 2013 00:00:00 GMT"
        request.headers["X-Amz-Storage-Class"] = "REDUCED_REDUNDANCY"
        request.headers["X-Amz-Content-Sha256"] = try AWSSigner.hash(ofFile: file)
        #expect(try signature(request, Self.s3, Self.s3Credentials) == expected)
        request.content = .file(file)
        let ofFile = try signature(request, Self.s3, Self.s3Credentials)
        request.headers["X-Amz-Content-Sha256"] = nil
        #expect(throws: MissingHash.self) { try signature(request, Self.s3, Self.s3Credentials) }
        request.content = .data(text)
        #expect(try signature(request, Self.s3, Self.s3Credentials) == ofFile)
    }

    @Test("AWS: the URL is that of the example for presigned URLs")
    func presignedURL() throws {
        let object = try #require(URL(string: "https://examplebucket.s3.amazonaws.com/test.txt"))
        let url = try Self.s3.presignedURL(object, validFor: .seconds(86_400), with: Self.s3Credentials)
        #expect(url.absoluteString.hasPrefix("https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm="))
        #expect(
            url.absoluteString.hasSuffix(
                "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                    + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"))
    }

    @Test("AWS: each attempt of an upload is signed")
    func upload() async throws {
        let (service, accessKey, secretKey) = (mock.service, "canary", "canary")
        let video = FileManager.default.temporaryDirectory.appendingPathComponent("film-\(UUID().uuidString)")
        try Data("frames".utf8).write(to: video)
        defer { try? FileManager.default.removeItem(at: video) }  // in the temporary folder
        mock.on(.PUT, "/films/7.mp4", [.status(503).header("Retry-After", "0"), .status(200)])
        service.interceptors = [
            .retry(),
            AWSSigner(service: "s3", region: "us-east-1") {
                .init(accessKey: accessKey, secretKey: secretKey)
            },
        ]
        let hash = try AWSSigner.hash(ofFile: video)
        try await service.PUT("/films/7.mp4").setBody(file: video, contentType: "video/mp4")
            .setHeaderValue(hash, forName: "X-Amz-Content-Sha256").empty().value
        let sent = mock.receivedRequests
        #expect(sent.count == 2)
        #expect(sent.allSatisfy { $0.headers["X-Amz-Content-Sha256"] == hash })
        #expect(
            sent.allSatisfy {
                $0.headers["Authorization"]?.contains(
                    "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date,")
                    == true
            })
    }

    // MARK: HTTP Message Signatures

    /// The request of RFC 9421, appendix B.2.
    private func example() -> Request {
        var request = Request(.POST, url: "https://example.com/foo?param=Value&Pet=dog")
        request.headers["Date"] = "Tue, 20 Apr 2021 02:07:55 GMT"
        request.content = .data(Data(#"{"hello": "world"}"#.utf8), contentType: "application/json")
        return request
    }

    private func sign(_ signer: HTTPMessageSigner) async throws -> Headers {
        mock.on(.any, .status(200))
        mock.service.interceptors = [signer]
        _ = try await mock.service.sessionTask(request: example()).data().value
        return try #require(mock.receivedRequests.last).headers
    }

    @Test("RFC 9421: the signature with a shared secret is that of appendix B.2.5")
    func sharedSecret() async throws {
        let secret = try #require(
            Data(
                base64Encoded:
                    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="))
        let headers = try await sign(
            HTTPMessageSigner(
                label: "sig-b25", keyID: "test-shared-secret", components: ["date", "@authority", "content-type"],
                now: { Date(timeIntervalSince1970: 1_618_884_473) }
            ) { base in Data(HMAC<SHA256>.authenticationCode(for: base, using: SymmetricKey(data: secret))) })
        #expect(
            headers["Signature-Input"]
                == #"sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#)
        #expect(headers["Signature"] == "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:")
    }

    @Test("RFC 9421: the signature of appendix B.2.6 is valid for the signed bytes")
    func publicKey() async throws {
        let key = try Curve25519.Signing.PublicKey(
            rawRepresentation: #require(Data(base64Encoded: "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=")))
        let signature = try #require(
            Data(
                base64Encoded:
                    "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="))
        let components = ["date", "@method", "@path", "@authority", "content-type", "content-length"]
        _ = try await sign(
            HTTPMessageSigner(
                label: "sig-b26", keyID: "test-key-ed25519", components: components,
                now: { Date(timeIntervalSince1970: 1_618_884_473) }
            ) { base in
                #expect(key.isValidSignature(signature, for: base))
                return signature
            })
    }

    @Test("RFC 9421: the signature of an upload covers the digest of its file")
    func signedFile() async throws {
        let (service, key) = (mock.service, Curve25519.Signing.PrivateKey())
        let video = FileManager.default.temporaryDirectory.appendingPathComponent("film-\(UUID().uuidString)")
        try Data("frames".utf8).write(to: video)
        defer { try? FileManager.default.removeItem(at: video) }  // in the temporary folder
        mock.on(.PUT, "/films/7.mp4", .status(201))
        service.interceptors = [
            .contentDigest(), .retry(),
            HTTPMessageSigner(keyID: "7") { base in try key.signature(for: base) },
        ]
        try await service.PUT("/films/7.mp4").setBody(file: video, contentType: "video/mp4")
            .empty().value
        let headers = try #require(mock.receivedRequests.last).headers
        let digest = Data(SHA256.hash(data: Data("frames".utf8))).base64EncodedString()
        #expect(headers["Content-Digest"] == "sha-256=:\(digest):")
        let input = try #require(headers["Signature-Input"]).dropFirst("sig1=".count)
        let base = """
            "@method": PUT
            "@target-uri": https://mock.test/films/7.mp4
            "content-digest": sha-256=:\(digest):
            "@signature-params": \(input)
            """
        let signature = try #require(headers.structuredDictionary("Signature")?["sig1"]?.item?.value.byteSequence)
        #expect(key.publicKey.isValidSignature(signature, for: Data(base.utf8)))
    }
}
