import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The life cycle of tasks and sessions over Foundation, beyond the promises of every session.
@Suite("The life cycle of tasks over Foundation", .serialized, .permit)
struct FoundationLifecycleTests {
    @Test(
        "A task that is resumed, suspended and cancelled completes once, as cancelled",
        arguments: FoundationBacked.allCases)
    func suspendAndCancel(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .noResponse
            return response
        }
        let session = kind.session
        for round in 0..<50 {
            let answer: Answer = await withCheckedContinuation { continuation in
                let task = session.dataTask(request: URLRequest(url: server.baseURL)) { data, response, error in
                    continuation.resume(
                        returning: Answer(data: data, response: response as? HTTPURLResponse, error: error))
                }
                task.resume()
                if round.isMultiple(of: 3) { while server.receivedRequests.count <= round / 3 { sched_yield() } }
                task.suspend()
                task.cancel()
                task.suspend()
                task.resume()
            }
            #expect(answer.urlErrorCode == .cancelled)
        }
        let task = kind.service(server).GET("/")
        let outcome = Collected<URLError.Code?>()
        task.responseError { outcome.add(($0 as? URLError)?.code) }.resume()
        task.suspend()
        task.cancel()
        #expect(await outcome.wait() == [.cancelled])
    }

    @Test(
        "A task that is never resumed is deallocated with its handlers",
        arguments: FoundationBacked.allCases)
    func neverResumed(kind: FoundationBacked) async throws {
        weak var completion: Canary?
        weak var handler: Canary?
        do {
            let canary = Canary {}
            completion = canary
            _ = kind.session.dataTask(request: Request(url: "http://127.0.0.1:1/")) { _, _, _ in canary.touch() }
            let another = Canary {}
            handler = another
            let service = WebService("http://127.0.0.1:1/", session: kind.session)
            service.GET("/").response { _, _ in another.touch() }
        }
        await eventually { completion == nil && handler == nil }
        #expect(completion == nil)
        #expect(handler == nil)
    }

    @Test("A 407 of an origin server completes as a response", arguments: FoundationBacked.allCases)
    func proxyChallenge(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 407, data: Data("which proxy?".utf8))
            response.headers["Proxy-Authenticate"] = "Basic realm=\"x\""
            return response
        }
        let answer = await kind.service(server).GET("/").setDeadline(.seconds(20)).delivered()
        #expect(answer.status == 407)
        #expect(answer.text == "which proxy?")
        #expect(server.receivedRequests.count == 1)
    }

    @Test("No file appears in the home folder")
    func homeFolder() async throws {
        let home = TemporaryFolder.forTest().url
        let run = try await SessionProbe.run(
            ["probe", "requests and their responses"], environment: ["HOME": home.path])
        #expect(run.status == 0, "\(run.output)")
        // Foundation creates empty folders for its cache and its cookies with every configuration.
        let entries = FileManager.default.enumerator(at: home, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        #expect(entries?.filter { !$0.hasDirectoryPath } == [])
    }

    @Test("Without a network, errors arrive in time and are URLErrors that RetryPolicy retries")
    func noNetwork() async throws {
        let unshare = "/usr/bin/unshare"
        guard FileManager.default.isExecutableFile(atPath: unshare) else {
            return print("SKIPPED: there is no \(unshare)")
        }
        let run = try await SessionProbe.run(["probe", "no network"], launcher: [unshare, "--map-root-user", "--net"])
        if run.output.contains("unshare: ") { return print("SKIPPED: \(run.output)") }
        #expect(run.status == 0, "\(run.output)")
    }

    @Test("A server that listens only on IPv6 is reached by its name")
    func onlyVersion6() async throws {
        let run = try await SessionProbe.run(["probe", "a server on ::1 only, by name"])
        if run.isImpossible { return print("SKIPPED: there is no IPv6 loopback") }
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(
        "A connection that is lost has the same error as over CurlSession, and the request is sent again",
        arguments: [MockResponse.Wire.disconnect, .cut(after: 200), .reset(after: 200)])
    func lostConnection(wire: MockResponse.Wire) async throws {
        let server = try MockServer()
        var response = MockResponse.text(String(repeating: "ale", count: 100))
        response.wire = wire
        server.on(.GET, "/", [response, .text("ale")])
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [RetryPolicy(baseDelay: .milliseconds(1))]
        let task = service.GET("/").string()
        #expect(try await task.value == "ale")
        #expect(task.timeline.events.first { $0.kind == .attempt }?.detail.contains("-1005") == true)
    }

    @Test("A certificate without trust is a TLS error, and the request is not sent again")
    func distrust() async throws {
        guard let server = try? MockServer(tls: true) else { return print("SKIPPED: openssl is not installed") }
        server.on(.any, .text("ale"))
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [.retry()]
        let task = service.GET("/").string()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .serverCertificateUntrusted)
        #expect(task.timeline.events.count { $0.kind == .attempt } == 1)
        #expect(server.receivedRequests.isEmpty)
    }

    /// Foundation on Linux trusts only the certificates of the system, whose file another one covers
    /// in a namespace of mounts.
    @Test("Requests, responses and faults over TLS with a trusted certificate")
    func trust() async throws {
        let unshare = "/usr/bin/unshare"
        let trusted = "/etc/ssl/certs/ca-certificates.crt"
        guard let server = try? MockServer(tls: true), let certificate = server.certificateFile?.path,
            [unshare, trusted].allSatisfy(FileManager.default.fileExists)
        else { return print("SKIPPED: openssl, \(unshare) or \(trusted) is missing") }
        server.on(.POST, "/echo") { MockResponse(statusCode: 200, data: $0.body) }
        let faults: [(String, MockResponse.Wire)] = [
            ("/cut", .cut(after: 200)), ("/reset", .reset(after: 200)), ("/disconnect", .disconnect),
        ]
        for (path, wire) in faults {
            var response = MockResponse.text(String(repeating: "ale", count: 100))
            response.wire = wire
            server.on(.GET, path, response)
        }
        let run = try await SessionProbe.run(
            ["probe", "a server with TLS"],
            launcher: [
                unshare, "--map-root-user", "--mount", "/bin/sh", "-c",
                "mount --bind \(certificate) \(trusted) || { echo no mount; exit 3; }; exec \"$0\" \"$@\"",
            ], environment: ["WEBSERVICE_SERVER": server.baseURLString, "PATH": "/usr/bin:/bin"])
        if run.isImpossible || run.output.contains("unshare: ") { return print("SKIPPED: \(run.output)") }
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(
        "With an endless body of small chunks, every task ends in time, resume() does not block and memory is bounded")
    func flood() async throws {
        let run = try await SessionProbe.run(
            ["probe", "a flood: every task ends in time, resume() does not block, and memory is bounded"],
            environment: soak)
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(
        "The process survives sessions that are deallocated while their timed-out tasks are being cancelled")
    func timeoutsAndRelease() async throws {
        let run = try await SessionProbe.run(
            ["probe", "sessions are deallocated while tasks that timed out are being cancelled"], environment: soak)
        #expect(run.status == 0, "\(run.output)")
    }

    /// Cancellation and completion at the same instant may end the process (F3), regardless of the
    /// session.
    @Test(
        "With random cancellations and deallocated sessions, every task completes, or F3 ends the process")
    func cancelAndRelease() async throws {
        let run = try await SessionProbe.run(
            ["probe", "random cancels and sessions that are deallocated"], environment: soak)
        #expect(run.status < 0 || run.status == 0, "\(run.output)")
        if run.status < 0 { print("signal \(-run.status) ended the process") }
    }

    private var soak: [String: String] {
        (isSoak ? ["WEBSERVICE_SOAK": "1"] : [:]).merging(isThorough ? ["WEBSERVICE_THOROUGH": "1"] : [:]) { $1 }
    }
}
