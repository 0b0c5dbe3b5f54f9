import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

extension CorpusClient {
    static let files = [assetBundle, filmUpload, uploadProgress]

    // Source: NVIDIA/IsaacTeleop 1111.
    // cut: the bytes that arrived have the final name, and the next launch skips an existing file.
    static let assetBundle = CorpusClient(
        name: "asset bundle", kind: "partial file skipped at the next launch", source: "NVIDIA/IsaacTeleop 1111",
        plans: .at("GET /bundle.js#1", ["cut"])
    ) { explore in
        await explore { mock in
            let bundle = Data(String(repeating: "let answer = 42;\n", count: 300).utf8)
            mock.on(.GET, "/bundle.js", MockResponse(statusCode: 200, data: bundle))
            return bundle
        } client: { mock in
            let assets = AssetStore(service: mock.service)
            do {
                return try await assets.file("bundle.js")
            } catch  where !Task.isCancelled {
                return try await assets.file("bundle.js")  // the next launch
            }
        } check: { run in
            if let output = run.output { try run.require(output == run.model, "a partial file counts as complete") }
        }
    }

    // Source: TTLabs/EvaporateJS 107 and minio/minio 1526.
    // lost: the film is complete, but the client sends all parts of it again, as another film.
    static let filmUpload = CorpusClient(
        name: "film upload", kind: "upload that starts again after a lost completion", source: "TTLabs/EvaporateJS 107",
        plans: .at("POST /uploads/1/complete#1", ["lost", "cut", "stalledAfter", "500After"])
    ) { explore in
        await explore { mock in
            UploadServer(mock)
        } client: { mock in
            let uploader = FilmUploader(service: mock.service)
            do {
                try await uploader.upload(["mash", "boil"])
            } catch  where !Task.isCancelled {
                try await mock.service.clock.sleep(for: .seconds(5))
                try await uploader.upload(["mash", "boil"])
            }
        } check: { run in
            let films = run.model.films
            try run.require(films.count <= 1, "the film exists twice")
            if run.output != nil { try run.require(films == ["mashboil"], "the film is missing") }
        }
    }

    // Source: duckdb/duckdb-httpfs 387 (and vercel/vercel 12624).
    // Any failure: the sequence of the progress is finished only after success, so the loop waits forever.
    static let uploadProgress = CorpusClient(
        name: "upload progress", kind: "progress that never ends", source: "duckdb/duckdb-httpfs 387",
        plans: .at("PUT /photos/7#1", Faults.failures)
    ) { explore in
        await explore { mock in
            mock.on(.PUT, "/photos/7", .status(201))
        } client: { mock in
            var states: [String] = []
            for await state in PhotoUpload(service: mock.service).start(Data(repeating: 7, count: 10_000)) {
                states.append(state)
            }
            try Task.checkCancellation()
            return states
        } check: { run in
            if let states = run.output { try run.require(states.last == "done", "no last state") }
        }
    }
}

/// A server that assembles films from parts.
final class UploadServer: Sendable {
    private let state = Shared((uploads: [[Int: String]](), films: [Int: String](), keys: [String: Int]()))

    var films: [String] { state.value.films.values.sorted() }
    /// The number of uploads that were begun.
    var uploadCount: Int { state.value.uploads.count }

    init(_ mock: MockService) {
        mock.on(.POST, "/uploads") { [state] request in
            let key = request.headers["Idempotency-Key"] ?? "none"
            let id: Int = state.update { state in
                if let id = state.keys[key] { return id }
                state.uploads.append([:])
                state.keys[key] = state.uploads.count
                return state.uploads.count
            }
            return .json(["id": id], status: 201)
        }
        mock.on(.PUT, "/uploads/{id}/{part}") { [state] request in
            let text = String(decoding: request.body, as: UTF8.self)
            guard let id = Int(request.pathParameters["id"] ?? ""), let part = Int(request.pathParameters["part"] ?? "")
            else { return .status(404) }
            state.update { $0.uploads[id - 1][part] = text }
            return .status(204)
        }
        mock.on(.POST, "/uploads/{id}/complete") { [state] request in
            guard let id = Int(request.pathParameters["id"] ?? "") else { return .status(404) }
            state.update { state in
                state.films[id] = state.uploads[id - 1].sorted { $0.key < $1.key }.map(\.value).joined()
            }
            return .json(["film": id], status: 201)
        }
        mock.on(.HEAD, "/uploads/{id}") { [state] request in
            guard let id = Int(request.pathParameters["id"] ?? ""), id <= state.value.uploads.count else {
                return .status(404)
            }
            return .status(204).header("Upload-Parts", "\(state.value.uploads[id - 1].count)")
        }
    }
}

private actor AssetStore {
    private var disk: [String: Data] = [:]
    private let service: WebService

    init(service: WebService) { self.service = service }

    func file(_ name: String) async throws -> Data {
        if let stored = disk[name] { return stored }
        let response = try await service.GET("/\(name)").stream().value
        for try await chunk in response.body {
            disk[name, default: Data()].append(chunk)
        }
        return disk[name] ?? Data()
    }
}

private struct FilmUploader: Sendable {
    let service: WebService

    func upload(_ parts: [String]) async throws {
        let upload = try await service.POST("/uploads")
            .setHeaderValue(UUID().uuidString, forName: "Idempotency-Key").json().value
        let id = upload["id"]?.int ?? 0
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, part) in parts.enumerated() {
                group.addTask {
                    try await service.PUT("/uploads/\(id)/\(index)").setBody(Data(part.utf8)).empty().value
                }
            }
            try await group.waitForAll()
        }
        try await service.POST("/uploads/\(id)/complete").empty().value
    }
}

private struct PhotoUpload: Sendable {
    let service: WebService

    func start(_ photo: Data) -> AsyncStream<String> {
        AsyncStream { continuation in
            continuation.yield("started")
            service.PUT("/photos/7").setBody(photo, contentType: "image/png").empty()
                .onSuccess { _ in
                    continuation.yield("done")
                    continuation.finish()
                }
                .onError { _ in continuation.yield("failed") }
                .resume()
        }
    }
}
