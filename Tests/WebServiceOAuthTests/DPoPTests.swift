import Foundation
import SystemCrypto
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceOAuth

@Suite("DPoP", .permit)
struct DPoPTests {
    private let server = FakeServer()

    /// The parts of a proof.
    private struct Proof {
        let header: JSONValue
        let claims: JSONValue
        let isValid: Bool

        init(_ text: String) throws {
            let parts = text.split(separator: ".").map(String.init)
            let bytes = try parts.map { try #require(Data(base64URL: $0)) }
            try #require(bytes.count == 3)
            header = try JSONDecoder().decode(JSONValue.self, from: bytes[0])
            claims = try JSONDecoder().decode(JSONValue.self, from: bytes[1])
            let key =
                try #require(Data(base64URL: header["jwk"]?["x"]?.string ?? ""))
                + #require(Data(base64URL: header["jwk"]?["y"]?.string ?? ""))
            isValid = P256Key.isValid(bytes[2], of: Data(parts[..<2].joined(separator: ".").utf8), publicKey: key)
        }
    }

    // MARK: Examples of RFC 9449

    private static let header =
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJo"
        + "RjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19"
    private static let tokenProof =
        header
        + ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2Vu"
        + "IiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
    private static let refreshProof =
        header
        + ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2Vu"
        + "IiwiaWF0IjoxNTYyMjY1Mjk2fQ.pAqut2IRDm_De6PR93SYmGBPXpwrAk90e8cP2hjiaG5QsGSuKDYW7_X620BxqhvYC8ynrrvZLTk41mSRroapUA"
    private static let resourceProof =
        header
        + ".eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90"
        + "ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9"
        + ".2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
    private static let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"

    @Test("The signatures of the proofs of RFC 9449 are valid", arguments: [tokenProof, refreshProof, resourceProof])
    func examples(text: String) throws {
        #expect(try Proof(text).isValid)
        #expect(try !Proof(text.dropLast(2) + "AA").isValid)
    }

    @Test("A proof has the header and the claims of RFC 9449, 4.2 and 7.1")
    func claims() throws {
        let dpop = try DPoP()
        let (example, url) = (try Proof(Self.resourceProof), "https://resource.example.org/protectedresource")
        let id = try #require(Data(base64URL: "e1j3V_bKic8-LAEB"))
        let date = Date(timeIntervalSince1970: 1_562_262_618)
        let proof = try Proof(dpop.proof("GET", url + "?a=b#c", token: Self.token, nonce: nil, date: date, id: id))
        #expect(proof.isValid)
        #expect(proof.claims == example.claims)
        #expect(proof.header["typ"] == example.header["typ"])
        #expect(proof.header["alg"] == example.header["alg"])
        #expect(proof.header["jwk"]?.object?.keys.sorted() == example.header["jwk"]?.object?.keys.sorted())
    }

    @Test("A proof has the nonce of RFC 9449, 8")
    func nonceClaim() throws {
        let id = try #require(Data(base64URL: "-BwC3ESc6acc2lTc"))
        let proof = try Proof(
            DPoP().proof(
                "POST", "https://server.example.com/token", token: nil, nonce: "eyJ7S_zG.eyJH0-Z.HX4w-7v",
                date: Date(timeIntervalSince1970: 1_562_262_616), id: id))
        #expect(
            proof.claims
                == .object([
                    "jti": .string("-BwC3ESc6acc2lTc"), "htm": .string("POST"),
                    "htu": .string("https://server.example.com/token"), "iat": JSONValue(1_562_262_616),
                    "nonce": .string("eyJ7S_zG.eyJH0-Z.HX4w-7v"),
                ]))
    }

    @Test("The thumbprint is that of RFC 9449, 6.1")
    func thumbprint() throws {
        let key = try Proof(Self.tokenProof).header["jwk"]?.object?.compactMapValues(\.string) ?? [:]
        #expect(P256Key.thumbprint(of: key) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    // MARK: Log-in

    private func begin(_ dpop: DPoP) async throws -> OAuth {
        let oauth = try server.oauth(dpop: dpop)
        let tokens = try await server.logIn(oauth)
        #expect(tokens.credential.value == "DPoP s3cr3t-access-1")
        server.mock.service.interceptors = [Authentication(oauth.tokenSource(tokens)), dpop]
        return oauth
    }

    private func proofs(_ path: String) throws -> [Proof] {
        try server.requests(path).map { try Proof(#require($0.headers["DPoP"])) }
    }

    @Test("The requests of a log-in and to a resource have proofs with the same key")
    func logIn() async throws {
        let dpop = try DPoP()
        _ = try await begin(dpop)
        for _ in 0..<2 { try await server.mock.service.GET("/me?page=2").empty().value }
        let token = try proofs("/token")
        let resource = try proofs("/me")
        let areValid = (token + resource).map(\.isValid)
        #expect(areValid == [true, true, true])
        #expect(token.first?.claims["htu"]?.string == "https://login.example/token")
        #expect(token.first?.claims["ath"] == nil)
        #expect(resource.map { $0.claims["htu"]?.string } == ["https://api.example/me", "https://api.example/me"])
        #expect(resource.first?.claims["htm"]?.string == "GET")
        #expect(resource.first?.claims["ath"]?.string == Data("s3cr3t-access-1".utf8).sha256.base64URL)
        #expect(Set((token + resource).map { $0.claims["jti"]?.string }).count == 3)
        #expect(Set((token + resource).map { $0.header["jwk"]?["x"]?.string }) == [dpop.key.publicJWK["x"]])
    }

    @Test("The key of a stored log-in is restored")
    func storedKey() throws {
        let key = try OAuth.SigningKey()
        #expect(try OAuth.SigningKey(rawRepresentation: key.rawRepresentation) == key)
        #expect(throws: WebServiceError.self) { try OAuth.SigningKey(rawRepresentation: Data(count: 32)) }
        #expect(throws: WebServiceError.self) {
            try OAuth.SigningKey(rawRepresentation: Data(repeating: 255, count: 32))
        }
    }

    @Test("A bearer token in place of a bound one is refused")
    func downgrade() async throws {
        server.replace(.token) { [server] _ in server.tokens(type: "Bearer") }
        let error = try await #require(throws: WebServiceError.self) {
            try await server.logIn(server.oauth(dpop: DPoP()))
        }
        #expect(error.code == .invalidAuthorization)
    }

    @Test("A nonce that the server requires is used, and later ones replace it")
    func nonces() async throws {
        server.replace(.token) { [server] request in
            let nonce = try Proof(request.headers["DPoP"] ?? "").claims["nonce"]?.string
            guard nonce == "t1" else {
                return .json(["error": "use_dpop_nonce"], status: 400).header("DPoP-Nonce", "t1")
            }
            return server.honest(.token, request)
        }
        server.replace(.resource) { request in
            switch try Proof(request.headers["DPoP"] ?? "").claims["nonce"]?.string {
            case "r1": .json(["n": 1]).header("DPoP-Nonce", "r2")
            case "r2": .json(["n": 2])
            default:
                .status(401).header("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#).header("DPoP-Nonce", "r1")
            }
        }
        let oauth = try await begin(DPoP())
        #expect(server.requests("/token").count == 2)
        let service = server.mock.service
        #expect(try await service.GET("/me").json().value["n"]?.int == 1)
        #expect(try await service.GET("/me").json().value["n"]?.int == 2)
        #expect(try proofs("/me").map { $0.claims["nonce"]?.string } == [nil, "r1", "r2"])
        _ = try await oauth.refresh(OAuth.Tokens(.bearer("a"), refreshToken: "r"))
        #expect(server.requests("/token").count == 3)
    }

    @Test("A token request that is repeated with a nonce has another client assertion")
    func assertions() async throws {
        server.replace(.token) { [server] request in
            let nonce = try Proof(request.headers["DPoP"] ?? "").claims["nonce"]?.string
            guard nonce == "t1" else {
                return .json(["error": "use_dpop_nonce"], status: 400).header("DPoP-Nonce", "t1")
            }
            return server.honest(.token, request)
        }
        let client = OAuth.Client.privateKey(try OAuth.SigningKey(), id: "client")
        try await server.logIn(server.oauth(client: client, dpop: DPoP()))
        let assertions = server.requests("/token").compactMap { $0.form["client_assertion"] }
        #expect(assertions.count == 2)
        #expect(Set(assertions).count == 2)
    }

    @Test("A nonce that changes with each response does not cause endless requests")
    func endlessNonces() async throws {
        let count = Collected<Int>()
        @Sendable func next() -> String {
            count.add(1)
            return "n\(count.values.count)"
        }
        _ = try await begin(DPoP())
        server.replace(.resource) { _ in
            .status(401).header("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#).header("DPoP-Nonce", next())
        }
        server.replace(.token) { _ in
            .json(["error": "use_dpop_nonce"], status: 400).header("DPoP-Nonce", next())
        }
        let error = await #expect(throws: WebServiceError.self) {
            try await server.mock.service.GET("/me").empty().value
        }
        #expect(error?.code == .authenticationFailed)
        // Each request is repeated once: the request, and its refresh.
        #expect(server.requests("/me").count == 2)
        #expect(server.requests("/token").count == 3)
    }

    @Test("A malformed nonce is ignored", arguments: ["a b", "a\"b", "é", String(repeating: "a", count: 1_025)])
    func malformedNonce(nonce: String) async throws {
        _ = try await begin(DPoP())
        server.replace(.resource) { _ in
            .status(401).header("WWW-Authenticate", #"DPoP error="use_dpop_nonce""#).header("DPoP-Nonce", nonce)
        }
        _ = try await server.mock.service.GET("/me").empty().response
        #expect(try proofs("/me").allSatisfy { $0.claims["nonce"] == nil })
    }

    @Test("A redirect is sent with a proof for its own URL, and none to another origin")
    func redirects() async throws {
        _ = try await begin(DPoP())
        server.replace(.resource) { request in
            guard request.path == "/me" else { return .json(["n": 1]) }
            return .status(307).header("Location", request.queryItems.first?.value ?? "/mcp")
        }
        _ = try await server.mock.service.GET("/me").json().value
        let proof = try #require(proofs("/mcp").first)
        #expect(proof.isValid)
        #expect(proof.claims["htu"]?.string == "https://api.example/mcp")
        _ = try await server.mock.service.GET("/me?to=https://evil.example/mcp").json().value
        let foreign = try #require(server.requests("/mcp").last)
        #expect(foreign.headers["DPoP"] == nil)
        #expect(foreign.headers[.authorization] == nil)
    }

    @Test("Requests without a bound token have no proof")
    func otherRequests() async throws {
        server.mock.service.interceptors = [.bearer("s3cr3t"), try DPoP()]
        try await server.mock.service.GET("/me").empty().value
        #expect(server.requests("/me").first?.headers["DPoP"] == nil)
    }
}

extension Data {
    /// Creates data from base64url without padding.
    fileprivate init?(base64URL text: String) {
        let standard = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
