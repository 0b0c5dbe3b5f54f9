import Foundation
import WebServiceCore
import WebServiceInspector
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A service with an inspector, and the requests that a test sends with it.
final class InspectorProbe: Sendable {
    let inspector: Inspector
    let service: WebService
    let session = MockSession()
    /// Responses of a real connection, for the phases of a transport.
    let server: MockServer
    private let gate = Gate()
    /// The bytes of an event stream that remains open.
    let (chunks, events) = AsyncStream<Data>.makeStream()
    /// The messages to send over a WebSocket that remains open.
    let (messages, outgoing) = AsyncStream<String>.makeStream()

    /// - Parameters: See `Inspector`.
    init(maximumExchanges: Int = 1100, bodyLimit: Int = 1 << 20, showsBinaryBodies: Bool) throws {
        server = try MockServer()
        service = WebService(baseURLString: "https://brewhapi.example.com/v1")
        service.session = session
        inspector = try Inspector(
            observing: service, maximumExchanges: maximumExchanges, bodyLimit: bodyLimit,
            showsBinaryBodies: showsBinaryBodies)
        addDemo()
        addSecrets()
        addHostile()
        addBodies()
        addSockets()
        addQuestions()
        session.on(.path("/v1/any/{name}"), .json(["ok": true]))
        session.on(.path("/v1/kind/{name}"), .json(["ok": true]))
        session.on(.path("/v1/held")) { [gate] _ in
            gate.wait()
            return .json(["released": true])
        }
    }

    func run(_ command: String, _ argument: String?) async {
        switch command {
        case "demo": await demo()
        case "canary": await canary()
        case "hostile":
            for path in ["markup", "control", "invalid", "event", "svg", "nested"] {
                await send(service.GET("/hostile/\(path)"))
            }
        case "many":
            for number in 0..<(argument.flatMap { Int($0) } ?? 0) { await send(service.GET("/any/\(number)")) }
        case "large":
            let text = String(repeating: "Trashboat\n", count: (argument.flatMap { Int($0) } ?? 0) * 100_000)
            session.on(.GET, "/v1/large", .text(text))
            await send(service.GET("/large"))
        case "one": await send(service.GET("/any/\(argument ?? "")"))
        case "named":
            let other = service.clone()
            other.observers = [inspector.observer(named: argument ?? "")]
            await send(other.GET("/any/named"))
        case "failures": await failures()
        case "bodies": await bodies()
        case "cached": await cached()
        case "kinds": await kinds()
        case "questions": await questions()
        case "phases": await phases()
        case "exit":
            await send(service.GET("/any/last"))
            exit(0)
        case "stream":
            _ = Task { [service] in
                do { for try await _ in service.GET("/stream").events() {} } catch {}  // until the program ends
            }
        case "event": events.yield(Data("id: 7\nevent: beer\ndata: {\"name\": \"\(argument ?? "")\"}\n\n".utf8))
        case "socket": openSocket()
        case "message": outgoing.yield(argument ?? "")
        case "hold": _ = service.GET("/held").resume()
        case "release": gate.open()
        case "stop": inspector.stop()
        default: print("unknown command")
        }
    }

    func send(_ task: SessionTask) async {
        _ = await task.data().result
    }

    // MARK: Failures

    private func failures() async {
        let direct = WebService(baseURL: server.baseURL)
        direct.observers = [inspector.observer]
        var cut = MockResponse(statusCode: 200)
        cut.wire = .raw(
            Data("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nLong Trail".utf8))
        server.on(.GET, "/cut", cut)
        await send(direct.GET("/cut"))
        session.on(.GET, "/v1/undecodable", .json(["name": 7]))
        _ = await service.GET("/undecodable").decode([String].self).result
        session.on(
            .GET, "/v1/broken-stream",
            MockResponse(statusCode: 200) { body in
                try body.write(Data("Trashboat".utf8))
                throw URLError(.networkConnectionLost)
            }.header("Content-Type", "text/plain"))
        do { for try await _ in service.GET("/broken-stream").lines() {} } catch {}  // as expected
        session.on(.GET, "/v1/cancelled", MockResponse(statusCode: 200).after(.seconds(3600)))
        let task = service.GET("/cancelled").data()
        task.resume()
        task.cancel()
        _ = await task.result
    }

    // MARK: An example

    private func addDemo() {
        let brewer: JSONValue = [
            "id": 7, "name": "Long Trail", "city": "Bridgewater Corners", "state": "vermont", "founded": 1989,
            "beers": [
                ["name": "Ale", "abv": 4.6, "awards": []], ["name": "Double Bag", "abv": 7.2, "awards": ["Gold 2008"]],
            ],
            "website": nil, "active": true,
        ]
        let delay = Duration.milliseconds
        session.on(.path("/v1/brewers/{id}"), .json(brewer).after(delay(28)).header("ETag", "\"686897696a7c876b\""))
        session.on(
            .GET, "/v1/brewers", .json(["brewers": [brewer, brewer], "next": "/v1/brewers?page=2"]).after(delay(64)))
        session.on(.POST, "/v1/brewers", .json(["id": 12, "name": "Trashboat"], status: 201).after(delay(92)))
        session.on(.DELETE, "/v1/brewers/{id}", MockResponse(statusCode: 204).after(delay(31)))
        session.on(.GET, "/v1/brewers/99", .problem(404, title: "There is no brewer 99").after(delay(17)))
        session.on(
            .POST, "/oauth/token",
            .json(["access_token": "canary-token", "token_type": "Bearer", "expires_in": 3600]).after(delay(120)))
        session.on(
            .GET, "/v1/label", .init(statusCode: 200, headers: ["Content-Type": "image/png"], data: Picture.png()))
        session.on(
            .GET, "/v1/specials",
            [
                MockResponse(statusCode: 503).header("Retry-After", "0").after(delay(40)),
                MockResponse(statusCode: 503).after(delay(35)), .json(["specials": [brewer]]).after(delay(55)),
            ])
        session.on(.GET, "/v1/timeout", .error(URLError(.timedOut)).after(delay(80)))
        session.on(.GET, "/v1/report", .text("brewer;beers\nLong Trail;12\nTrashboat;3\n").after(delay(22)))
    }

    private func demo() async {
        var login = Request(.POST, url: "https://brewhapi.example.com/oauth/token")
        login.formParameters = ["grant_type": "password", "username": "ann", "password": "canary-password"]
        await send(service.sessionTask(request: login))
        for path in ["/brewers", "/brewers/7", "/label", "/brewers/99", "/report", "/timeout"] {
            await send(service.GET(path).setHeaderValue("Bearer canary-token", forName: "Authorization"))
        }
        var added = Request(.POST, url: "https://brewhapi.example.com/v1/brewers")
        added.content = .json(["name": "Trashboat", "state": "new york", "pin": "canary-pin"])
        await send(service.sessionTask(request: added))
        var specials = Request(url: "https://brewhapi.example.com/v1/specials?limit=3")
        specials.options.interceptors = [RetryPolicy(baseDelay: .milliseconds(60))]
        await send(service.sessionTask(request: specials))
        await send(service.DELETE("/brewers/12"))
        let direct = WebService(baseURL: server.baseURL)
        direct.observers = [inspector.observer]
        server.on(.GET, "/status", .json(["status": "open"]))
        await send(direct.GET("/status"))
    }
}

/// Holds a handler until it is opened.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() {
        _ = semaphore.wait(timeout: .now() + .seconds(60))
        semaphore.signal()
    }

    func open() {
        semaphore.signal()
    }
}
