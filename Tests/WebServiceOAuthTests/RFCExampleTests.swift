import Foundation
import SystemCrypto
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceOAuth

/// The examples of the RFCs.
@Suite("Examples of the RFCs", .permit)
struct RFCExampleTests {
    private let mock = MockService(clock: TestClock())
    private let json = Headers([("Content-Type", "application/json;charset=UTF-8"), ("Cache-Control", "no-store")])

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func response(_ text: String, status: Int = 200) -> MockResponse {
        MockResponse(statusCode: status, data: Data(text.utf8)).headers(json)
    }

    /// Adds a stub with successive responses to requests with a URL.
    private func on(_ method: Request.Method, _ url: String, _ responses: MockResponse...) {
        mock.on(.method(method) && .url(url), responses)
    }

    /// A client of the server in the examples of RFC 6749.
    private func oauth(_ client: OAuth.Client, resources: [String] = [], dpop: DPoP? = nil) throws -> OAuth {
        var metadata = OAuth.ServerMetadata(
            issuer: try url("https://server.example.com"),
            authorizationEndpoint: try url("https://server.example.com/authorize"),
            tokenEndpoint: try url("https://server.example.com/token"))
        metadata.deviceAuthorizationEndpoint = try url("https://server.example.com/device_authorization")
        metadata.revocationEndpoint = try url("https://server.example.com/revoke")
        metadata.registrationEndpoint = try url("https://server.example.com/register")
        return OAuth(
            metadata: metadata, client: client, resources: try resources.map(url), dpop: dpop, service: mock.service)
    }

    private let confidential = OAuth.Client.secret("gX1fBat3bV", id: "s6BhdRkqt3")

    // MARK: RFC 6749

    @Test("RFC 6749, 4.1: the requests and responses of the authorization code")
    func authorizationCode() async throws {
        on(
            .POST, "https://server.example.com/token",
            response(
                """
                {"access_token":"2YotnFZFEjr1zCsicMWpAA", "token_type":"Bearer", "expires_in":3600,
                 "refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA", "example_parameter":"example_value"}
                """))
        let redirect = try url("https://client.example.com/cb")
        let authorization = try await oauth(confidential).authorization(redirect: redirect)
        let query = authorization.url.query(percentEncoded: true) ?? ""
        #expect(
            query.hasPrefix(
                "response_type=code&client_id=s6BhdRkqt3&redirect_uri=https%3A%2F%2Fclient.example.com%2Fcb"))
        let state = try #require(
            URLComponents(url: authorization.url, resolvingAgainstBaseURL: false)?.queryItems?
                .first { $0.name == "state" }?.value)
        let callback = try url("https://client.example.com/cb?code=SplxlOBeZQQYbYS6WxSbIA&state=\(state)")
        let tokens = try await authorization.tokens(from: callback)
        #expect(tokens.credential == .bearer("2YotnFZFEjr1zCsicMWpAA", expires: mock.service.date + 3600))
        #expect(tokens.refreshToken == "tGzv3JOkF0XG5Qx2TlKWIA")
        let request = try #require(mock.receivedRequests.first)
        #expect(request.headers[.authorization] == "Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW")
        #expect(request.headers[.contentType] == "application/x-www-form-urlencoded")
        #expect(request.form["grant_type"] == "authorization_code")
        #expect(request.form["code"] == "SplxlOBeZQQYbYS6WxSbIA")
        #expect(request.form["redirect_uri"] == "https://client.example.com/cb")
    }

    @Test("RFC 6749, 4.1.2.1: an error in the callback")
    func callbackError() async throws {
        let authorization = try await oauth(confidential).authorization(redirect: url("https://client.example.com/cb"))
        let state = try #require(authorization.url.absoluteString.firstMatch(of: #/state=([^&]+)/#)?.output.1)
        let error = try await #require(throws: WebServiceError.self) {
            try await authorization.tokens(
                from: url("https://client.example.com/cb?error=access_denied&state=\(state)"))
        }
        #expect(error.code == .authorizationRefused)
        #expect(error.authorizationFailure?.code == "access_denied")
    }

    @Test("RFC 6749, 2.3.1 and 6: a refresh with the secret in the body")
    func refresh() async throws {
        on(.POST, "https://server.example.com/token", response(#"{"access_token":"new","token_type":"bearer"}"#))
        let client = OAuth.Client.secret("7Fjfp0ZBr1KtDRbnfVdmIw", id: "s6BhdRkqt3", inBody: true)
        _ = try await oauth(client).refresh(OAuth.Tokens(.bearer("old"), refreshToken: "tGzv3JOkF0XG5Qx2TlKWIA"))
        #expect(
            mock.receivedRequests.first?.form == [
                "grant_type": "refresh_token", "refresh_token": "tGzv3JOkF0XG5Qx2TlKWIA", "client_id": "s6BhdRkqt3",
                "client_secret": "7Fjfp0ZBr1KtDRbnfVdmIw",
            ])
    }

    @Test("RFC 6749, 4.4 and 7.1: client credentials; a token of an unknown type is refused")
    func clientCredentials() async throws {
        on(
            .POST, "https://server.example.com/token",
            response(
                """
                {"access_token":"2YotnFZFEjr1zCsicMWpAA", "token_type":"example", "expires_in":3600,
                 "example_parameter":"example_value"}
                """))
        let source = try oauth(confidential).clientCredentials()
        let error = try await #require(throws: WebServiceError.self) { try await source.refresh(nil) }
        #expect(error.code == .invalidAuthorization)
        #expect(mock.receivedRequests.first?.form["grant_type"] == "client_credentials")
    }

    @Test("RFC 6749, 5.2: an error of the token endpoint")
    func tokenError() async throws {
        on(.POST, "https://server.example.com/token", response(#"{"error":"invalid_request"}"#, status: 400))
        let error = try await #require(throws: WebServiceError.self) {
            try await oauth(confidential).clientCredentials().refresh(nil)
        }
        #expect(error.authorizationFailure?.code == "invalid_request")
        #expect(error.description.contains("invalid_request"))
    }

    // MARK: RFC 7636, 8707, 9207

    @Test("RFC 7636, appendix A and B: base64url and S256")
    func challenge() {
        #expect(Data([3, 236, 255, 224, 193]).base64URL == "A-z_4ME")
        let octets: [UInt8] = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ]
        #expect(Data(octets).base64URL == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        #expect(
            OAuth.challenge(for: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
                == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test("RFC 8707, 2: several resources in both requests")
    func resources() async throws {
        on(.POST, "https://server.example.com/token", response(#"{"access_token":"a","token_type":"Bearer"}"#))
        let oauth = try oauth(confidential, resources: ["https://cal.example.com/", "https://contacts.example.com/"])
        let authorization = try await oauth.authorization(redirect: url("https://client.example.org/cb"))
        #expect(
            authorization.url.absoluteString.hasSuffix(
                "&resource=https%3A%2F%2Fcal.example.com%2F&resource=https%3A%2F%2Fcontacts.example.com%2F"))
        _ = try await oauth.refresh(
            OAuth.Tokens(.bearer("a"), refreshToken: "4LTC8lb0acc6Oy4esc1Nk9BWC0imAwH7kic16BDC2"))
        let resources = mock.receivedRequests.first?.formItems.filter { $0.name == "resource" }.map(\.value)
        #expect(resources == ["https://cal.example.com/", "https://contacts.example.com/"])
    }

    @Test("RFC 9207, 2.2: a callback with the issuer, and one of another issuer", arguments: [true, false])
    func issuer(isHonest: Bool) async throws {
        on(.POST, "https://server.example.com/token", response(#"{"access_token":"a","token_type":"Bearer"}"#))
        let authorization = try await oauth(confidential).authorization(redirect: url("https://client.example/cb"))
        let state = try #require(authorization.url.absoluteString.firstMatch(of: #/state=([^&]+)/#)?.output.1)
        let host = isHonest ? "server.example.com" : "honest.as.example"
        let callback = try url(
            "https://client.example/cb?code=x1848ZT64p4IirMPT0R-X3141MFPTuBX-VFL_cvaplMH58&state=\(state)"
                + "&iss=https%3A%2F%2F\(host)")
        let tokens = try? await authorization.tokens(from: callback)
        #expect((tokens != nil) == isHonest)
        #expect(mock.receivedRequests.count == (isHonest ? 1 : 0))
    }

    // MARK: RFC 8628

    @Test("RFC 8628, 3: the requests and responses of a device")
    func device() async throws {
        let clock = try #require(mock.clock)
        on(
            .POST, "https://server.example.com/device_authorization",
            response(
                """
                {"device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS", "user_code": "WDJB-MJHT",
                 "verification_uri": "https://example.com/device",
                 "verification_uri_complete": "https://example.com/device?user_code=WDJB-MJHT",
                 "expires_in": 1800, "interval": 5}
                """))
        on(
            .POST, "https://server.example.com/token",
            response(#"{"error":"authorization_pending"}"#, status: 400),
            response(#"{"error":"slow_down"}"#, status: 400),
            response(#"{"access_token":"a","token_type":"Bearer"}"#))
        let device = try await oauth(.public(id: "1406020730")).deviceAuthorization(scopes: ["example_scope"])
        #expect(device.userCode == "WDJB-MJHT")
        #expect(device.verificationURL.absoluteString == "https://example.com/device")
        #expect(device.completeVerificationURL?.absoluteString == "https://example.com/device?user_code=WDJB-MJHT")
        #expect(device.expires == clock.date + 1800)
        #expect(mock.receivedRequests.first?.form == ["client_id": "1406020730", "scope": "example_scope"])
        let tokens = Task(executorPreference: clock.executor) { try await device.tokens() }
        // After 5 and 10 seconds, and after 10 more because of slow_down.
        await clock.advance(by: .seconds(19))
        #expect(mock.receivedRequests.count == 3)
        await clock.advance(by: .seconds(1))
        #expect(try await tokens.value.credential == .bearer("a"))
        #expect(
            mock.receivedRequests.last?.form == [
                "grant_type": "urn:ietf:params:oauth:grant-type:device_code", "client_id": "1406020730",
                "device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS",
            ])
    }

    // MARK: RFC 8414, 9728

    @Test("RFC 8414, 3.1: the URLs of an issuer without a path, and with one")
    func metadataURLs() throws {
        let name = "oauth-authorization-server"
        let urls = try ["https://example.com", "https://example.com/issuer1"].map { try url($0).wellKnown(name) }
        #expect(
            urls.map(\.?.absoluteString) == [
                "https://example.com/.well-known/oauth-authorization-server",
                "https://example.com/.well-known/oauth-authorization-server/issuer1",
            ])
    }

    @Test("RFC 8414, 3.2: the metadata")
    func metadata() async throws {
        on(
            .GET, "https://server.example.com/.well-known/oauth-authorization-server",
            response(
                """
                {"issuer": "https://server.example.com",
                 "authorization_endpoint": "https://server.example.com/authorize",
                 "token_endpoint": "https://server.example.com/token",
                 "token_endpoint_auth_methods_supported": ["client_secret_basic", "private_key_jwt"],
                 "token_endpoint_auth_signing_alg_values_supported": ["RS256", "ES256"],
                 "userinfo_endpoint": "https://server.example.com/userinfo",
                 "jwks_uri": "https://server.example.com/jwks.json",
                 "registration_endpoint": "https://server.example.com/register",
                 "scopes_supported": ["openid", "profile", "email", "address", "phone", "offline_access"],
                 "response_types_supported": ["code", "code token"],
                 "service_documentation": "http://server.example.com/service_documentation.html",
                 "ui_locales_supported": ["en-US", "en-GB", "en-CA", "fr-FR", "fr-CA"]}
                """))
        let metadata = try await OAuth.ServerMetadata.discover(url("https://server.example.com"), service: mock.service)
        #expect(metadata.tokenEndpoint?.absoluteString == "https://server.example.com/token")
        #expect(metadata.scopes == ["openid", "profile", "email", "address", "phone", "offline_access"])
        // Without `code_challenge_methods_supported`, the server does not support PKCE (section 2).
        #expect(metadata.codeChallengeMethods == [])
    }

    @Test("RFC 9728, 3: the metadata of a resource with a path, and of its origin")
    func resourceMetadata() async throws {
        func document(_ resource: String) -> MockResponse {
            response(
                """
                {"resource": "\(resource)",
                 "authorization_servers": ["https://as1.example.com", "https://as2.example.net"],
                 "bearer_methods_supported": ["header", "body"],
                 "scopes_supported": ["profile", "email", "phone"],
                 "resource_documentation": "https://resource.example.com/resource_documentation.html"}
                """)
        }
        let base = "https://resource.example.com"
        on(.GET, "\(base)/.well-known/oauth-protected-resource", document(base))
        on(.GET, "\(base)/.well-known/oauth-protected-resource/resource1", document("\(base)/resource1"))
        on(.GET, "\(base)/.well-known/oauth-protected-resource/other", .status(404))
        for (path, expected) in [("", base), ("/resource1", "\(base)/resource1"), ("/other", base)] {
            let resource = try await OAuth.ProtectedResource.discover(url(base + path), service: mock.service)
            #expect(resource.resource.absoluteString == expected)
            #expect(
                resource.authorizationServers.map(\.absoluteString)
                    == ["https://as1.example.com", "https://as2.example.net"])
            #expect(resource.scopes == ["profile", "email", "phone"])
        }
    }

    @Test("RFC 9728, 5.1: the challenge of a resource names its metadata")
    func challengeWithMetadata() async throws {
        let location = "https://resource.example.com/.well-known/oauth-protected-resource"
        on(
            .GET, "https://resource.example.com/api",
            .status(401).header(
                "WWW-Authenticate", #"Bearer error="invalid_token", scope="a b", resource_metadata="\#(location)""#))
        on(.GET, location, response(#"{"resource": "https://resource.example.com"}"#))
        let refusal = try await mock.service.GET("https://resource.example.com/api").empty().response
        let challenge = try #require(OAuth.Challenge.all(in: refusal).first)
        #expect(challenge.scheme == "bearer")
        #expect(challenge.error == "invalid_token")
        #expect(challenge.scopes == ["a", "b"])
        #expect(challenge.resourceMetadata == location)
        let resource = try await OAuth.ProtectedResource.discover(
            url("https://resource.example.com/api"), challenge: challenge, service: mock.service)
        #expect(resource.resource.absoluteString == "https://resource.example.com")
        #expect(resource.authorizationServers == [])
    }

    // MARK: RFC 7009, 7591

    @Test("RFC 7009, 2.1: a refresh token is revoked")
    func revocation() async throws {
        on(.POST, "https://server.example.com/revoke", .status(200))
        try await oauth(confidential).revoke(OAuth.Tokens(.bearer("a"), refreshToken: "45ghiukldjahdnhzdauz"))
        let request = try #require(mock.receivedRequests.first)
        #expect(request.form["token"] == "45ghiukldjahdnhzdauz")
        #expect(request.form["token_type_hint"] == "refresh_token")
        #expect(request.headers[.authorization] == "Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW")
    }

    @Test("RFC 7591, 3: a registration, and its refusal")
    func registration() async throws {
        on(
            .POST, "https://server.example.com/register",
            response(
                """
                {"client_id": "s6BhdRkqt3", "client_secret": "cf136dc3c1fc93f31185e5885805d",
                 "client_id_issued_at": 2893256800, "client_secret_expires_at": 2893276800,
                 "redirect_uris": ["https://client.example.org/callback", "https://client.example.org/callback2"],
                 "grant_types": ["authorization_code", "refresh_token"], "client_name": "My Example Client",
                 "token_endpoint_auth_method": "client_secret_basic",
                 "jwks_uri": "https://client.example.org/my_public_keys.jwks"}
                """, status: 201),
            response(
                """
                {"error": "invalid_redirect_uri",
                 "error_description": "The redirection URI http://sketchy.example.com is not allowed"}
                """, status: 400))
        var registration = OAuth.Registration(
            name: "My Example Client",
            redirects: [
                try url("https://client.example.org/callback"), try url("https://client.example.org/callback2"),
            ])
        registration.authentication = .basic
        registration.members = ["logo_uri": .string("https://client.example.org/logo.png")]
        let metadata = try await oauth(confidential).metadata()
        let registered = try await OAuth.register(
            registration, metadata: metadata, accessToken: "ey23f2.adfj230.af32-developer321", service: mock.service)
        #expect(registered.id == "s6BhdRkqt3")
        #expect(registered.secret == "cf136dc3c1fc93f31185e5885805d")
        #expect(registered.secretExpires == Date(timeIntervalSince1970: 2_893_276_800))
        let stored = try JSONDecoder().decode(OAuth.RegisteredClient.self, from: JSONEncoder().encode(registered))
        #expect(stored == registered)
        let request = try #require(mock.receivedRequests.first)
        #expect(request.headers[.authorization] == "Bearer ey23f2.adfj230.af32-developer321")
        let document = try request.json()
        #expect(document["client_name"]?.string == "My Example Client")
        #expect(document["logo_uri"]?.string == "https://client.example.org/logo.png")
        #expect(document["token_endpoint_auth_method"]?.string == "client_secret_basic")
        let error = try await #require(throws: WebServiceError.self) {
            try await OAuth.register(registration, metadata: metadata, service: mock.service)
        }
        #expect(error.authorizationFailure?.code == "invalid_redirect_uri")
        #expect(error.authorizationFailure?.detail?.contains("sketchy") == true)
    }
}
