import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceResilience
import WebServiceServer
import WebServiceSockets
import WebServiceStorage
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension InspectorProbe {
    // MARK: One exchange of each kind

    func kinds() async {
        await bodiesOfEachKind()
        await failuresOfEachKind()
        await policies()
        await streams()
        await transfers()
    }

    private func stub(_ name: String, _ response: MockResponse) -> SessionTask {
        session.on(.path("/v1/kind/\(name)"), response)
        return service.GET("/kind/\(name)")
    }

    private func body(_ type: String, _ text: String) -> MockResponse {
        MockResponse(statusCode: 200, headers: ["Content-Type": type], data: Data(text.utf8))
    }

    private func bodiesOfEachKind() async {
        let rows = (0..<4_000).map {
            ["id": "\($0)", "name": "Long Trail", "abv": [4.6, 7.2], "site": nil] as JSONValue
        }
        await send(stub("large", .json(JSONValue.array(rows))))
        await send(stub("broken", body("application/json", #"{"name": "Ale", "beers": [1, 2, {"a": tr"#)))
        await send(stub("deep", body("application/json", String(repeating: "[", count: 20_000))))
        await send(
            stub("script", body("text/html", "<script>window.attacked = 1</script><img src=x onerror=alert(1)>")))
        await send(stub("lines", body("text/plain", String(repeating: "Long Trail\r\n", count: 100_000))))
        await send(stub("image", body("image/png", "no image")))
        await send(stub("empty", MockResponse(statusCode: 204)))
        await send(stub("names", body("text/\u{202E}plain", "a\u{202E}b")).setHeaderValue("x", forName: "X-Name"))
        await send(service.GET("/kind/query?name=Long%20Trail&page=2&token=canary-40&empty=&%F0%9F%8D%BA=%E2%80%AE"))
        var form = Request(.POST, url: "https://brewhapi.example.com/v1/kind/form")
        form.formParameters = ["name": "Long Trail", "password": "canary-41"]
        await send(service.sessionTask(request: form))
        var parts = MultipartFormData()
        parts.append("Trashboat", name: "name")
        parts.append(Data("a,b\n1,2\n".utf8), name: "table", fileName: "beers.csv", contentType: "text/csv")
        var multipart = Request(.POST, url: "https://brewhapi.example.com/v1/kind/multipart")
        multipart.multipart = parts
        await send(service.sessionTask(request: multipart))
    }

    private func failuresOfEachKind() async {
        _ = await stub("refused", .problem(404, title: "There is no such brewer")).decode([String].self).result
        await send(stub("server", .status(500)))
        await send(stub("timeout", .error(URLError(.timedOut))))
        let cancelled = stub("cancelled", MockResponse(statusCode: 200).after(.seconds(3600))).data().resume()
        cancelled.cancel()
        _ = await cancelled.result
    }

    private func policies() async {
        func send(_ path: String, _ interceptors: [any Interceptor]) async {
            var request = Request(url: "https://brewhapi.example.com/v1/kind/\(path)")
            request.options.interceptors = interceptors
            await self.send(service.sessionTask(request: request))
        }
        session.on(.GET, "/v1/kind/hedged", [.text("late").after(.milliseconds(300)), .text("beer")])
        await send("hedged", [.hedging(after: .fixed(.milliseconds(5)))])
        session.on(.GET, "/v1/kind/refreshed") { request in
            request.headers["Authorization"] == "Bearer canary-43" ? .json(["name": "Ann"]) : .status(401)
        }
        let origin = URL(string: "https://brewhapi.example.com").flatMap(Origin.init)
        await send(
            "refreshed",
            [
                Authentication(
                    TokenSource({ .bearer("canary-42") }) { _ in .bearer("canary-43") },
                    origins: Set([origin].compactMap { $0 }))
            ])
        session.on(.GET, "/v1/kind/loop", MockResponse(statusCode: 302, headers: ["Location": "/v1/kind/loop"]))
        await send("loop", [])
        session.on(.GET, "/v1/kind/stale", .json(["a": 1]).header("Cache-Control", "max-age=0").header("ETag", "\"1\""))
        let cache = ResponseCache(storage: MemoryStorage())
        for _ in 0..<2 { await send("stale", [cache]) }
        _ = try? await service.perform(TypedKind()).value
    }

    private func streams() async {
        let text = "event: beer\ndata: {\"name\": \"Ale\"}\n\nid: 2\ndata: [DONE]\n\ndata: late\n\n"
        let events = AsyncStream<Data> { $0.yield(Data(text.utf8)) }  // the connection remains open
        do {
            let response = MockResponse(statusCode: 200, chunks: events).header("Content-Type", "text/event-stream")
            for try await _ in stub("events", response).events(until: "[DONE]") {}
        } catch {}  // the page shows the error
        do { for try await _ in stub("read", body("text/plain", "a\nb\n")).lines() {} } catch {}
        let open = AsyncStream<Data> { $0.yield(Data("a\n".utf8)) }
        do {
            for try await _ in stub("left", MockResponse(statusCode: 200, chunks: open)).lines() { break }
        } catch {}
        session.on(
            .GET, "/v1/kind/socket",
            .webSocket { socket in
                _ = try await socket.next()
                try await socket.close(.internalError, reason: "the brewery has burned down")
            })
        do {
            let socket = try await service.webSocket("/kind/socket")
            try await socket.send("hello")
            for try await _ in socket.messages {}
        } catch {}  // closed with an error
    }

    private func transfers() async {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = Data(repeating: 97, count: 300_000)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let upload = folder.appendingPathComponent("upload.txt")
            try file.write(to: upload)
            var request = Request(.PUT, url: "https://brewhapi.example.com/v1/kind/upload")
            request.content = .file(upload, contentType: "text/plain")
            await send(service.sessionTask(request: request))
            session.on(.GET, "/v1/kind/download", MockResponse(statusCode: 200, data: file))
            _ = try await service.GET("/kind/download").download(to: folder.appendingPathComponent("a.txt")).value
        } catch {
            print("transfers: \(error)")
        }
    }
}

/// A typed request, whose exchange sends another one.
private struct TypedKind: HTTPServiceRequest, Hashable {
    typealias Output = [String: Int]

    func request(for service: WebService) -> Request { service.request(.GET, path: "/any/typed") }
}
