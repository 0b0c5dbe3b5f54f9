import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

extension CorpusClient {
    /// The clients that need two faults to show theirs.
    static let twoFaults = [twinRefresh, orderLookup, travelBooking, settingsMirror, restartedUpload, errorReporter]

    // Source: SandeepVashishtha/Eventra 16530 and hoangdaochuz/booking 55.
    // 401 & 401: each of the two refused requests refreshes the token, although one refresh is enough.
    static let twinRefresh = CorpusClient(
        name: "twin refresh", kind: "token refresh for each refused request",
        source: "SandeepVashishtha/Eventra 16530",
        plans: .both(["GET /feed#1=401"], ["GET /me#1=401"]) + .both(["GET /me#1=401"], ["GET /feed#1=401"])
    ) { explore in
        await explore { mock in
            mock.on(.POST, "/token", .json(["access": "new"]))
            mock.on(.GET, "/me", .json(["name": "Ann"]))
            mock.on(.GET, "/feed", .json(["name": "feed"]))
        } client: { mock in
            let home = HomeClient(service: mock.service)
            async let me = try? home.get("/me")
            async let feed = try? home.get("/feed")
            _ = await [me, feed]
            return await home.refreshes
        } check: { run in
            if let refreshes = run.output { try run.require(refreshes <= 1, "the tokens are refreshed twice") }
        }
    }

    // Source: bcgov/entity 32832 and stripe/stripe-java 389.
    // lost & refused: the order exists, but the failed lookup counts as "not ordered", so a second order.
    static let orderLookup = CorpusClient(
        name: "order lookup", kind: "failed lookup taken for a missing order", source: "bcgov/entity 32832",
        plans: .both(
            (Faults.after + Faults.content).map { "POST /orders#1=\($0)" },
            Faults.all.map { "GET /orders#1=\($0)" })
    ) { explore in
        await explore { mock in
            let orders = Shared<[String]>([])
            mock.on(.POST, "/orders") { request in
                let key = request.headers["Idempotency-Key"] ?? "none"
                orders.update { if !$0.contains(key) { $0.append(key) } }
                return .json(["reference": "R7"], status: 201)
            }
            mock.on(.GET, "/orders") { _ in .json(orders.value.map { _ in "R7" }) }
            return orders
        } client: { mock in
            try await OrderDesk(service: mock.service).order("R7")
        } check: { run in
            try run.require(run.model.value.count <= 1, "ordered twice")
            if run.output != nil { try run.require(run.model.value.count == 1, "success without an order") }
        }
    }

    // Source: LerianStudio/midaz 1630 and vavallee/bindery 551.
    // refused & refused: the flight fails, the error of the cancellation is ignored, and the room remains booked.
    static let travelBooking = CorpusClient(
        name: "travel booking", kind: "failed compensation ignored", source: "LerianStudio/midaz 1630",
        plans: .both(
            (Faults.failures + Faults.cancellations).map { "POST /flights#1=\($0)" },
            (Faults.before + Faults.refusals).map { "DELETE /rooms/1#1=\($0)" })
    ) { explore in
        await explore { mock in
            let isBooked = Shared(false)
            mock.on(.POST, "/rooms") { _ in
                isBooked.value = true
                return .json(["id": 1], status: 201)
            }
            mock.on(.DELETE, "/rooms/1") { _ in
                isBooked.value = false
                return .status(204)
            }
            mock.on(.POST, "/flights", .status(201))
            return isBooked
        } client: { mock in
            try await TravelAgent(service: mock.service).book()
        } check: { run in
            if run.error is TravelAgent.RoomCancelled {
                try run.require(!run.model.value, "the room is booked, but the client says that it is cancelled")
            }
        }
    }

    // Source: didusee/obeg 86 and atomantic/PortOS 4063.
    // refused & refused: if both sources fail, the defaults are shown, and the next change saves them.
    static let settingsMirror = CorpusClient(
        name: "settings mirror", kind: "defaults saved after both sources have failed", source: "didusee/obeg 86",
        plans: .both(
            Faults.all.map { "GET /settings#1=\($0)" }, Faults.all.map { "GET /mirror/settings#1=\($0)" })
    ) { explore in
        await explore { mock in
            let settings = ["theme": "dark", "volume": "7"]
            let stored = Shared(settings)
            mock.on(.GET, "/settings") { _ in .json(stored.value) }
            mock.on(.GET, "/mirror/settings", .json(settings))
            mock.on(.PUT, "/settings") { request in
                stored.value = try request.decode([String: String].self)
                return .status(204)
            }
            return stored
        } client: { mock in
            let page = await SettingsPage(service: mock.service)
            await page.load()
            try Task.checkCancellation()
            try await page.set("theme", to: "light")
        } check: { run in
            let volume: String? = run.model.value["volume"]
            try run.require(volume == "7", "a setting that nobody changed is lost")
        }
    }

    // Source: tus/tus-js-client 908.
    // refused & 503: the part fails, then the position cannot be read, so a new upload begins at the first part.
    static let restartedUpload = CorpusClient(
        name: "restarted upload", kind: "upload starts again if its position cannot be read",
        source: "tus/tus-js-client 908",
        plans: .both(
            (0...1).flatMap { part in Faults.failures.map { "PUT /uploads/1/\(part)#1=\($0)" } },
            Faults.failures.map { "HEAD /uploads/1#1=\($0)" })
    ) { explore in
        await explore { mock in
            UploadServer(mock)
        } client: { mock in
            let uploader = PartUploader(service: mock.service)
            try await uploader.upload(["mash", "boil"])
        } check: { run in
            try run.require(run.model.uploadCount <= 1, "the upload starts again")
            if run.output != nil { try run.require(run.model.films == ["mashboil"], "the film is missing") }
        }
    }

    // Source: ome/openmicroscopy 5313 (and dagster-io/dagster 12941).
    // refused & refused, lasting: the failure of each report is reported in turn, without end.
    static let errorReporter = CorpusClient(
        name: "error reporter", kind: "reports of failed reports", source: "ome/openmicroscopy 5313",
        plans: .both(
            Faults.all.flatMap { ["GET /projects#1=\($0)", "GET /projects#1+=\($0)"] },
            Faults.failures.map { "POST /feedback#1+=\($0)" })
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/projects", .json(["one"]))
            mock.on(.POST, "/feedback", .status(204))
        } client: { mock in
            try await ProjectPage(service: mock.service).load()
        } check: { run in
            try run.require(run.requests.count <= 20, "failed reports are reported without end")
        }
    }
}

private actor HomeClient {
    private(set) var refreshes = 0
    private var access = "old"
    private let service: WebService

    init(service: WebService) { self.service = service }

    func get(_ path: String) async throws -> String {
        do {
            return try await send(path)
        } catch let error as WebServiceError where error.status == 401 {
            refreshes += 1
            access = try await service.POST("/token").json().value["access"]?.string ?? ""
            return try await send(path)
        }
    }

    private func send(_ path: String) async throws -> String {
        try await service.GET(path).setHeaderValue("Bearer \(access)", forName: .authorization).json()
            .value["name"]?.string ?? ""
    }
}

private struct OrderDesk: Sendable {
    let service: WebService

    func order(_ reference: String) async throws {
        do {
            try await send(reference)
        } catch  where !Task.isCancelled {
            if await exists(reference) { return }
            try await send(reference)
        }
    }

    private func send(_ reference: String) async throws {
        _ = try await service.POST("/orders").setJSON(["reference": reference])
            .setHeaderValue(UUID().uuidString, forName: "Idempotency-Key").json().value
    }

    private func exists(_ reference: String) async -> Bool {
        let orders = try? await service.GET("/orders").setQueryParameters(["reference": reference])
            .decode([String].self).value
        return orders?.contains(reference) ?? false
    }
}

private struct TravelAgent: Sendable {
    struct RoomCancelled: Error {}

    let service: WebService

    func book() async throws {
        let room = try await service.POST("/rooms").setJSON(["nights": 2])
            .setHeaderValue("trip-1", forName: "Idempotency-Key").json().value
        do {
            try await service.POST("/flights").setHeaderValue("trip-1", forName: "Idempotency-Key").empty().value
        } catch {
            // A task of its own, because the caller may have been cancelled.
            let cancellation = Task { try await service.DELETE("/rooms/\(room["id"]?.int ?? 0)").empty().value }
            _ = await cancellation.result
            throw RoomCancelled()
        }
    }
}

@MainActor private final class SettingsPage {
    private(set) var settings: [String: String] = [:]
    private static let defaults = ["theme": "light", "volume": "5"]
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load() async {
        for path in ["/settings", "/mirror/settings"] {
            if let loaded = try? await service.GET(path).decode([String: String].self).value {
                settings = loaded
                return
            }
        }
        settings = Self.defaults
    }

    func set(_ name: String, to value: String) async throws {
        settings[name] = value
        try await service.PUT("/settings").setJSON(settings).empty().value
    }
}

private struct PartUploader: Sendable {
    let service: WebService

    func upload(_ parts: [String]) async throws {
        var id = try await create()
        var sent = 0
        var failures = 0
        while sent < parts.count {
            do {
                try await service.PUT("/uploads/\(id)/\(sent)").setBody(Data(parts[sent].utf8)).empty().value
                sent += 1
            } catch  where failures < 3 && !Task.isCancelled {
                failures += 1
                try await service.clock.sleep(for: .seconds(failures))
                if let position = await position(of: id) {
                    sent = position
                } else {
                    (id, sent) = (try await create(), 0)
                }
            }
        }
        try await service.POST("/uploads/\(id)/complete").empty().value
    }

    private func create() async throws -> Int {
        let key = UUID().uuidString
        return try await service.POST("/uploads").setHeaderValue(key, forName: "Idempotency-Key").json()
            .value["id"]?.int ?? 0
    }

    private func position(of id: Int) async -> Int? {
        let request = service.request(.HEAD, path: "/uploads/\(id)")
        let task = service.sessionTask(request: request).empty()
        guard (try? await task.value) != nil else { return nil }
        return (try? await task.response)?.header("Upload-Parts").flatMap { Int($0) }
    }
}

private actor ProjectPage {
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load() async throws -> [String] {
        do {
            return try await service.GET("/projects").decode([String].self).value
        } catch  where !Task.isCancelled {
            await report("\(error)")
            throw error
        }
    }

    private func report(_ text: String) async {
        do {
            try await service.POST("/feedback").setJSON(["text": text]).empty().value
        } catch  where !Task.isCancelled {
            await report("the report has failed: \(error)")
        } catch {}
    }
}
