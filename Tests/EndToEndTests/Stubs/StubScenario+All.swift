import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

extension StubScenario {
    static let all = matching + responses + failures + records

    private static let ann = User(id: 7, name: "Ann")

    private static let matching: [StubScenario] = [
        StubScenario("placeholders are passed to the closure", ["200 7 drinks pale ale"]) { stubs, service in
            stubs.on(.GET, "/users/{id}/beers/{beer}") { request in
                .text("\(request.pathParameters["id"] ?? "") drinks \(request.pathParameters["beer"] ?? "")")
            }
            return [await service.GET("/users/7/beers/pale%20ale").outcomeText()]
        },
        StubScenario("wildcards match one segment or all remaining ones", ["200 one", "200 rest", "200 rest"]) {
            stubs, service in
            stubs.on(.GET, "/files/**", .text("rest"))
            stubs.on(.GET, "/files/*", .text("one"))
            return [
                await service.GET("/files/a").outcomeText(), await service.GET("/files/a/b").outcomeText(),
                await service.GET("/files").outcomeText(),
            ]
        },
        StubScenario("a query item selects a stub", ["200 page 2", "200 any page"]) { stubs, service in
            stubs.on(.GET, "/users", .text("any page"))
            stubs.on(.path("/users") && .query("page", "2"), .text("page 2"))
            return [
                await service.GET("/users").setQueryParameters(["page": 2, "q": "a b"]).outcomeText(),
                await service.GET("/users").setQueryParameters(["page": 3]).outcomeText(),
            ]
        },
        StubScenario("a header field selects a stub", ["200 German", "200 other"]) { stubs, service in
            stubs.on(.GET, "/", .text("other"))
            stubs.on(.method(.GET) && .header("Accept-Language", "de"), .text("German"))
            return [
                await service.GET("/").setHeaderValue("de", forName: .acceptLanguage).outcomeText(),
                await service.GET("/").setHeaderValue("fr", forName: .acceptLanguage).outcomeText(),
            ]
        },
        StubScenario("a part of a JSON body selects a stub", ["201 ", "422 "]) { stubs, service in
            stubs.on(.POST, "/users", .status(422))
            stubs.on(.method(.POST) && .json(["name": "Ann", "tags": ["a"]]), .status(201))
            return [
                await service.POST("/users").setJSON(["name": "Ann", "tags": ["a"], "id": 7]).outcomeText(),
                await service.POST("/users").setJSON(["name": "Bob", "tags": ["a"]]).outcomeText(),
            ]
        },
        StubScenario("a form selects a stub", ["200 welcome", "403 "]) { stubs, service in
            stubs.on(.POST, "/login", .status(403))
            stubs.on(.path("/login") && .form(["user": "ann lee"]), .text("welcome"))
            return [
                await service.POST("/login").setFormParameters(["user": "ann lee", "lang": "de"]).outcomeText(),
                await service.POST("/login").setFormParameters(["user": "bob"]).outcomeText(),
            ]
        },
        StubScenario("the bytes of a body select a stub", ["204 ", "400 "]) { stubs, service in
            stubs.on(.PUT, "/", .status(400))
            stubs.on(.body(Data([0, 255, 10])), .status(204))
            return [
                await service.PUT("/").setBody(Data([0, 255, 10])).outcomeText(),
                await service.PUT("/").setBody(Data([0, 255])).outcomeText(),
            ]
        },
        StubScenario("conditions are combined by or, not and a closure", ["204 ", "204 ", "405 ", "200 long"]) {
            stubs, service in
            stubs.on(.any, .status(405))
            stubs.on((.method(.PUT) || .method(.PATCH)) && !.path("/locked"), .status(204))
            stubs.on(.where("a long path") { $0.path.utf8.count > 20 }, .text("long"))
            return [
                await service.PUT("/a").outcomeText(), await service.PATCH("/a").outcomeText(),
                await service.PUT("/locked").outcomeText(),
                await service.GET("/abcdefghijklmnopqrstuvwxyz").outcomeText(),
            ]
        },
        StubScenario("the last stub that matches responds", ["200 second"]) { stubs, service in
            stubs.on(.GET, "/", .text("first"))
            stubs.on(.GET, "/", .text("second"))
            return [await service.GET("/").outcomeText()]
        },
        StubScenario("a stub for two requests leaves the third to the stub before it", ["503 ", "503 ", "200 ok"]) {
            stubs, service in
            stubs.on(.GET, "/", .text("ok"))
            stubs.on(.GET, "/", .status(503)).times(2)
            return [
                await service.GET("/").outcomeText(), await service.GET("/").outcomeText(),
                await service.GET("/").outcomeText(),
            ]
        },
        StubScenario("the last response of a list is repeated", ["200 a", "200 b", "200 b"]) { stubs, service in
            stubs.on(.GET, "/", [.text("a"), .text("b")])
            return [
                await service.GET("/").outcomeText(), await service.GET("/").outcomeText(),
                await service.GET("/").outcomeText(),
            ]
        },
        StubScenario("an empty list responds with 500", ["500 "]) { stubs, service in
            stubs.on(.GET, "/", [])
            return [await service.GET("/").outcomeText()]
        },
        StubScenario("each of 50 concurrent requests receives its own response", ["50"]) { stubs, service in
            stubs.on(.GET, "/{number}") { .text($0.pathParameters["number"] ?? "") }
            let matching = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<50 {
                    group.addTask { await service.GET("/\(number)").outcomeText() == "200 \(number)" }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            return ["\(matching)"]
        },
    ]

    private static let responses: [StubScenario] = [
        StubScenario("JSON is decoded", ["7 Ann"]) { stubs, service in
            stubs.on(.GET, "/users/7", .json(ann))
            let user = try await service.GET("/users/7").decode(User.self).value
            return ["\(user.id) \(user.name)"]
        },
        StubScenario("retries receive the following responses of a list", ["7 Ann", "3"]) { stubs, service in
            stubs.on(.GET, "/users/7", [503, 503, .json(ann)])
            service.interceptors = [RetryPolicy(maximumAttempts: 3, baseDelay: .milliseconds(1))]
            let user = try await service.GET("/users/7").decode(User.self).value
            return ["\(user.id) \(user.name)", "\(stubs.receivedRequests.count)"]
        },
        StubScenario(
            "problem details are the body of an error", ["unacceptableStatus", "Gone application/problem+json"]
        ) { stubs, service in
            stubs.on(.GET, "/", .problem(410, title: "Gone"))
            struct Problem: Decodable, Sendable { var title: String }
            var results: [String] = []
            do { _ = try await service.GET("/").data().value } catch { results.append(stubErrorText(error)) }
            let response = try await service.GET("/").data().validateNothing().response
            let problem = try JSONDecoder().decode(Problem.self, from: response.data)
            return results + ["\(problem.title) \(response.headers[.contentType] ?? "")"]
        },
        StubScenario("a response without content has no body", ["204 ", "304 "]) { stubs, service in
            stubs.on(.GET, "/204", .text("ignored", status: 204))
            stubs.on(.GET, "/304", .text("ignored", status: 304))
            return [await service.GET("/204").outcomeText(), await service.GET("/304").outcomeText()]
        },
        StubScenario("a response to HEAD has no body", ["200 "]) { stubs, service in
            stubs.on(.HEAD, "/", .text("ignored"))
            return [await service.HEAD("/").outcomeText()]
        },
        StubScenario("text is UTF-8", ["200 päle ☕"]) { stubs, service in
            stubs.on(.GET, "/", .text("päle ☕"))
            return [await service.GET("/").outcomeText()]
        },
        StubScenario("a file is delivered with its media type", ["200 true text/x-swift"]) { stubs, service in
            let file = URL(fileURLWithPath: #filePath)
            stubs.on(.GET, "/", .file(file, contentType: "text/x-swift"))
            let content = try Data(contentsOf: file)
            return [
                await service.GET("/").outcome {
                    "\($0.status) \($0.data == content) \($0.headers[.contentType] ?? "")"
                }
            ]
        },
        StubScenario("header fields are delivered", ["a b  c", "\"1\"", "x=1, y=2"]) { stubs, service in
            var response = MockResponse.status(200).header("X-Spaces", "a b  c").header(.eTag, "\"1\"")
            response.headers.add("x=1", for: .setCookie)
            response.headers.add("y=2", for: .setCookie)
            stubs.on(.GET, "/", response)
            let headers = try await service.GET("/").data().response.headers
            return [headers["X-Spaces"] ?? "", headers[.eTag] ?? "", headers[.setCookie] ?? ""]
        },
        StubScenario("a redirect leads to another stub", ["200 new", "/old, /new"]) { stubs, service in
            stubs.on(.GET, "/old", .status(302).header(.location, "/new"))
            stubs.on(.GET, "/new", .text("new"))
            let outcome = await service.GET("/old").outcomeText()
            return [outcome, stubs.receivedRequests.map(\.path).joined(separator: ", ")]
        },
        StubScenario("a body of 1 MB is sent and returned unchanged", ["200 true"]) { stubs, service in
            stubs.on(.PUT, "/") { request in MockResponse(statusCode: 200, data: request.body) }
            let body = DownloadFixture.content(1_000_000)
            return [await service.PUT("/").setBody(body).outcome { "\($0.status) \($0.data == body)" }]
        },
        StubScenario("the lines of a streamed response are delivered in order", ["a,b,c"]) { stubs, service in
            stubs.on(.GET, "/", .text("a\nb\r\nc"))
            var lines: [String] = []
            for try await line in service.GET("/").lines() { lines.append(line) }
            return [lines.joined(separator: ",")]
        },
        StubScenario("a sequence is streamed, each element when it is produced", ["a, b, c", "200 abc"]) {
            stubs, service in
            let (elements, producer) = AsyncStream.makeStream(of: Data.self)
            stubs.on(.GET, "/live", .stream(elements, contentType: "text/plain"))
            stubs.on(
                .GET, "/whole",
                .stream(
                    AsyncStream { continuation in
                        for text in ["a", "b", "c"] { continuation.yield(Data(text.utf8)) }
                        continuation.finish()
                    }))
            var received: [String] = []
            let rest = Mutex(["b\n", "c\n"])
            producer.yield(Data("a\n".utf8))
            for try await line in service.GET("/live").lines() {
                received.append(line)
                let next = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                if let next { producer.yield(Data(next.utf8)) } else { producer.finish() }
            }
            return [received.joined(separator: ", "), await service.GET("/whole").outcomeText()]
        },
        StubScenario("progress is reported up to the end", ["7 of 7, 11 of 11"]) { stubs, service in
            stubs.on(.POST, "/", MockResponse(statusCode: 200, data: Data(count: 11)))
            let last = Mutex(TransferProgress())
            let task = service.POST("/").setBody(Data(count: 7)).onProgress { news in last.withLock { $0 = news } }
            _ = try await task.data().value
            let progress = last.withLock { $0 }
            return [
                "\(progress.bytesSent) of \(progress.bytesToSend ?? -1), "
                    + "\(progress.bytesReceived) of \(progress.bytesToReceive ?? -1)"
            ]
        },
        StubScenario("a delayed response arrives after its delay", ["200 late", "true"]) { stubs, service in
            stubs.on(.GET, "/", .text("late").after(.milliseconds(100)))
            let task = service.GET("/")
            let outcome = await task.outcomeText()
            return [outcome, "\((task.metrics.responseTime ?? .zero) >= .milliseconds(99))"]
        },
    ]

    private static let failures: [StubScenario] = [
        StubScenario("a delay longer than the timeout is a timeout", ["timedOut"]) { stubs, service in
            stubs.on(.GET, "/", .text("late").after(.seconds(600)))
            return [await service.GET("/").setTimeout(.milliseconds(200)).outcomeText()]
        },
        StubScenario("a delay longer than the deadline exceeds the deadline", ["deadline"]) { stubs, service in
            stubs.on(.GET, "/", .text("late").after(.seconds(600)))
            return [await service.GET("/").setDeadline(.milliseconds(200)).outcomeText()]
        },
        StubScenario("a request without a response times out", ["timedOut"]) { stubs, service in
            var silence = MockResponse.status(200)
            silence.wire = .noResponse
            stubs.on(.GET, "/", silence)
            return [await service.GET("/").setTimeout(.milliseconds(200)).outcomeText()]
        },
        StubScenario("a cancelled request is cancelled", ["cancelled"]) { stubs, service in
            stubs.on(.GET, "/", .text("late").after(.seconds(600)))
            let task = service.GET("/").data().resume()
            await eventually("the request is received") { !stubs.receivedRequests.isEmpty }
            task.cancel()
            do { return ["\(try await task.value)"] } catch { return [stubErrorText(error)] }
        },
        StubScenario("a body over the limit is responseTooLarge", ["responseTooLarge", "200 10"]) { stubs, service in
            stubs.on(.GET, "/{size}") { request in
                MockResponse(statusCode: 200, data: Data(count: Int(request.pathParameters["size"] ?? "") ?? 0))
            }
            var results: [String] = []
            for size in [11, 10] {
                var request = service.request(.GET, path: "/\(size)")
                request.options.maximumResponseBytes = 10
                results.append(
                    await service.sessionTask(request: request).outcome { "\($0.status) \($0.data.count)" })
            }
            return results
        },
        StubScenario("a connection that is closed without a response is lost", ["lost"]) { stubs, service in
            var response = MockResponse.status(200)
            response.wire = .disconnect
            stubs.on(.POST, "/", response)
            return [await service.POST("/").outcomeText()]
        },
        StubScenario("a response that is cut off in its body is lost", ["lost", "lost"]) { stubs, service in
            var response = MockResponse.text(String(repeating: "x", count: 10_000))
            response.wire = .cut(after: 5_000)
            stubs.on(.GET, "/cut", response)
            response.wire = .reset(after: 5_000)
            stubs.on(.GET, "/reset", response)
            return [await service.GET("/cut").outcomeText(), await service.GET("/reset").outcomeText()]
        },
        StubScenario(
            "an error thrown by a closure is the error of the request", ["decoding"],
            differences: overSockets(
                ["500 the handler for GET / threw: decoding: thrown\n"], "a server responds with the error as text")
        ) { stubs, service in
            stubs.on(.GET, "/") { _ in throw WebServiceError(.decoding, "thrown") }
            return [await service.GET("/").outcomeText()]
        },
        StubScenario(
            "an error as a response is the error of the request", ["URLError -1009"],
            differences: overSockets(["lost"], "a server cannot send an error and closes the connection")
        ) { stubs, service in
            stubs.on(.POST, "/", .error(URLError(.notConnectedToInternet)))
            return [await service.POST("/").outcomeText()]
        },
        StubScenario(
            "a request without a stub is an error", ["noStub"],
            differences: overSockets(
                ["404 no stub matches GET /; there are no stubs\n"], "a server responds with the explanation")
        ) { stubs, service in
            [await service.GET("/").outcomeText()]
        },
    ]

    private static let records: [StubScenario] = [
        StubScenario(
            "requests are recorded with their parts",
            [
                "POST /users [page=2] application/json Ann",
                "PUT /form [] application/x-www-form-urlencoded name=Ann Lee",
            ]
        ) { stubs, service in
            stubs.on(.any, 204)
            _ = await service.POST("/users").setQueryParameters(["page": 2]).setJSON(["name": "Ann"]).outcomeText()
            _ = await service.PUT("/form").setFormParameters(["name": "Ann Lee"]).outcomeText()
            return stubs.receivedRequests.map { request in
                let query = request.queryItems.map { "\($0.name)=\($0.value)" }
                let start = "\(request.method) \(request.path) [\(query.joined())]"
                let contentType = request.headers[.contentType] ?? ""
                let json = try? request.decode([String: String].self)  // a form is not JSON
                let form = request.formItems.map { "\($0.name)=\($0.value)" }.joined()
                return "\(start) \(contentType) \(json?["name"] ?? form)"
            }
        },
        StubScenario(
            "a verification reports unused stubs, calls, order and unmatched requests",
            [
                "callCount GET /unused was not used", "callCount GET /a was used 1 of 2 times",
                "order GET /a was used after GET /b", "unmatchedRequest no stub matches DELETE /none",
            ]
        ) { stubs, service in
            stubs.on(.GET, "/unused", 204)
            stubs.on(.GET, "/a", 204).times(2)
            stubs.on(.GET, "/b", 204)
            for path in ["/b", "/a"] { _ = await service.GET(path).outcomeText() }
            _ = await service.DELETE("/none").outcomeText()
            do throws(VerificationError) {
                try stubs.verify(inOrder: true)
                return []
            } catch {
                return error.violations.map { violation in
                    let text = violation.message.prefix { $0 != "(" && $0 != ";" }
                    return "\(violation.kind) \(text)".trimmingCharacters(in: .whitespaces)
                }
            }
        },
        StubScenario("a verification accepts used and optional stubs", ["200 a", "verified"]) { stubs, service in
            stubs.on(.GET, "/a", .text("a")).times(1)
            stubs.on(.GET, "/b", 204).optional()
            let outcome = await service.GET("/a").outcomeText()
            try stubs.verify(inOrder: true)
            return [outcome, "verified"]
        },
    ]
}
