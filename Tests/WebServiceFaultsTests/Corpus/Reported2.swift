import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

extension CorpusClient {
    // Source: Ivan-Malinovski/calino 163.
    // lost: the change was stored with a new ETag, but the retry has the old one, so 412 for the own change.
    static let calendarEvent = CorpusClient(
        name: "calendar event", kind: "stale ETag after a failed PUT", source: "Ivan-Malinovski/calino 163",
        author: .reader,
        plans: .once("PUT /events/5#1", ["lost", "cut", "stalledAfter", "duplicated"])
    ) { explore in
        await explore { mock in
            let version = Shared(1)
            mock.on(.GET, "/events/5") { _ in .json(["title": "Standup"]).header(.eTag, "\"\(version.value)\"") }
            mock.on(.PUT, "/events/5") { request in
                version.update { version in
                    guard request.headers["If-Match"] == "\"\(version)\"" else { return .status(412) }
                    version += 1
                    return .json(["title": "Review"]).header(.eTag, "\"\(version)\"")
                }
            }
            return version
        } client: { mock in
            let calendar = CalendarStore(service: mock.service)
            try await calendar.load()
            try await calendar.rename(to: "Review")
        } check: { run in
            let isConflict = (run.error as? WebServiceError)?.status == 412
            try run.require(!isConflict, "the client takes its own change for a conflict")
        }
    }

    // Source: apache/pulsar 7683.
    // Any failure without an effect: the position is stored before the response, so the retry sends nothing.
    static let acknowledgement = CorpusClient(
        name: "acknowledgement", kind: "state saved before the response", source: "apache/pulsar 7683",
        author: .reader,
        plans: .at("POST /subscriptions/1/ack#1", Faults.before + Faults.refusals)
    ) { explore in
        await explore { mock in
            let acknowledged = Shared(0)
            mock.on(.POST, "/subscriptions/1/ack") { request in
                let id = try request.json()["id"]?.int ?? 0
                acknowledged.update { $0 = max($0, id) }
                return .status(204)
            }
            return acknowledged
        } client: { mock in
            let subscription = Subscription(service: mock.service)
            for attempt in 1... {
                do {
                    try await subscription.acknowledge(upTo: 10)
                    break
                } catch  where attempt < 3 && !Task.isCancelled {
                    try await mock.service.clock.sleep(for: .seconds(5))
                }
            }
        } check: { run in
            if run.output != nil { try run.require(run.model.value == 10, "the messages are never acknowledged") }
        }
    }

    // Source: transloadit/uppy 121.
    // refused: the first failure cancels the group, so the other photos are neither stored nor reported.
    static let photoBatch = CorpusClient(
        name: "photo batch", kind: "one failure drops the rest of a batch", source: "transloadit/uppy 121",
        author: .reader,
        plans: .at("PUT /photos/a#1", Faults.quick) + .at("PUT /photos/b#1", Faults.quick)
    ) { explore in
        await explore { mock in
            mock.on(.PUT, "/photos/{name}", .status(201))
        } client: { mock in
            let summary = await PhotoUploader(service: mock.service).upload(["a", "b", "c"])
            try Task.checkCancellation()
            return summary
        } check: { run in
            guard let summary = run.output else { return }
            try run.require(
                Set(summary.stored + summary.failed) == ["a", "b", "c"], "a photo is neither stored nor reported")
        }
    }

    // Source: bucketeer-io/bucketeer 2455.
    // 401, lasting: the refresh succeeds, the request is refused again, and so on without end.
    static let projectList = CorpusClient(
        name: "project list", kind: "endless refresh", source: "bucketeer-io/bucketeer 2455", author: .reader,
        plans: .lasting("GET /projects#1", ["401"])
    ) { explore in
        await explore { mock in
            mock.on(.POST, "/token", .json(["access": "new"]))
            mock.on(.GET, "/projects", .json(["one", "two"]))
        } client: { mock in
            try await ProjectClient(service: mock.service).get("/projects")
        } check: { run in
            if let projects = run.output { try run.require(projects == ["one", "two"], "projects are missing") }
        }
    }

    // Source: chrisdoc/hevy-mcp 384 and CleverCloud/clever-client.js 226.
    // Any failure: the failed task stays in the property, so no later call sends a request.
    static let templateCatalog = CorpusClient(
        name: "template catalog", kind: "failed request remembered forever", source: "chrisdoc/hevy-mcp 384",
        author: .reader,
        plans: .at("GET /templates#1", Faults.all)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/templates", .json(["squat", "row"]))
        } client: { mock in
            let catalog = TemplateCatalog(service: mock.service)
            if let names = try? await catalog.names() { return names }
            try await mock.service.clock.sleep(for: .seconds(60))
            return try await catalog.names()
        } check: { run in
            if let error = run.error, !(error is CancellationError) {
                try run.require(
                    run.requests.count { $0.request.path == "/templates" } >= 2,
                    "the second call fails without a request")
            }
        }
    }
}

private actor CalendarStore {
    private var tag: String?
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load() async throws {
        let task = service.GET("/events/5").json()
        _ = try await task.value
        tag = try await task.response.header(.eTag)
    }

    func rename(to title: String) async throws {
        do {
            try await put(title)
        } catch let error as URLError where error.isConnectionFailure {
            try await service.clock.sleep(for: .seconds(1))
            try await put(title)
        }
    }

    private func put(_ title: String) async throws {
        let task = service.PUT("/events/5").setJSON(["title": title]).setHeaderValue(tag, forName: "If-Match").json()
        _ = try await task.value
        tag = try await task.response.header(.eTag)
    }
}

private actor Subscription {
    private var lastAcknowledged = 0
    private let service: WebService

    init(service: WebService) { self.service = service }

    func acknowledge(upTo id: Int) async throws {
        guard id > lastAcknowledged else { return }  // acknowledged already
        lastAcknowledged = id
        try await service.POST("/subscriptions/1/ack").setJSON(["id": id])
            .setHeaderValue("ack-\(id)", forName: "Idempotency-Key").empty().value
    }
}

private struct PhotoUploader: Sendable {
    struct Summary: Sendable {
        var stored: [String] = []
        var failed: [String] = []
    }

    struct UploadError: Error { var name: String }

    let service: WebService

    func upload(_ names: [String]) async -> Summary {
        var summary = Summary()
        do {
            try await withThrowingTaskGroup(of: String.self) { group in
                for name in names {
                    group.addTask {
                        do {
                            try await service.PUT("/photos/\(name)").setBody(Data(name.utf8)).empty().value
                            return name
                        } catch {
                            throw UploadError(name: name)
                        }
                    }
                }
                for try await name in group { summary.stored.append(name) }
            }
        } catch {
            summary.failed = [(error as? UploadError)?.name ?? "?"]
        }
        return summary
    }
}

private actor ProjectClient {
    private var access = "none"
    private let service: WebService

    init(service: WebService) { self.service = service }

    func get(_ path: String) async throws -> [String] {
        do {
            return try await service.GET(path).setHeaderValue("Bearer \(access)", forName: .authorization)
                .decode([String].self).value
        } catch let error as WebServiceError where error.status == 401 {
            access = try await service.POST("/token").json().value["access"]?.string ?? ""
            return try await get(path)
        }
    }
}

private actor TemplateCatalog {
    private var loading: Task<[String], any Error>?
    private let service: WebService

    init(service: WebService) { self.service = service }

    func names() async throws -> [String] {
        if let loading { return try await loading.value }
        let task = Task { [service] in try await service.GET("/templates").decode([String].self).value }
        loading = task
        return try await task.value
    }
}
