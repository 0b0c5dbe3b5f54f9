import Foundation
import SystemCrypto
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import WebServiceOAuth

/// An honest authorization server and a resource over a mock session. Tests replace single
/// responses.
final class FakeServer: Sendable {
    enum Place: String, Sendable, CaseIterable {
        case authorizationServerMetadata, protectedResourceMetadata, token, deviceAuthorization, deviceToken
        case registration, revocation, resource
    }

    typealias Responder = @Sendable (ReceivedRequest) throws -> MockResponse

    private struct State {
        var replacements: [Place: Responder] = [:]
        /// The challenges of the codes that were issued.
        var challenges: [String: String] = [:]
        var issued = 0
    }

    static let issuer = "https://login.example"
    static let api = "https://api.example"
    /// Every value that the server issues and that must not be disclosed begins with this text.
    static let mark = "s3cr3t"

    let clock = TestClock()
    let mock: MockService
    private let state = Mutex(State())

    init() {
        mock = MockService(baseURLString: Self.api, clock: clock)
        mock.on(.any) { [weak self] request in try self?.response(to: request) ?? .status(500) }
    }

    var issuer: URL { get throws { try url(Self.issuer) } }

    func url(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw WebServiceError(.invalidURL, "not a URL") }
        return url
    }

    /// Replaces the response at a place.
    func replace(_ place: Place, _ responder: @escaping Responder) {
        state.withLock { $0.replacements[place] = responder }
    }

    func replace(_ place: Place, _ response: MockResponse) { replace(place) { _ in response } }

    /// Returns the requests to a path of the server.
    func requests(_ path: String) -> [ReceivedRequest] { mock.receivedRequests.filter { $0.path == path } }

    func oauth(
        client: OAuth.Client = .public(id: "client"), resources: [URL] = [], dpop: DPoP? = nil
    ) throws -> OAuth {
        OAuth(issuer: try issuer, client: client, resources: resources, dpop: dpop, service: mock.service)
    }

    // MARK: - Documents

    static let metadata: [String: JSONValue] = [
        "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
        "token_endpoint": .string("\(issuer)/token"),
        "device_authorization_endpoint": .string("\(issuer)/device"),
        "revocation_endpoint": .string("\(issuer)/revoke"),
        "registration_endpoint": .string("\(issuer)/register"),
        "response_types_supported": .array([.string("code")]),
        "code_challenge_methods_supported": .array([.string("S256")]),
        "authorization_response_iss_parameter_supported": .bool(true),
    ]

    /// Returns the metadata with changed members; `nil` removes one.
    static func metadata(_ changes: [String: JSONValue?]) -> MockResponse {
        .json(
            .object(metadata.merging(changes.compactMapValues(\.self)) { $1 }.filter { changes[$0.key] != .some(nil) }))
    }

    func tokens(_ changes: [String: JSONValue?] = [:], type: String = "Bearer") -> MockResponse {
        let number = state.withLock { state in
            state.issued += 1
            return state.issued
        }
        var members: [String: JSONValue] = [
            "access_token": .string("\(Self.mark)-access-\(number)"), "token_type": .string(type),
            "expires_in": JSONValue(3600), "refresh_token": .string("\(Self.mark)-refresh-\(number)"),
        ]
        for (name, value) in changes { members[name] = value }
        return .json(.object(members))
    }

    // MARK: - Requests

    private func response(to request: ReceivedRequest) throws -> MockResponse {
        let form = Dictionary(request.formItems.map { ($0.name, $0.value) }) { first, _ in first }
        let place: Place? =
            switch request.path {
            case "/.well-known/oauth-authorization-server": .authorizationServerMetadata
            case let path where path.hasPrefix("/.well-known/oauth-protected-resource"): .protectedResourceMetadata
            case "/token" where form["grant_type"]?.hasSuffix("device_code") == true: .deviceToken
            case "/token": .token
            case "/device": .deviceAuthorization
            case "/register": .registration
            case "/revoke": .revocation
            case "/mcp", "/me": .resource
            default: nil
            }
        guard let place else { return .status(404) }
        if let replacement = state.withLock({ $0.replacements[place] }) { return try replacement(request) }
        return honest(place, request, form)
    }

    func honest(_ place: Place, _ request: ReceivedRequest) -> MockResponse {
        honest(place, request, Dictionary(request.formItems.map { ($0.name, $0.value) }) { first, _ in first })
    }

    private func honest(_ place: Place, _ request: ReceivedRequest, _ form: [String: String]) -> MockResponse {
        switch place {
        case .authorizationServerMetadata: return .json(.object(Self.metadata))
        case .protectedResourceMetadata:
            return .json(
                .object([
                    "resource": .string("\(Self.api)/mcp"), "authorization_servers": .array([.string(Self.issuer)]),
                ]))
        case .token:
            if form["grant_type"] == "authorization_code" {
                let challenge = form["code"].flatMap { code in
                    state.withLock { $0.challenges.removeValue(forKey: code) }
                }
                guard let challenge, OAuth.challenge(for: form["code_verifier"] ?? "") == challenge else {
                    return .json(["error": "invalid_grant"], status: 400)
                }
            }
            return tokens(type: request.headers["DPoP"] == nil ? "Bearer" : "DPoP")
        case .deviceToken:
            guard form["device_code"] == "\(Self.mark)-device" else {
                return .json(["error": "invalid_grant"], status: 400)
            }
            return tokens(type: request.headers["DPoP"] == nil ? "Bearer" : "DPoP")
        case .deviceAuthorization:
            return .json([
                "device_code": "\(Self.mark)-device", "user_code": "WDJB-MJHT",
                "verification_uri": "\(Self.issuer)/activate", "expires_in": 1800, "interval": 5,
            ])
        case .registration:
            return .json(["client_id": "registered", "client_secret": "\(Self.mark)-client"], status: 201)
        case .revocation: return .status(200)
        case .resource:
            guard request.headers[.authorization]?.contains(Self.mark) == true else { return .status(401) }
            return .json(["name": "user"])
        }
    }

    // MARK: - The browser

    /// Returns the callback of a user who agrees, with changed parameters; `nil` removes one.
    func callback(to url: URL, _ changes: [String: String?] = [:]) throws -> URL {
        let items = ReceivedRequest(url).queryItems
        func item(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
        let code = "\(Self.mark)-code-\(UUID().uuidString)"
        state.withLock { $0.challenges[code] = item("code_challenge") }
        var parameters: [String: String] = ["code": code, "state": item("state"), "iss": Self.issuer]
        for (name, value) in changes { parameters[name] = value }
        var request = Request(.GET, url: Self.issuer)
        request.queryParameters = Parameters(parameters)
        let query = try request.urlRequest().url?.query(percentEncoded: true) ?? ""
        return try self.url("\(item("redirect_uri"))?\(query)")
    }
}

extension ReceivedRequest {
    /// A GET request for a URL.
    fileprivate init(_ url: URL) {
        let target = url.absoluteString.utf8.firstRange(of: "?".utf8).map { url.absoluteString[$0.lowerBound...] } ?? ""
        self.init(head: RequestHead(method: .GET, target: "/" + target, headers: [:]), body: Data())
    }

    /// The parameters of the form.
    var form: [String: String] { Dictionary(formItems.map { ($0.name, $0.value) }) { first, _ in first } }
}
