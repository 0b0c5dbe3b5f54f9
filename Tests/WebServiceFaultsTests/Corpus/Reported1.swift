import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

extension CorpusClient {
    /// The clients that were written from public reports before the explorer.
    static let reported = [
        reservedAddress, threadReader, transferWatcher, attachmentDownload, addressRelease, calendarEvent,
        acknowledgement, photoBatch, projectList, templateCatalog,
    ]

    // Source: digitalocean/netbox-ip-controller 14.
    // lost: the POST is sent again without a key after the connection was lost, so two addresses.
    static let reservedAddress = CorpusClient(
        name: "reserved address", kind: "POST retried without a key", source: "digitalocean/netbox-ip-controller 14",
        author: .reader,
        plans: .at("POST /ip-addresses#1", ["lost", "cut", "stalledAfter", "duplicated"])
    ) { explore in
        await explore { mock in
            let addresses = Shared<[String]>([])
            mock.on(.POST, "/ip-addresses") { request in
                let host = try request.json()["host"]?.string ?? ""
                let id: Int = addresses.update { addresses in
                    addresses.append(host)
                    return addresses.count
                }
                return .json(["id": id], status: 201)
            }
            return addresses
        } client: { mock in
            try await AddressPool(service: mock.service).reserve(host: "db-1")
        } check: { run in
            try run.require(run.model.value.count <= 1, "db-1 has two addresses")
            if run.output != nil { try run.require(run.model.value == ["db-1"], "a reservation without an address") }
        }
    }

    // Source: Awful/Awful.app 414.
    // Any failure of page 1 or 2: the counter has advanced, so the next attempt loads the page after it.
    static let threadReader = CorpusClient(
        name: "thread reader", kind: "counter advanced before success", source: "Awful/Awful.app 414",
        author: .reader,
        plans: .once("GET /threads/7#1", Faults.all) + .once("GET /threads/7#2", Faults.all)
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/threads/7") { request in
                let page = request.queryItems.first { $0.name == "page" }.flatMap { Int($0.value) } ?? 1
                return .json(page <= 3 ? ["\(page)a", "\(page)b"] : [])
            }
        } client: { mock in
            let reader = await ThreadReader(service: mock.service)
            for _ in 1...6 where await !reader.isAtEnd { await reader.nextPage() }
            return await reader.posts
        } check: { run in
            let all = ["1a", "1b", "2a", "2b", "3a", "3b"]
            let posts = run.output ?? []
            try run.require(posts == Array(all.prefix(posts.count)), "a page was skipped")
        }
    }

    // Source: OSC/ondemand 1111.
    // Any lasting error: each failed request counts as "not done yet", so the loop never ends.
    static let transferWatcher = CorpusClient(
        name: "transfer watcher", kind: "poll loop that never ends after an error", source: "OSC/ondemand 1111",
        author: .reader,
        plans: (1...3).flatMap { [String].lasting("GET /transfers/9#\($0)", Faults.all) }
    ) { explore in
        await explore { mock in
            mock.on(
                .GET, "/transfers/9",
                [
                    .json(["status": "queued"]), .json(["status": "running"]), .json(["status": "done"]),
                ])
        } client: { mock in
            try await TransferWatcher(service: mock.service).waitUntilDone("9")
        } check: { run in
            if let status = run.output { try run.require(status == "done", "not done") }
        }
    }

    // Source: owncloud/client 2528.
    // cut: the loop takes the error for the end of the body, so the truncated file gets its final name.
    static let attachmentDownload = CorpusClient(
        name: "attachment download", kind: "truncated download counts as complete", source: "owncloud/client 2528",
        author: .reader,
        plans: .at("GET /files/report.pdf#1", ["cut"])
    ) { explore in
        await explore { mock in
            let file = Data((0..<4_000).map { UInt8(truncatingIfNeeded: $0) })
            mock.on(.GET, "/files/report.pdf", MockResponse(statusCode: 200, data: file))
            return file
        } client: { mock in
            let folder = LocalFolder()
            try await AttachmentLoader(service: mock.service, folder: folder).load("report.pdf")
            return await folder.files["report.pdf"]
        } check: { run in
            if let output = run.output { try run.require(output == run.model, "a truncated file has its final name") }
        }
    }

    // Source: equinix/terraform-provider-metal 47.
    // lost: the repeated DELETE finds nothing, and the client reports what it has deleted as missing.
    static let addressRelease = CorpusClient(
        name: "address release", kind: "404 after a lost DELETE is an error",
        source: "equinix/terraform-provider-metal 47", author: .reader,
        plans: .once("DELETE /ips/52#1", Faults.after + ["duplicated"])
    ) { explore in
        await explore { mock in
            let addresses = Shared<Set<String>>(["52"])
            mock.on(.DELETE, "/ips/{id}") { request in
                let id = request.pathParameters["id"] ?? ""
                return addresses.update { $0.remove(id) } == nil ? .status(404) : .status(204)
            }
            return addresses
        } client: { mock in
            let service = mock.service
            service.options.attemptTimeout = .seconds(40)
            service.interceptors = [.retry()]
            try await service.DELETE("/ips/{id}", pathParameters: ["id": "52"])
                .configure { $0.options.redirectPolicy = .manual }.empty().value
        } check: { run in
            let isMissing = (run.error as? WebServiceError)?.status == 404
            try run.require(!isMissing, "the client reports as missing what it has deleted itself")
        }
    }
}

private struct AddressPool: Sendable {
    let service: WebService

    func reserve(host: String) async throws -> Int {
        var attempt = 1
        while true {
            do {
                let address = try await service.POST("/ip-addresses").setJSON(["host": host]).json().value
                return address["id"]?.int ?? 0
            } catch let error as URLError where error.isConnectionFailure && attempt < 3 {
                try await service.clock.sleep(for: .seconds(attempt))
                attempt += 1
            }
        }
    }
}

@MainActor private final class ThreadReader {
    private(set) var posts: [String] = []
    private(set) var isAtEnd = false
    private(set) var message: String?
    private var page = 0
    private let service: WebService

    init(service: WebService) { self.service = service }

    func nextPage() async {
        page += 1
        do {
            let more = try await service.GET("/threads/7").setQueryParameters(["page": page]).decode([String].self)
                .value
            posts += more
            isAtEnd = more.isEmpty
            message = nil
        } catch {
            message = "The page cannot be loaded."
        }
    }
}

private actor TransferWatcher {
    private let service: WebService

    init(service: WebService) { self.service = service }

    func waitUntilDone(_ id: String) async throws -> String {
        while true {
            let transfer = try? await service.GET("/transfers/{id}", pathParameters: ["id": id]).json().value
            if let status = transfer?["status"]?.string, status == "done" { return status }
            try await service.clock.sleep(for: .seconds(2))
        }
    }
}

private actor LocalFolder {
    private(set) var files: [String: Data] = [:]

    func write(_ data: Data, to name: String) { files[name, default: Data()].append(data) }
    func rename(_ name: String, to newName: String) { files[newName] = files.removeValue(forKey: name) }
}

private struct AttachmentLoader: Sendable {
    let service: WebService
    let folder: LocalFolder

    func load(_ name: String) async throws {
        let response = try await service.GET("/files/\(name)").stream().value
        var chunks = response.body.makeAsyncIterator()
        while let chunk = try? await chunks.next() {
            await folder.write(chunk, to: ".\(name).part")
        }
        try Task.checkCancellation()
        await folder.rename(".\(name).part", to: name)
    }
}
