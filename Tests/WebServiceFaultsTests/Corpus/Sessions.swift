import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceStorage

extension CorpusClient {
    static let sessions = [
        nervousSession, waitingTokens, mailAfterLogOut, sharedCache, revivedSession, clearedNotes, forwardedToken,
    ]

    // Source: sayinmehmet47/kitapKurdu 371.
    // Any failure that is no rejection: a refresh without a connection logs the user out.
    static let nervousSession = CorpusClient(
        name: "nervous session", kind: "log-out after a lost refresh", source: "sayinmehmet47/kitapKurdu 371",
        plans: .at("POST /token#1", Faults.all.filter { !["401", "403", "stalled", "stalledAfter"].contains($0) })
    ) { explore in
        await explore { mock in
            TokenServer(mock)
        } client: { mock in
            let service = mock.service
            let session = NervousSession(service: service)
            service.interceptors = [
                Authentication(
                    TokenSource({ await session.credential }) { _ in try await session.renew() })
            ]
            _ = try? await service.GET("/me").json().value
            return await session.state
        } check: { run in
            guard let state = run.output, !state.isLoggedIn else { return }
            try run.require(
                state.status == 401 || state.status == 403, "the client logs out, but no token was rejected")
        }
    }

    // Source: Flyrell/axios-auth-refresh 14.
    // Any failure: the continuation of the second request is never resumed.
    static let waitingTokens = CorpusClient(
        name: "waiting tokens", kind: "requests that wait for a failed refresh forever",
        source: "Flyrell/axios-auth-refresh 14",
        plans: .at("POST /token#1", Faults.all + Faults.cancellations + ["duplicated"])
    ) { explore in
        await explore { mock in
            TokenServer(mock)
        } client: { mock in
            let service = mock.service
            let gate = TokenGate(service: service)
            async let me = try? gate.get("/me")
            async let again = try? gate.get("/me")
            return await [me, again]
        } check: { run in
            for user in run.output ?? [] { try run.require(user ?? "Ann" == "Ann", "another user") }
        }
    }

    // Source: Infomaniak/ios-kMail 809.
    // 503: the pause before the retry outlasts the log-out, and the retry has the old token.
    static let mailAfterLogOut = CorpusClient(
        name: "mail after log-out", kind: "request with the old token after log-out",
        source: "Infomaniak/ios-kMail 809",
        plans: .once("GET /mail#1", Faults.all + ["overtaken"])
    ) { explore in
        await explore { mock in
            let late = Shared((isRevoked: false, count: 0))
            mock.on(.POST, "/logout") { _ in
                late.update { $0.isRevoked = true }
                return .status(204)
            }
            mock.on(.GET, "/mail") { request in
                late.update { if $0.isRevoked && request.headers["Authorization"] != nil { $0.count += 1 } }
                return .json(["hello"])
            }
            return late
        } client: { mock in
            let box = MailBox(service: mock.service)
            let loading = Task { await box.load(token: "ann") }
            try await mock.service.clock.sleep(for: .seconds(1))
            try await box.logOut(token: "ann")
            await loading.value
        } check: { run in
            try run.require(run.model.value.count == 0, "a request has the token of the user who has logged out")
        }
    }

    // Source: decred/politeiagui 1002 (and iHub-PTI/boldo-mobile 47).
    // Any failure: the cache, which has one account for the device, is emptied only after a successful log-out.
    static let sharedCache = CorpusClient(
        name: "shared cache", kind: "cache shared by accounts", source: "decred/politeiagui 1002",
        plans: .at("POST /logout#1", Faults.failures)
    ) { explore in
        await explore { mock in
            mock.on(.POST, "/logout", .status(204))
            mock.on(.GET, "/inbox") { request in
                let user = request.headers["Authorization"] ?? "nobody"
                return .text("mail of \(user)").header(.cacheControl, "private, max-age=600")
            }
        } client: { mock in
            let reader = InboxReader(service: mock.service)
            await reader.logIn("Ann")
            _ = try await reader.inbox()
            try? await reader.logOut()
            try Task.checkCancellation()
            await reader.logIn("Bob")
            return try await reader.inbox()
        } check: { run in
            if let inbox = run.output { try run.require(inbox == "mail of Bob", "Bob reads Ann's mail") }
        }
    }

    // Source: CERTUNLP/ngen 275.
    // slow: the refreshed token arrives after the log-out, and is stored nevertheless.
    static let revivedSession = CorpusClient(
        name: "revived session", kind: "refresh that completes after log-out", source: "CERTUNLP/ngen 275",
        plans: .at("POST /token#1", ["slow", "overtaken"])
    ) { explore in
        await explore { mock in
            TokenServer(mock)
        } client: { mock in
            let session = await RevivedSession(service: mock.service)
            let refresh = Task { try await session.refresh() }
            try await mock.service.clock.sleep(for: .milliseconds(500))
            await session.logOut()
            _ = await refresh.result
            return await session.isLoggedIn
        } check: { run in
            if let isLoggedIn = run.output { try run.require(!isLoggedIn, "logged in again after the log-out") }
        }
    }

    // Source: teobaranga/monica 127 (and peviitor-ro/search-engine 1189).
    // 401 and any other failure: an error counts as an empty list, so all local notes are removed.
    static let clearedNotes = CorpusClient(
        name: "cleared notes", kind: "401 handled as an empty list", source: "teobaranga/monica 127",
        plans: .at("GET /notes#1", Faults.all)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/notes", .json(["milk", "bread"]))
        } client: { mock in
            let notes = NoteStore(service: mock.service)
            await notes.synchronize()
            try Task.checkCancellation()
            return await notes.local
        } check: { run in
            if let local = run.output { try run.require(local == ["milk", "bread"], "the local notes are lost") }
        }
    }

    // Source: adobe/fetch 447.
    // redirected: the client follows the redirect automatically, with the token, to any host.
    static let forwardedToken = CorpusClient(
        name: "forwarded token", kind: "token sent to the origin of a redirect", source: "adobe/fetch 447",
        plans: .at("GET /export#1", ["redirected"])
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/export", .text("a,b"))
        } client: { mock in
            try await Exporter(service: mock.service).export("/export", token: "canary")
        } check: { run in
            for request in run.requests where request.request.url?.host != "mock.test" {
                try run.require(request.headers["Authorization"] == nil, "another host receives the token")
            }
        }
    }
}

/// A server with access tokens, which expire, and refresh tokens, which are valid once.
final class TokenServer: Sendable {
    struct State: Sendable {
        var number = 1
        var rejections = 0
    }

    let state = Shared(State())

    init(_ mock: MockService) {
        mock.on(.POST, "/token") { [state] request in
            let token = request.formItems.first { $0.name == "refresh_token" }?.value
            return state.update { state in
                guard token == "refresh \(state.number)" else {
                    state.rejections += 1
                    return .status(401)
                }
                state.number += 1
                return .json(["access": "access \(state.number)", "refresh": "refresh \(state.number)"])
            }
        }
        mock.on(.GET, "/{page}") { [state] request in
            request.headers["Authorization"] == "Bearer access \(state.value.number)" && state.value.number > 1
                ? .json(["name": "Ann"]) : .status(401)
        }
    }
}

/// The tokens of a ``TokenServer``.
struct Tokens: Codable, Sendable {
    var access = "access 1"
    var refresh = "refresh 1"
}

private actor NervousSession {
    private(set) var state = (isLoggedIn: true, status: Int?.none)
    private var tokens = Tokens()
    private let service: WebService

    init(service: WebService) { self.service = service }

    var credential: Credential? { state.isLoggedIn ? .bearer(tokens.access) : nil }

    func renew() async throws -> Credential {
        do {
            tokens = try await service.POST("/token").setFormParameters(["refresh_token": tokens.refresh])
                .decode(Tokens.self).value
            return .bearer(tokens.access)
        } catch {
            if !Task.isCancelled { state = (false, (error as? WebServiceError)?.status) }
            throw error
        }
    }
}

private actor TokenGate {
    private var access: String?
    private var isRefreshing = false
    private var waiting: [CheckedContinuation<String, Never>] = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func get(_ path: String) async throws -> String {
        let token = try await token()
        return try await service.GET(path).setHeaderValue("Bearer \(token)", forName: .authorization).json()
            .value["name"]?.string ?? ""
    }

    private func token() async throws -> String {
        if let access { return access }
        if isRefreshing { return await withCheckedContinuation { waiting.append($0) } }
        isRefreshing = true
        let tokens = try await service.POST("/token").setFormParameters(["refresh_token": "refresh 1"])
            .decode(Tokens.self).value
        isRefreshing = false
        access = tokens.access
        waiting.forEach { $0.resume(returning: tokens.access) }
        waiting = []
        return tokens.access
    }
}

private actor MailBox {
    private(set) var mail: [String] = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load(token: String) async {
        for attempt in 1...4 {
            do {
                mail = try await service.GET("/mail").setHeaderValue("Bearer \(token)", forName: .authorization)
                    .decode([String].self).value
                return
            } catch {
                try? await service.clock.sleep(for: .seconds(5 * attempt))
            }
        }
    }

    func logOut(token: String) async throws {
        mail = []
        try await service.POST("/logout").setHeaderValue("Bearer \(token)", forName: .authorization).empty().value
    }
}

private actor InboxReader {
    private let user = Shared("nobody")
    private let cache: ResponseCache
    private let service: WebService

    init(service: WebService) {
        self.service = service
        cache = ResponseCache(storage: MemoryStorage(), account: { "this device" })
        let user = user
        service.interceptors = [
            .closure { request, next in
                var request = request
                request.headers[.authorization] = user.value
                return try await next(request)
            },
            cache,
        ]
    }

    func logIn(_ name: String) { user.value = name }

    func inbox() async throws -> String {
        let text = try await service.GET("/inbox").string().value
        _ = await cache.finishStoring()
        return text
    }

    func logOut() async throws {
        try await service.POST("/logout").empty().value
        try await cache.removeAll()
    }
}

@MainActor private final class RevivedSession {
    private var tokens: Tokens? = Tokens()
    private let service: WebService

    init(service: WebService) { self.service = service }

    var isLoggedIn: Bool { tokens != nil }

    func refresh() async throws {
        guard let refresh = tokens?.refresh else { return }
        tokens = try await service.POST("/token").setFormParameters(["refresh_token": refresh])
            .decode(Tokens.self).value
    }

    func logOut() { tokens = nil }
}

private actor NoteStore {
    private(set) var local: Set<String> = ["milk", "bread"]
    private let service: WebService

    init(service: WebService) { self.service = service }

    func synchronize() async {
        let remote = await load()
        guard !Task.isCancelled else { return }
        local.formIntersection(remote)
        local.formUnion(remote)
    }

    private func load() async -> [String] {
        (try? await service.GET("/notes").decode([String].self).value) ?? []
    }
}

private struct Exporter: Sendable {
    let service: WebService

    func export(_ path: String, token: String) async throws -> String {
        var task = service.GET(path)
        for _ in 1...5 {
            let response = try await task.configure { $0.options.redirectPolicy = .manual }
                .setHeaderValue("Bearer \(token)", forName: .authorization).data().validateNothing().response
            guard (300...399).contains(response.status), let location = response.header(.location) else {
                return String(decoding: response.data, as: UTF8.self)
            }
            let url = URL(string: location, relativeTo: response.url)?.absoluteString ?? location
            task = service.GET(url)
        }
        return ""
    }
}
