import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServicePagination
import WebServiceStorage

extension CorpusClient {
    static let correctReads = [
        boundedPoll, sharedRefresh, steadyPages, newestSearch, resettingFeed, separateCaches, renewedCatalog,
    ]

    static let boundedPoll = CorpusClient(name: "bounded poll", kind: "poll loop with a limit") { explore in
        await explore { mock in
            mock.on(
                .GET, "/jobs/1",
                [
                    .json(["status": "queued"]), .json(["status": "running"]), .json(["status": "done"]),
                ])
        } client: { mock in
            let service = mock.service
            for _ in 1...12 {
                do {
                    let status = try await service.GET("/jobs/1").json().value["status"]?.string
                    if status == "done" { return status }
                } catch let error as WebServiceError where [401, 403, 404, 409].contains(error.status) {
                    throw error
                } catch {
                    try Task.checkCancellation()
                }
                try await service.clock.sleep(for: .seconds(5))
            }
            throw URLError(.timedOut)
        } check: { run in
            if let status = run.output { try run.require(status == "done", "not done") }
        }
    }

    static let sharedRefresh = CorpusClient(name: "shared refresh", kind: "one refresh, log-out after a rejection") {
        explore in
        await explore { mock in
            TokenServer(mock)
        } client: { mock in
            let service = mock.service
            let session = CalmSession(service: service)
            service.interceptors = [
                .retry(), Authentication(TokenSource({ await session.credential }) { _ in try await session.renew() }),
            ]
            async let me = try? service.GET("/me").json().value
            async let feed = try? service.GET("/feed").json().value
            _ = await [me, feed]
            return await session.state
        } check: { run in
            guard let state = run.output, !state.isLoggedIn else { return }
            try run.require(state.status == 401 || state.status == 403, "logged out without a rejection")
        }
    }

    static let steadyPages = CorpusClient(name: "steady pages", kind: "position unchanged after an error") { explore in
        await explore { mock in
            mock.on(.GET, "/beers") { request in
                let page = request.queryItems.first { $0.name == "page" }.flatMap { Int($0.value) } ?? 1
                return .json(page <= 3 ? ["\(page)a", "\(page)b"] : [])
            }
        } client: { mock in
            let service = mock.service
            let pages = Paginator.pageNumber(itemsPerPage: 2) { page, size in
                service.GET("/beers").setQueryParameters(["page": page, "size": size]).decode([String].self)
            }
            var beers: [String] = []
            var failures = 0
            while true {
                do {
                    guard let page = try await pages.moveNext() else { return beers }
                    beers += page.items
                } catch  where failures < 4 && !Task.isCancelled {
                    failures += 1
                    try await service.clock.sleep(for: .seconds(failures))
                }
            }
        } check: { run in
            if let beers = run.output { try run.require(beers == ["1a", "1b", "2a", "2b", "3a", "3b"], "wrong beers") }
        }
    }

    static let newestSearch = CorpusClient(name: "newest search", kind: "only the newest response counts") { explore in
        await explore { mock in
            mock.on(.GET, "/search") { request in .json([request.queryItems.first { $0.name == "q" }?.value ?? ""]) }
        } client: { mock in
            let model = await NewestSearch(service: mock.service)
            await model.type("fire")
            try await mock.service.clock.sleep(for: .milliseconds(200))
            await model.type("firefox")
            await model.finish()
            return await (model.text, model.results)
        } check: { run in
            guard let (text, results) = run.output else { return }
            try run.require(results.isEmpty || results == [text], "the results are those of another text")
        }
    }

    static let resettingFeed = CorpusClient(name: "resetting feed", kind: "flag reset in every case") { explore in
        await explore { mock in
            mock.on(.GET, "/feed", .json(["one", "two"]))
        } client: { mock in
            let feed = await ResettingFeed(service: mock.service)
            try? await feed.load()
            return await (feed.isLoading, feed.items)
        } check: { run in
            guard let (isLoading, items) = run.output else { return }
            try run.require(!isLoading, "the feed can never be loaded again")
            try run.require(items.isEmpty || items == ["one", "two"], "an incomplete feed")
        }
    }

    static let separateCaches = CorpusClient(name: "separate caches", kind: "cache for each account") { explore in
        await explore { mock in
            mock.on(.POST, "/logout", .status(204))
            mock.on(.GET, "/inbox") { request in
                let user = request.headers["Authorization"] ?? "nobody"
                return .text("mail of \(user)").header(.cacheControl, "private, max-age=600")
            }
        } client: { mock in
            let service = mock.service
            let user = Shared("Ann")
            let cache = ResponseCache(storage: MemoryStorage(), account: { user.value })
            service.interceptors = [
                .closure { request, next in
                    var request = request
                    request.headers[.authorization] = user.value
                    return try await next(request)
                },
                cache,
            ]
            _ = try await service.GET("/inbox").string().value
            _ = await cache.finishStoring()
            try? await service.POST("/logout").empty().value
            try Task.checkCancellation()
            user.value = "Bob"
            return try await service.GET("/inbox").string().value
        } check: { run in
            if let inbox = run.output { try run.require(inbox == "mail of Bob", "Bob reads Ann's mail") }
        }
    }

    static let renewedCatalog = CorpusClient(name: "renewed catalog", kind: "failed request is forgotten") { explore in
        await explore { mock in
            mock.on(.GET, "/templates", .json(["squat", "row"]))
        } client: { mock in
            let catalog = RenewedCatalog(service: mock.service)
            if let names = try? await catalog.names() { return names }
            try await mock.service.clock.sleep(for: .seconds(60))
            return try await catalog.names()
        } check: { run in
            if let error = run.error, !(error is CancellationError) {
                try run.require(
                    run.requests.count { $0.request.path == "/templates" } >= 2,
                    "the second call fails without a request")
            }
            if let names = run.output { try run.require(names == ["squat", "row"], "wrong names") }
        }
    }
}

private actor CalmSession {
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
        } catch let error as WebServiceError where [400, 401, 403].contains(error.status) {
            state = (false, error.status)
            throw error
        }
    }
}

@MainActor private final class NewestSearch {
    private(set) var text = ""
    private(set) var results: [String] = []
    private var tasks: [Task<Void, Never>] = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func type(_ text: String) {
        self.text = text
        results = []
        tasks.append(
            Task {
                let search = service.GET("/search").setQueryParameters(["q": text])
                let found = (try? await search.decode([String].self).value) ?? []
                if self.text == text { results = found }
            })
    }

    func finish() async {
        for task in tasks { await task.value }
    }
}

@MainActor private final class ResettingFeed {
    private(set) var items: [String] = []
    private(set) var isLoading = false
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load() async throws {
        guard !isLoading else { return }
        isLoading = true
        defer { isLoading = false }
        items = try await service.GET("/feed").decode([String].self).value
    }
}

private actor RenewedCatalog {
    private var loading: Task<[String], any Error>?
    private let service: WebService

    init(service: WebService) { self.service = service }

    func names() async throws -> [String] {
        let task = loading ?? Task { [service] in try await service.GET("/templates").decode([String].self).value }
        loading = task
        do {
            return try await task.value
        } catch {
            if loading == task { loading = nil }
            throw error
        }
    }
}
