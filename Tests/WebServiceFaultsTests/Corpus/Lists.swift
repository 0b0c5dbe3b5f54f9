import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServicePagination

extension CorpusClient {
    static let lists = [libraryUpdate, eventExport, instantSearch, stuckFeed]

    // Source: zotero/zotero-ios 760 (and standardnotes/snjs 602).
    // Any failure of an item: the version is stored already, so the next update no longer lists it.
    static let libraryUpdate = CorpusClient(
        name: "library update", kind: "sync position stored before the items", source: "zotero/zotero-ios 760",
        plans: .at("GET /items/a#1", Faults.all) + .at("GET /items/b#1", Faults.all)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/changes") { request in
                let version = request.queryItems.first { $0.name == "since" }.flatMap { Int($0.value) } ?? 0
                return .json(ChangeList(version: 2, keys: version < 2 ? ["a", "b"] : []))
            }
            mock.on(.GET, "/items/{key}") { request in .json(["title": request.pathParameters["key"] ?? ""]) }
        } client: { mock in
            let library = Library(service: mock.service)
            for attempt in 1...3 {
                do {
                    try await library.update()
                    break
                } catch  where attempt < 3 && !Task.isCancelled {
                    try await mock.service.clock.sleep(for: .seconds(30))
                }
            }
            return await library.titles
        } check: { run in
            if let titles = run.output { try run.require(titles == ["a": "a", "b": "b"], "an item is missing") }
        }
    }

    // Source: webhookdb/webhookdb 570.
    // Any failure of page 2 or 3: the export starts at the first page again, whose rows are written already.
    static let eventExport = CorpusClient(
        name: "event export", kind: "pagination cursor reused after an error", source: "webhookdb/webhookdb 570",
        plans: .once("GET /events#2", Faults.all) + .once("GET /events#3", Faults.all)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/events") { request in
                let cursor = request.queryItems.first { $0.name == "cursor" }?.value ?? "0"
                let next = ["0": "1", "1": "2"][cursor]
                return .json(EventPage(events: ["\(cursor)a", "\(cursor)b"], next: next))
            }
        } client: { mock in
            try await EventExport(service: mock.service).run()
        } check: { run in
            guard let rows = run.output else { return }
            try run.require(Set(rows).count == rows.count, "a row was written twice")
            try run.require(Set(rows).count == 6, "a row is missing")
        }
    }

    // Source: mozilla/sumo 707.
    // slow: the results of the first text arrive last, and replace those of the current one.
    static let instantSearch = CorpusClient(
        name: "instant search", kind: "older response replaces a newer one", source: "mozilla/sumo 707",
        plans: .once("GET /search#1", ["slow", "overtaken"])
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/search") { request in
                .json([request.queryItems.first { $0.name == "q" }?.value ?? ""])
            }
        } client: { mock in
            let model = await SearchModel(service: mock.service)
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

    // Source: Calciumdibromid/CaBr2 230.
    // Any failure: `isLoading` remains set, so the list never loads again.
    static let stuckFeed = CorpusClient(
        name: "stuck feed", kind: "flag not reset after an error", source: "Calciumdibromid/CaBr2 230",
        plans: .at("GET /feed#1", Faults.all + Faults.cancellations)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/feed", .json(["one", "two"]))
        } client: { mock in
            let feed = await FeedModel(service: mock.service)
            try? await feed.load()
            return await feed.isLoading
        } check: { run in
            if let isLoading = run.output { try run.require(!isLoading, "the feed can never be loaded again") }
        }
    }
}

private struct ChangeList: Codable, Sendable {
    var version: Int
    var keys: [String]
}

private actor Library {
    private(set) var titles: [String: String] = [:]
    private var version = 0
    private let service: WebService

    init(service: WebService) { self.service = service }

    func update() async throws {
        let changes = try await service.GET("/changes").setQueryParameters(["since": version])
            .decode(ChangeList.self).value
        version = changes.version
        for key in changes.keys {
            titles[key] = try await service.GET("/items/\(key)").json().value["title"]?.string
        }
    }
}

private struct EventPage: Codable, Sendable {
    var events: [String]
    var next: String?
}

private actor EventExport {
    private var rows: [String] = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func run() async throws -> [String] {
        let service = service
        let pages = Paginator<String, String>.cursor { cursor in
            service.GET("/events").setQueryParameters(["cursor": cursor]).decode(EventPage.self).map {
                Page($0.events, next: $0.next)
            }
        }
        var attempt = 1
        while true {
            do {
                while let page = try await pages.moveNext() { rows += page.items }
                return rows
            } catch  where attempt < 4 && !Task.isCancelled {
                attempt += 1
                try await service.clock.sleep(for: .seconds(10))
                pages.reset()
            }
        }
    }
}

@MainActor private final class SearchModel {
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
                results = (try? await search.decode([String].self).value) ?? []
            })
    }

    func finish() async {
        for task in tasks { await task.value }
    }
}

@MainActor private final class FeedModel {
    private(set) var items: [String] = []
    private(set) var isLoading = false
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load() async throws {
        guard !isLoading else { return }
        isLoading = true
        items = try await service.GET("/feed").decode([String].self).value
        isLoading = false
    }
}
