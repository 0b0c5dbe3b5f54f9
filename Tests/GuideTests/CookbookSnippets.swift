import Foundation
import Observation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking
import WebServicePagination
import WebServiceResilience
import WebServiceServer
import WebServiceStorage
import WebServiceTesting
import WebServiceTransfers

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Every snippet of Cookbook.md that is in no other file of this folder or of Examples, with its
// expected behavior. `DocumentationTests` verifies that none is missing.

struct User: Codable, Sendable {
    var name: String
}

struct Login: Codable, Sendable {
    var access_token: String
    var refresh_token: String?
    var expires_in: Int?

    /// Returns the tokens to store. A refresh may leave the refresh token unchanged.
    func tokens(replacing old: String? = nil, on date: Date) -> TokenFile.Tokens {
        let lifetime = expires_in.map { Duration.seconds($0) }
        return .init(
            .bearer(access_token, expiresIn: lifetime, from: date),
            refreshToken: refresh_token ?? old)
    }
}

struct Payment: Codable, Sendable {
    var amount: Int
    var idempotencyKey = UUID().uuidString  // created once for each payment
}

struct Release: Decodable, Sendable {
    var tagName: String
    var publishedAt: Date
}

@MainActor final class EpisodeLibrary {
    let queue = TaskQueue(maximumInFlight: 2)
    private var downloads: [String: TypedTask<DownloadedFile>] = [:]

    func download(
        _ episode: String, from service: WebService, into folder: URL
    ) -> TypedTask<DownloadedFile> {
        if let download = downloads[episode] { return download }
        let download = service.GET("/episodes/\(episode)")
            .download(into: folder, name: "\(episode).mp3", createsFolders: true)
            .updateUI { [weak self] _ in self?.downloads[episode] = nil }
            .updateErrorUI { [weak self] _ in self?.downloads[episode] = nil }
        downloads[episode] = queue.add(download)
        return download
    }
}

struct SignedURL: Codable, Sendable {
    var url: String
}

struct Refusal: Decodable {
    var reason: String
}

struct APIError: Error, Decodable {
    var code: String
    var message: String
}

@MainActor @Observable final class BrewersModel {
    private(set) var brewers: [Brewer] = []
    private(set) var message: String?

    func search(_ state: String, with service: WebService) async {
        let search = service.GET("/brewers").setQueryParameters(["state": state])
            .setDuplicates(.replace, key: "search").decode([Brewer].self)
        do {
            brewers = try await search.value
            message = nil
        } catch let error as URLError where error.code == .cancelled {
            return  // a newer search has started, or the view has disappeared
        } catch let error as URLError where error.isConnectionFailure {
            message = "The server cannot be reached."
        } catch {
            message = error.localizedDescription
        }
    }
}

enum BreweryStage: String {
    case development = "http://localhost:8080/v1"
    case staging = "https://staging.brewhapi.example.com/v1"
    case production = "https://brewhapi.example.com/v1"

    func makeService() -> WebService {
        let service = WebService(baseURLString: rawValue)
        service.interceptors = [.retry()]
        service.headers["X-Client"] = "brewery-app"
        return service
    }
}

struct RequestSigner: Interceptor {
    var keyID: String
    var sign: @Sendable (_ message: Data) throws -> String
    var now: @Sendable () -> Date = Date.init

    func intercept(_ request: Request, next: Next) async throws -> Response {
        let encoded = try request.urlRequest()
        let date = now().ISO8601Format()
        let place = [request.method.rawValue, encoded.url?.absoluteString ?? "", date]
        let message =
            Data((place.joined(separator: "\n") + "\n").utf8) + (encoded.httpBody ?? Data())
        var request = request
        request.headers["X-Date"] = date
        request.headers["X-Signature"] = "\(keyID):\(try sign(message))"
        return try await next(request)
    }
}

struct ChatChunk: Decodable, Sendable {
    struct Delta: Decodable, Sendable { var content: String? }
    struct Choice: Decodable, Sendable { var delta: Delta }
    var choices: [Choice]
}

@MainActor final class LabelList {
    private(set) var labels: [String] = []
    private let pages: Paginator<String, URL>

    init(_ pages: Paginator<String, URL>) { self.pages = pages }

    var hasMore: Bool { pages.canMoveNext }

    func loadMore() async throws {
        guard let page = try await pages.moveNext() else { return }
        labels += page.items
    }
}

@MainActor @Observable final class UploadModel {
    private(set) var fraction = 0.0
    private(set) var message: String?

    func upload(_ file: URL, with service: WebService) async {
        let upload = service.PUT("/videos/7")
            .setBody(file: file, contentType: "video/mp4").empty()
        let updates = upload.progress
        upload.resume()
        for await progress in updates { fraction = progress.fractionSent ?? fraction }
        do {
            try await upload.value
            message = "The video is uploaded."
        } catch let error as URLError where error.code == .cancelled {
            message = nil
        } catch {
            message = "The video is not uploaded. \(error.localizedDescription)"
        }
    }
}

#if WEBSERVICE_CURL
struct LinkPreviews {
    private let service = WebService(baseURL: nil)

    init() throws {
        var configuration = CurlSession.Configuration()
        configuration.destinations = .publicInternet
        configuration.proxy = .none
        service.session = try CurlSession(configuration: configuration)
    }

    /// Returns the page at a URL, or `nil` if the URL leads to the server's network.
    func page(at url: String) async throws -> String? {
        let task = service.GET(url).setDeadline(.seconds(10))
            .configure { $0.options.maximumResponseBytes = 1 << 20 }
        do {
            return try await task.string().value
        } catch let error as WebServiceError where error.code == .destinationRefused {
            print(error)  // contains the address: do not show it to the user
            return nil
        }
    }
}
#endif

@Suite("Cookbook", .permit)
struct CookbookSnippets {
    private let mock = MockService()
    private var service: WebService { mock.service }

    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cookbook-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test("Each environment has its base URL and the same configuration")
    func environments() async throws {
        let service = BreweryStage.staging.makeService()
        service.session = mock.session
        mock.on(.url("https://staging.brewhapi.example.com/v1/brewers"), .text("ale"))
        #expect(try await service.GET("/brewers").string().value == "ale")
        #expect(mock.receivedRequests.last?.headers["X-Client"] == "brewery-app")
        #expect(BreweryStage.production.makeService().baseURLString == "https://brewhapi.example.com/v1")
        #expect(throws: WebServiceError.self) { try WebService(baseURLString: "brewhapi").absoluteURL("/") }
        #expect(BreweryStage.development.makeService().baseURLString == "http://localhost:8080/v1")
    }

    @Test("One call has a longer timeout")
    func timeout() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service
        mock.on(.GET, "/reports/2026", .text("ale").after(.seconds(100)))
        let report = service.GET("/reports/2026")
            .setTimeout(.seconds(120)).setDeadline(.seconds(300)).data()
        report.resume()
        await clock.advance(by: .seconds(100))
        #expect(try await report.value == Data("ale".utf8))
        #expect(report.request.options.deadline == .seconds(300))
    }

    @Test("A full list of interceptors sends each attempt with credentials, a trace and a signature")
    func interceptors() async throws {
        @Sendable func hmac(_ message: Data) throws -> String { message.base64EncodedString() }
        let text = "ale"
        mock.on(
            .path("/beer") && .header("Authorization", "Bearer canary"),
            [.status(503).header("Retry-After", "0"), .text(text).header(.cacheControl, "max-age=60")])
        let authentication = Authentication(TokenSource(.bearer("canary")))
        let cache = ResponseCache(storage: MemoryStorage(), account: { "ann" })
        service.interceptors = [
            .waitForConnectivity(within: .seconds(120)),  // waits for a network, then tries again
            .idempotencyKey(),  // all attempts of a POST have the same key
            .retry(),  // sends again through the interceptors below
            authentication,  // each attempt has the current credential
            cache,  // separates users by their credentials
            .hedging(),  // sends a second request if a response is late
            .rateLimit(10, per: .seconds(1)),  // does not count cached responses
            .traceContext(),  // a new span for each attempt
            RequestSigner(keyID: "7") { message in try hmac(message) },  // signs the final request
        ]
        service.observers = [.log { entry in print(entry.text) }]  // their order does not matter
        #expect(try await service.GET("/beer").string().value == text)
        let again = service.GET("/beer").string()
        #expect(try await again.value == text)
        #expect(try await again.response.source == .cache)
        let sent = mock.receivedRequests
        #expect(sent.count == 2)
        #expect(sent.allSatisfy { $0.headers["X-Signature"]?.hasPrefix("7:") == true })
        #expect(Set(sent.map { $0.headers["traceparent"] }).count == 2)
    }

    @Test("The cookie of one service is sent by another")
    func sharedCookies() async throws {
        let accounts = WebService(baseURLString: "https://accounts.brewery.test")
        let shop = WebService(baseURLString: "https://shop.brewery.test")
        accounts.session = mock.session
        shop.session = mock.session
        mock.on(.POST, "/login", .status(204).header("Set-Cookie", "id=7; Domain=brewery.test; Secure"))
        mock.on(.path("/cart") && .header("Cookie", "id=7"), .text("ale"))
        let jar = CookieJar()
        for service in [accounts, shop] { service.cookieJar = jar }
        try await accounts.POST("/login").setFormParameters(["user": "ann"]).empty().value
        let cart = try await shop.GET("/cart").string().value
        #expect(cart == "ale")
        #expect(jar.cookies.map(\.name) == ["id"])
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        let file = folder.appendingPathComponent("cookies")
        try jar.write(to: file)
        #expect(try CookieJar(contentsOf: file).cookies.isEmpty)
        try jar.write(to: file, includingSessionCookies: true)
        #expect(try CookieJar(contentsOf: file).cookies.map(\.name) == ["id"])
    }

    @Test("Each attempt is signed with its date, its URL and its body")
    func signatures() async throws {
        @Sendable func hmac(_ message: Data) throws -> String { message.base64EncodedString() }
        mock.on(.PUT, "/brewers/7", [.status(503).header("Retry-After", "0"), .status(204)])
        service.interceptors = [.retry(), RequestSigner(keyID: "7") { message in try hmac(message) }]
        let brewer = service.PUT("/brewers/7").setQueryParameters(["notify": true]).setJSON(Brewer(name: "ale"))
        try await brewer.empty().value
        #expect(mock.receivedRequests.count == 2)
        for request in mock.receivedRequests {
            let date = try #require(request.headers["X-Date"])
            let url = try #require(request.url)
            #expect(url.query == "notify=true")
            let message = Data("PUT\n\(url.absoluteString)\n\(date)\n".utf8) + request.body
            #expect(!request.body.isEmpty)
            #expect(request.headers["X-Signature"] == "7:" + (try hmac(message)))
        }
    }

    @Test("A chat completion is streamed until its last event")
    func chat() async throws {
        let (key, pieces) = ("canary", ["A pale ", "ale."])
        let events = pieces.map {
            ServerSentEvent(data: #"{"choices": [{"index": 0, "delta": {"content": "\#($0)"}}]}"#)
        }
        let last = ServerSentEvent(data: #"{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#)
        mock.on(
            .path("/chat/completions") && .header("Authorization", "Bearer canary") && .json(["stream": true]),
            [.events(events + [last, ServerSentEvent(data: "[DONE]")]), .events(events)])
        func read() async throws -> String {
            service.interceptors = [.bearer(key)]
            let question: JSONValue = [
                "model": "ale-1", "stream": true,
                "messages": [["role": "user", "content": "Describe an ale."]],
            ]
            let chat = service.POST("/chat/completions").setJSON(question)
            var text = ""
            for try await chunk in chat.events(ChatChunk.self, until: "[DONE]") {
                text += chunk.choices.first?.delta.content ?? ""
            }
            return text
        }
        #expect(try await read() == "A pale ale.")
        let error = await #expect(throws: WebServiceError.self) { try await read() }
        #expect(error?.code == .streamEndedEarly)
    }

    @Test("A list is extended by a page at a time, also after an error")
    @MainActor func list() async throws {
        mock.on(.GET, "/labels", .json(["red"]).header("Link", "</labels?page=2>; rel=next"))
        mock.on(.path("/labels") && .query("page", "2"), [.status(500), .json(["blue"])])
        let service = service
        let labels = Paginator.links(from: service.request(.GET, path: "/labels")) { request in
            service.sessionTask(request: request).decode([String].self)
        }
        let list = LabelList(labels)
        try await list.loadMore()
        #expect(list.labels == ["red"])
        #expect(list.hasMore)
        await #expect(throws: WebServiceError.self) { try await list.loadMore() }
        #expect(list.labels == ["red"])
        #expect(list.hasMore)
        try await list.loadMore()
        #expect(list.labels == ["red", "blue"])
        #expect(!list.hasMore)
        try await list.loadMore()
        #expect(list.labels.count == 2)
    }

    @Test("A model shows the progress and the result of an upload")
    @MainActor func uploadModel() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        let video = folder.appendingPathComponent("ale.mp4")
        try Data(repeating: 7, count: 1 << 20).write(to: video)
        let server = try MockServer()
        defer { server.stop() }
        server.on(.PUT, "/videos/7", [.status(204), .status(500)])
        let service = WebService(baseURLString: server.baseURLString)
        let model = UploadModel()
        await model.upload(video, with: service)
        #expect(model.message == "The video is uploaded.")
        #expect(model.fraction == 1)
        #expect(server.receivedRequests.last?.body.count == 1 << 20)
        await model.upload(video, with: service)
        #expect(model.message?.contains("500 Internal Server Error") == true)
    }

    @Test("An upload is cancelled together with the Swift task of the view")
    @MainActor func leavingView() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        let video = folder.appendingPathComponent("ale.mp4")
        try Data("frames".utf8).write(to: video)
        mock.on(.PUT, "/videos/7", MockResponse(statusCode: 204).after(.seconds(3600)))
        let model = UploadModel()
        let service = service
        let view = Task { await model.upload(video, with: service) }
        while mock.receivedRequests.isEmpty { await Task.yield() }
        view.cancel()
        await view.value
        #expect(model.message == nil)
        #expect(service.exchanges.isEmpty)
    }

    @Test("A stored value replaces an error of the server")
    func storedOffline() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        mock.on(.GET, "/brewers", [.json([Brewer(name: "Long Trail")]), .error(URLError(.notConnectedToInternet))])
        for _ in 0..<2 {
            service.storages = [try FileStorage(folder: folder.appendingPathComponent("values"))]
            let request = BrewersRequest(state: "vermont")
            let list = try await service.perform(request, fetchPolicy: .serverElseCache).value
            #expect(list == [Brewer(name: "Long Trail")])
            #expect(await service.finishStoring())
        }
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("A cached response replaces an error of the server")
    func cachedOffline() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        mock.on(
            .GET, "/label",
            [
                .text("ale").headers(["Cache-Control": "max-age=0", "ETag": "\"1\""]),
                .error(URLError(.notConnectedToInternet)), .status(503),
            ])
        for _ in 0..<3 {
            let storage = try FileStorage(folder: folder.appendingPathComponent("cache"))
            let cache = ResponseCache(storage: storage, account: { "ann" })
            service.interceptors = [cache]
            let label = try await service.GET("/label")
                .setHeaderValue("stale-if-error=604800", forName: "Cache-Control").string().value
            #expect(label == "ale")
            #expect(await cache.finishStoring())
        }
        #expect(mock.receivedRequests.count == 3)
        let stored = service.GET("/label").configure { $0.options.cachePolicy = .returnCacheDataElseLoad }.string()
        #expect(try await stored.value == "ale")
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("A cached download is stored in a file, and confirmed by the server")
    func cachedDownload() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        mock.on(
            .GET, "/map.bin",
            [
                .text("map").headers(["Cache-Control": "no-cache", "ETag": "\"1\""]),
                .status(304).headers(["Cache-Control": "max-age=60", "ETag": "\"1\""]),
            ])
        let destination = folder.appendingPathComponent("map.bin")
        var sources: [Response.Source] = []
        func print(_ source: Response.Source) { sources.append(source) }
        for _ in 0..<3 {
            let storage = try FileStorage(folder: folder.appendingPathComponent("cache"))
            let bodies = try BodyFolder(folder.appendingPathComponent("bodies"), maximumBytes: 2 << 30)
            let cache = ResponseCache(storage: storage, bodies: bodies, account: { "ann" })
            service.interceptors = [cache]
            let map = try await service.GET("/map.bin").download(to: destination, existing: .replace).value
            print(map.response.source)  // `network`; for later downloads, `revalidated` or `cache`
            #expect(try Data(contentsOf: destination) == Data("map".utf8))
            #expect(await cache.finishStoring())
        }
        #expect(sources == [.mock, .revalidated, .cache])
    }

    @Test("An interceptor and an observer replace a delegate, for typed tasks and untyped handlers")
    func delegate() async throws {
        let reports = Counter()
        @Sendable func print(_ name: String, _ duration: Duration) { reports.increment() }
        mock.on(.header("X-Channel", "beta"), .status(404))
        service.interceptors = [
            .closure { request, next in
                var request = request
                request.headers["X-Channel"] = "beta"
                let response = try await next(request)
                guard response.status != 404 else { throw BreweryError.notFound }
                return response
            }
        ]
        service.observers = [.metrics { metrics in print(metrics.exchange.name, metrics.duration) }]
        await #expect(throws: BreweryError.notFound) { try await service.GET("/brewers").empty().value }
        await eventually("the metrics are reported") { reports.value == 1 }
        let errors = Collected<BreweryError>()
        service.GET("/brewers").responseError { error in (error as? BreweryError).map(errors.add) }.resume()
        await eventually("an untyped handler receives the error") { errors.values == [.notFound] }
    }

    @Test("A retry takes no real time")
    func retry() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.service.interceptors = [.retry()]
        let lost = URLError(.networkConnectionLost)
        mock.on(.GET, "/brewers", [.status(503), .error(lost), .text("ale")])
        let task = mock.service.GET("/brewers").string().resume()
        await clock.advance(by: .seconds(10))
        #expect(try await task.value == "ale")
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("A fixed token is sent with each request")
    func token() async throws {
        let token = "canary"
        mock.on(.header("Authorization", "Bearer canary"), .json(User(name: "ann")))
        service.interceptors = [.bearer(token)]
        let user = try await service.GET("/user").decode(User.self).value
        #expect(user.name == "ann")
    }

    @Test("A rejected token is refreshed with the refresh token of the last refresh")
    func login() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }  // it does not exist after `deleteFile()`
        let password = "canary"
        server.on(.POST, "/token", .json(Login(access_token: "a", refresh_token: "one")))
        for (old, login) in [
            ("one", Login(access_token: "b", refresh_token: "two")), ("two", Login(access_token: "c")),
        ] {
            let refresh = RequestMatcher.form(["grant_type": "refresh_token", "refresh_token": old])
            server.on(.path("/token") && refresh, .json(login)).times(1)
        }
        server.on(.GET, "/me", .status(401))
        server.on(.path("/me") && .header("Authorization", "Bearer b"), .json(User(name: "ann"))).times(1)
        server.on(.path("/me") && .header("Authorization", "Bearer c"), .json(User(name: "bob"))).times(1)
        let address = server.baseURLString
        let service = WebService(baseURLString: address)
        let logins = WebService(baseURLString: address)
        let tokens = try TokenFile(file) { old in
            guard let token = old.refreshToken else { return nil }
            let refresh = logins.POST("/token")
                .setFormParameters(["grant_type": "refresh_token", "refresh_token": token])
            return try await refresh.decode(Login.self).value.tokens(replacing: token, on: logins.date)
        }
        let authentication = Authentication(tokens)
        service.interceptors = [.retry(), authentication]

        let form: Parameters = ["grant_type": "password", "username": "ann", "password": password]
        let login = try await logins.POST("/token").setFormParameters(form).decode(Login.self).value
        let newTokens = login.tokens(on: logins.date)
        try await tokens.store(newTokens)
        authentication.update(newTokens.credential)

        #expect(try mode(of: file) == 0o600)
        #expect(try await service.GET("/me").decode(User.self).value.name == "ann")
        #expect(try await TokenFile(file).tokens()?.refreshToken == "two")
        #expect(try await service.GET("/me").decode(User.self).value.name == "bob")
        #expect(try await TokenFile(file).tokens() == TokenFile.Tokens(.bearer("c"), refreshToken: "two"))
        try await tokens.remove()
        try await tokens.remove()
        #expect(try await TokenFile(file).tokens() == nil)
        try server.verify()
        try await tokens.store(TokenFile.Tokens(.bearer("d")))
        authentication.update(.bearer("d"))
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/me").json().value }
        #expect(error?.status == 401)
    }

    @Test("a log-out ends the work of the user and removes the user's data")
    func logOut() async throws {
        let (chunks, writer) = AsyncStream<Data>.makeStream()
        let (file, started) = AsyncStream<Data>.makeStream()
        mock.on(.GET, "/feed", MockResponse(statusCode: 200, chunks: chunks))
        mock.on(.GET, "/file", MockResponse(statusCode: 200, chunks: file))
        mock.on(.GET, "/slow", MockResponse(statusCode: 200).after(.seconds(3600)))
        mock.on(.GET, "/me", .json(User(name: "ann")).header("Cache-Control", "max-age=60").header("Set-Cookie", "a=b"))
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a folder of this test
        let tokens = try TokenFile(folder.appendingPathComponent("login"))
        try await tokens.store(.init(.bearer("canary")))
        let authentication = Authentication(tokens)
        let cache = ResponseCache(storage: MemoryStorage())
        let service = service
        service.cookieJar = CookieJar()
        service.interceptors = [cache, authentication]
        _ = try await service.GET("/me").decode(User.self).value
        let target = folder.appendingPathComponent("file")
        let download = service.GET("/file").download(to: target).resume()
        let slow = service.GET("/slow").data().resume()
        let feed = Task { for try await _ in service.GET("/feed").lines() {} }
        await eventually("all requests arrive") { mock.receivedRequests.count == 4 }

        do {
            defer {
                authentication.clear()
                service.cancelAll()
                service.cookieJar?.removeAll()
            }
            try await tokens.remove()
        }
        try await cache.removeAll()
        try await service.deleteAllStored()

        await #expect(throws: URLError(.cancelled)) { try await download.value }
        await #expect(throws: URLError(.cancelled)) { try await slow.value }
        await #expect(throws: URLError(.cancelled)) { try await feed.value }
        _ = try await service.GET("/me").decode(User.self).value
        let last = try #require(mock.receivedRequests.last)
        #expect(mock.receivedRequests.count == 5)
        #expect(last.headers["Authorization"] == nil)
        #expect(last.headers["Cookie"] == nil)
        #expect(try await TokenFile(folder.appendingPathComponent("login")).tokens() == nil)
        withExtendedLifetime((writer, started)) {}
    }

    @Test("The requests in flight end before the program")
    func shutdown() async throws {
        let service = service
        mock.on(.GET, "/slow", .status(204))
        let task = service.GET("/slow").empty().resume()
        if await !service.finish(within: .seconds(20)) { print("requests were cancelled") }
        try await task.value
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/slow").empty().value }
        #expect(error?.code == .serviceInvalidated)
    }

    @Test("The decoder of a service applies to its tasks")
    func decoder() async throws {
        mock.on(.GET, "/releases/latest", .text(#"{"tag_name": "1.0", "published_at": "2026-11-20T08:00:00Z"}"#))
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        service.decoder = decoder
        let release = try await service.GET("/releases/latest").decode(Release.self).value
        #expect(release.tagName == "1.0")
        #expect(release.publishedAt.timeIntervalSince1970 == 1_795_161_600)
    }

    @Test("A status is mapped to an error of the app")
    func errors() async throws {
        mock.on(.POST, "/orders", [.status(409), .error(URLError(.notConnectedToInternet))])
        var printed: [String] = []
        func print(_ text: String) { printed.append(text) }
        for _ in 0..<2 {
            service.errorMapper = .closure { response in
                response.status == 409 ? BreweryError.soldOut : nil
            }
            do {
                try await service.POST("/orders").setJSON(["beer": "ale"]).empty().value
            } catch BreweryError.soldOut {
                print("sold out")
            } catch let error as URLError where error.isConnectionFailure {
                print("the server cannot be reached")
            }
        }
        #expect(printed == ["sold out", "the server cannot be reached"])
    }

    @Test("The body of an error is decoded as an error of the app, if it can be decoded")
    func decodedErrors() async throws {
        mock.on(
            .POST, "/orders",
            [.json(["code": "sold-out", "message": "no ale is left"], status: 409), .text("<html>", status: 502)])
        var printed: [String] = []
        func print(_ code: String, _ message: String) { printed.append("\(code): \(message)") }
        var failure: WebServiceError?
        for _ in 0..<2 {
            do {
                service.errorMapper = .decoding(APIError.self)
                do {
                    try await service.POST("/orders").setJSON(["beer": "ale"]).empty().value
                } catch let error as APIError {
                    print(error.code, error.message)
                }
            } catch {
                failure = error as? WebServiceError
            }
        }
        #expect(printed == ["sold-out: no ale is left"])
        #expect(failure?.code == .unacceptableStatus)
        #expect(failure?.status == 502)
    }

    @Test("The body of an error is decoded")
    func errorBody() async throws {
        mock.on(.POST, "/orders", .json(["reason": "the ale is sold out"], status: 409))
        var printed: [String] = []
        func print(_ status: Int, _ reason: String) { printed.append("\(status) \(reason)") }
        do {
            try await service.POST("/orders").setJSON(["beer": "ale"]).empty().value
        } catch let error as WebServiceError where error.code == .unacceptableStatus {
            let refusal = try error.decodeBody(Refusal.self)
            print(error.status ?? 0, refusal.reason)
        }
        #expect(printed == ["409 the ale is sold out"])
    }

    @Test("The cancellation of the awaiting Swift task is the error of a URL")
    func cancellation() async throws {
        mock.on(.GET, "/slow", .text("late").after(.seconds(600)))
        let task = Task { try await service.GET("/slow").string().value }
        task.cancel()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    @Test("Pages are found by Link")
    func links() async throws {
        mock.on(.GET, "/labels", .json(["red"]).header("Link", "</labels?page=2>; rel=next"))
        mock.on(.path("/labels") && .query("page", "2"), .json(["blue"]))
        let labels = Paginator.links(from: service.request(.GET, path: "/labels")) { request in
            service.sessionTask(request: request).decode([String].self)
        }
        var names: [String] = []
        for try await label in labels.items(prefetch: true) { names.append(label) }
        #expect(names == ["red", "blue"])
    }

    @Test("Each attempt sends the same idempotency key")
    func idempotency() async throws {
        mock.on(.POST, "/payments", [.status(503), .status(200)])
        let payment = Payment(amount: 5)
        service.interceptors = [.retry()]
        try await service.POST("/payments").setJSON(["amount": payment.amount])
            .setHeaderValue(payment.idempotencyKey, forName: "Idempotency-Key").empty().value
        #expect(mock.receivedRequests.count == 2)
        #expect(Set(mock.receivedRequests.map { $0.headers["Idempotency-Key"] }) == [payment.idempotencyKey])
        let stored = try JSONDecoder().decode(Payment.self, from: JSONEncoder().encode(payment))
        #expect(stored.idempotencyKey == payment.idempotencyKey)
    }

    @Test("A response is retried by a predicate")
    func predicate() async throws {
        mock.on(.GET, "/user", [.status(403).header("Retry-After", "0"), .json(User(name: "ann"))])
        service.interceptors = [.retry { $0.status == 403 && $0.header("Retry-After") != nil }]
        #expect(try await service.GET("/user").decode(User.self).value.name == "ann")
    }

    @Test("A new search cancels the previous one")
    @MainActor func viewModel() async throws {
        mock.on(.query("state", "slow"), .json([Brewer(name: "late")]).after(.seconds(600)))
        mock.on(.query("state", "vermont"), .json([Brewer(name: "Long Trail")]))
        let service = service
        let model = BrewersModel()
        let first = Task { await model.search("slow", with: service) }
        while mock.receivedRequests.isEmpty { await Task.yield() }
        await model.search("vermont", with: service)
        await first.value
        #expect(model.brewers == [Brewer(name: "Long Trail")])
        #expect(model.message == nil)
        mock.on(.any, .error(URLError(.notConnectedToInternet)))
        await model.search("maine", with: service)
        #expect(model.message == "The server cannot be reached.")
        #expect(model.brewers.count == 1)
        mock.on(.any, .status(404))
        await model.search("maine", with: service)
        #expect(model.message?.contains("404 Not Found") == true)
    }

    #if WEBSERVICE_SQLITE
    @Test("The stored list precedes that of the server")
    func offline() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        for _ in 0..<2 {
            service.storages = [try SQLiteStorage(file: folder.appendingPathComponent("brewery.sqlite"))]
            let list = service.perform(BrewersRequest(state: "vermont"), fetchPolicy: .cacheThenServer)
            for try await brewers in list.values {
                let age = brewers.isStored ? "from \(brewers.date ?? .now)" : "current"
                print(brewers.value.map(\.name), age)
            }
            #expect(await service.finishStoring())
        }
        let stored = try await service.stored(BrewersRequest(state: "vermont")).value
        #expect(stored.value == [Brewer(name: "Long Trail")])
    }
    #endif

    @Test("The size and the hit rate of a cache are known")
    func cacheStatistics() async throws {
        let cache = ResponseCache(storage: MemoryStorage())
        service.interceptors = [cache]
        mock.on(.GET, "/a", .text("ale").header(.cacheControl, "max-age=60"))
        for _ in 0..<4 { _ = try await service.GET("/a").data().value }
        #expect(await cache.finishStoring())

        let counts = cache.statistics
        let requests = counts.hits + counts.revalidations + counts.misses
        let hitRate = requests == 0 ? 0 : Double(counts.hits) / Double(requests)
        var bytes = 0
        for try await entry in cache.entries { bytes += entry.byteCount }
        print(hitRate, bytes)

        #expect(hitRate == 0.75)
        #expect(bytes == 3)
    }

    @Test("A file is sent to a signed URL without credentials")
    func signedURL() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let video = folder.appendingPathComponent("ale.mp4")
        try Data("frames".utf8).write(to: video)
        mock.on(.POST, "/uploads", .json(SignedURL(url: "https://store.test/ale.mp4?signature=1")))
        mock.on(
            .method(.PUT) && !.header("Authorization") && !.header("X-Client"),
            .status(200).header("ETag", "\"1\""))
        service.interceptors = [.bearer("canary")]
        service.headers["X-Client"] = "brewery-app"
        let signed = try await service.POST("/uploads").decode(SignedURL.self).value
        let upload = service.PUT(signed.url).setBody(file: video, contentType: "video/mp4")
            .onProgress { progress in print(progress.fractionSent ?? 0) }
            .intercepted(by: .retry())
        let uploaded = upload.empty()
        try await uploaded.value
        let entityTag = try await uploaded.response.header("ETag")
        #expect(entityTag == "\"1\"")
        #expect(mock.receivedRequests.last?.body == Data("frames".utf8))
    }

    @Test("A form has JSON and a report that is produced while it is sent")
    func report() async throws {
        struct Report: Sendable {
            func rows() -> AsyncStream<Data> {
                AsyncStream { continuation in
                    continuation.yield(Data("ale,2".utf8))
                    continuation.finish()
                }
            }
        }
        let report = Report()
        mock.on(.POST, "/reports", .status(204))
        var form = MultipartFormData()
        form.append(.json(Brewer(name: "Long Trail")), name: "brewer")
        form.append(.stream(length: nil, contentType: "text/csv") { report.rows() }, name: "report")
        let upload = service.POST("/reports").setMultipart(form)
            .onProgress { progress in print(progress.bytesSent, progress.bytesPerSecond ?? 0) }
        try await upload.empty().value
        let sent = String(decoding: mock.receivedRequests.last?.body ?? Data(), as: UTF8.self)
        #expect(sent.contains(#"{"name":"Long Trail"}"#))
        #expect(sent.contains("Content-Type: text/csv\r\n\r\nale,2\r\n"))
    }

    @Test("Episodes are downloaded two at a time, in an order that can be changed")
    @MainActor
    func episodes() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        mock.on(.GET, "/episodes/1", MockResponse(statusCode: 200).after(.seconds(3600)))
        mock.on(.GET, "/episodes/2", MockResponse(statusCode: 200).after(.seconds(3600)))
        for name in ["3", "4", "5"] { mock.on(.GET, "/episodes/\(name)", .text("talk")) }
        let (service, target) = (service, folder.appendingPathComponent("Episodes/2026"))
        let library = EpisodeLibrary()
        let downloads = ["1", "2", "3", "4", "5"].map { library.download($0, from: service, into: target) }
        await eventually("the first two are sent") { @Sendable [mock] in mock.receivedRequests.count == 2 }
        library.queue.setPriority(.high, of: downloads[4])
        #expect(downloads[4] === library.download("5", from: service, into: target))
        downloads[3].cancel()
        downloads[0].cancel()
        let file = try await downloads[2].value
        #expect(file.url.path.hasSuffix("Episodes/2026/3.mp3"))
        library.queue.cancelAll()
        await #expect(throws: URLError.self) { try await downloads[1].value }
        #expect(mock.receivedRequests.suffix(2).map(\.path) == ["/episodes/5", "/episodes/3"])
    }

    @Test("A download reports its progress")
    func download() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        mock.on(.GET, "/brew.iso", .text("ale"))
        let task = service.GET("/brew.iso").download(into: folder)
        for await progress in task.resume().progress {
            let percent = Int((progress.fractionReceived ?? 0) * 100)
            FileHandle.standardError.write(Data("\r\(percent) %".utf8))
        }
        let file = try await task.value
        print("\n\(file.url.path): \(file.byteCount) bytes")
        #expect(file.byteCount == 3)
    }

    @Test("Every attempt has a span identifier")
    func tracing() async throws {
        mock.on(.GET, "/", [.status(503).header("Retry-After", "0"), .status(200)])
        service.interceptors = [.retry(), .traceContext()]
        try await service.GET("/").empty().value
        #expect(Set(mock.receivedRequests.map { $0.headers["traceparent"] }).count == 2)
    }

    @Test("A logger receives entries")
    func logger() async throws {
        /// The part of swift-log's `Logger` that the snippet uses. This package does not depend on it.
        struct Logger: Sendable {
            enum Level: String { case trace, debug, info, notice, warning, error, critical }
            typealias Metadata = [String: String]
            let lines = Collected<String>()
            func log(level: Level, _ message: String, metadata: Metadata) {
                lines.add("\(level) \(message) \(metadata["path"] ?? "") \(metadata["status"] ?? "")")
            }
        }
        let logger = Logger()
        mock.on(.GET, "/", [.status(204), .status(404)])
        service.observers = [
            .log { entry in
                let level = Logger.Level(rawValue: entry.level.rawValue) ?? .info
                var metadata: Logger.Metadata = ["duration": "\(entry.duration)"]
                metadata["path"] = entry.exchange.pathTemplate.map { "\($0)" }
                metadata["status"] = entry.status.map { "\($0)" }
                logger.log(level: level, "\(entry.text)", metadata: metadata)
            }
        ]
        try await service.GET("/").empty().value
        await eventually("the first result is logged") { logger.lines.values.count == 1 }
        _ = await service.GET("/").empty().result
        await eventually("both results are logged") { logger.lines.values.contains { $0.hasPrefix("warning #") } }
        #expect(logger.lines.values.first?.hasPrefix("info #") == true)
        #expect(logger.lines.values.first?.hasSuffix("/ 204") == true)
    }

    #if WEBSERVICE_CURL
    @Test("The connections per host are limited")
    func limits() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/", .status(200))
        let service = WebService(baseURLString: server.baseURLString)
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = 4
        service.session = try CurlSession(configuration: configuration)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = await service.GET("/").empty().result } }
        }
        #expect(Set(server.receivedRequests.map(\.connection)).count <= 4)
    }

    @Test("The certificate of a development server is trusted")
    func certificates() async throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl") else { return }
        let server = try MockServer(tls: true)
        defer { server.stop() }
        server.on(.GET, "/", .text("ale"))
        let service = WebService(baseURLString: server.baseURLString)
        var configuration = CurlSession.Configuration()
        configuration.tls.trustedCertificatesFile = server.certificateFile?.path
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")
    }

    @Test("A company CA is trusted, and a key is pinned")
    func companyCertificates() async throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl") else { return }
        let server = try MockServer(tls: true)
        defer { server.stop() }
        server.on(.GET, "/", .text("ale"))
        let service = WebService(baseURLString: server.baseURLString)
        let companyCA = server.certificateFile?.path
        let (currentPin, nextPin) = ("sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "sha256//BBBB")
        var configuration = CurlSession.Configuration()
        configuration.tls.trustedCertificatesFile = companyCA
        configuration.tls.includesSystemCertificates = true
        var login = configuration.tls
        login.pinnedPublicKeys = [currentPin, nextPin]
        configuration.hostTLS["login.example.com"] = login
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")

        // The command of CertificatesAndPins.md prints the pin of the key.
        configuration.tls.pinnedPublicKeys = [currentPin]
        service.session = try CurlSession(configuration: configuration)
        let error = await #expect(throws: URLError.self) { try await service.GET("/").data().value }
        let command = """
            openssl x509 -in "$0" -pubkey -noout | openssl pkey -pubin -outform der \
                | openssl dgst -sha256 -binary | base64
            """
        let pipe = Pipe()
        let file = try #require(companyCA)
        let process = ChildProcess(
            "/bin/sh", ["-c", command, file], input: .null, output: .pipe(pipe), errors: .null)
        let output = try await process.finish(reading: pipe).output
        #expect(
            error?.pinnedKeyMismatch?.presented == "sha256//" + output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test("A client certificate is verified by a mock server")
    func clientCertificates() async throws {
        guard ClientCertificates.isAvailable else { return }
        let client = try ClientCertificates(subject: "/O=Brewery/CN=ann")
        let (authority, certificate, key) = (client.authority, client.certificate, client.key)

        let server = try MockServer(clientCA: authority)
        server.on(.GET, "/me") { request in .text(request.clientCertificate?.subject ?? "") }

        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        do {
            var configuration = CurlSession.Configuration()
            configuration.tls.clientCertificate = .init(
                certificateFile: certificate.path, keyFile: key.path)
            service.session = try CurlSession(configuration: configuration)
        }
        var configuration = CurlSession.Configuration()
        configuration.tls.trustedCertificatesFile = server.certificateFile?.path
        configuration.tls.clientCertificate = .init(
            certificateFile: certificate.path, keyFile: key.path)
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/me").string().value == "CN=ann,O=Brewery")
    }

    @Test("URLs that lead to the network of the server are refused")
    func urlsOfUsers() async throws {
        let server = try MockServer { _ in .text("ale") }
        defer { server.stop() }
        let previews = try LinkPreviews()
        for host in ["127.0.0.1", "localhost"] {
            #expect(try await previews.page(at: "http://\(host):\(server.port)/") == nil)
        }
        #expect(server.connectionCount == 0)
        #expect(try CurlSession(configuration: destinations()).configuration.destinations.exceptions.count == 2)
    }

    /// The snippets of ConfiguringTheTransport.md.
    private func destinations() -> CurlSession.Configuration {
        var configuration = CurlSession.Configuration()
        configuration.destinations = .init { destination in
            destination.isPublic && [80, 443].contains(destination.port)
        }
        configuration.destinations = .publicInternet
        configuration.destinations.exceptions = ["10.20.0.0/16", "127.0.0.1:8080"]
        return configuration
    }

    @Test("A proxy receives the user and the password, and the server does not")
    func authenticatedProxy() async throws {
        let proxy = try MockServer { _ in .text("ale") }
        defer { proxy.stop() }
        let (proxyURL, user, password) = ("http://127.0.0.1:\(proxy.port)", "ann", "secret")
        let service = WebService(baseURLString: "http://brewery.example")
        var configuration = CurlSession.Configuration()
        configuration.proxy = .authenticated(url: proxyURL, user: user, password: password)
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")
        let request = try #require(proxy.receivedRequests.first)
        #expect(request.headers["Proxy-Authorization"] == "Basic " + Data("ann:secret".utf8).base64EncodedString())
        #expect(request.headers["Authorization"] == nil)
        #expect(!"\(configuration.proxy)".contains("secret"))
    }

    @Test("A proxy with a password is used for hosts outside of the company")
    func proxy() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/", .text("ale"))
        let (user, password) = ("ann", "secret")
        let service = WebService(baseURLString: "http://brewery.corp.example:\(server.port)")
        var configuration = CurlSession.Configuration()
        configuration.proxy = .perRequest { url in
            if url.host?.hasSuffix(".corp.example") == true { return .none }
            return .authenticated(url: "http://proxy.corp.example:3128", user: user, password: password)
        }
        service.session = try CurlSession(configuration: configuration)
        configuration.addresses = ["brewery.corp.example:\(server.port)": ["127.0.0.1"]]
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")
    }
    #endif

    @Test(.mockService) func brewersAreDecoded() async throws {
        let mock = try MockService.current
        mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        let brewers = try await mock.service.GET("/brewers").decode([Brewer].self).value
        #expect(brewers.map(\.name) == ["Long Trail"])
    }

    @Test("A timeout takes no real time")
    func timeouts() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.GET, "/brewers", .text("late").after(.seconds(30)))
        let task = mock.service.GET("/brewers").setTimeout(.seconds(5)).data().resume()
        await clock.advance(by: .seconds(5))
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }

    @Test("A server fails and recovers")
    func recovery() async throws {
        let mock = MockService()
        mock.service.interceptors = [RetryPolicy(baseDelay: .zero)]
        mock.on(.GET, "/user", [.status(503), .error(URLError(.networkConnectionLost)), .json(User(name: "ann"))])
        #expect(try await mock.service.GET("/user").decode(User.self).value.name == "ann")
        #expect(mock.receivedRequests.count == 3)
    }
}
