import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// Complete responses that the server sends before it has read the body of the request.
@Suite("Curl session: early responses", .permit)
struct CurlEarlyResponseTests {
    // MARK: Races

    /// With `WEBSERVICE_SOAK=1`, a hundred responses of each kind and those over TLS. The output
    /// lists the losses.

    @Test(
        "No response is lost that was received before the sending of the body failed",
        .enabled(if: StrayServer.python != nil, "python3 is missing"))
    func plain() async throws {
        let server = try EarlyServer()
        let lost = try await lost("http://127.0.0.1:\(server.port)", over: CurlSession())
        // libcurl may have read a piece of the head.
        #expect(lost.filter { !$0.key.contains("split") } == [:])
    }

    @Test(
        "Over TLS, no response of a server that reads the rest of the body is lost",
        .enabled(if: StrayServer.python != nil && SecureServer.isAvailable, "python3, nginx or openssl is missing"))
    func secure() async throws {
        let certificates = try SecureServer()
        let server = try EarlyServer(certificates)
        let session = try CurlSession { $0.tls.trustedCertificatesFile = certificates.path("ca.pem") }
        let lost = try await lost("https://localhost:\(server.securePort)", over: session)
        #expect(lost.filter { $0.key.contains("linger") } == [:])
    }

    /// Sends files and sequences in turn with the session and with curl's own tool.
    ///
    /// - Returns: The number of responses that the session has lost, by body and ending.
    private func lost(_ base: String, over session: CurlSession) async throws -> [String: Int] {
        let file = TemporaryFolder.forTest().url.appendingPathComponent("early")
        try Data(count: 8 << 20).write(to: file)
        var (ours, tools) = ([String: Int](), [String: Int]())
        let rounds = isSoak ? 100 : 2
        for round in 0..<rounds {
            let status = round.isMultiple(of: 2) ? 413 : 307
            for ending in EarlyServer.Ending.allCases {
                let url = "\(base)/\(ending.rawValue)/\(status)"
                for isStream in [false, true] {
                    let kind = "\(isStream ? "stream" : "file") \(ending)"
                    var request = Request(.PUT, url: url)
                    request.content = isStream ? .stream(length: nil) { Self.zeros } : .file(file)
                    let response = await response(to: request, over: session)
                    if (try? response.get().status) != status { ours[kind, default: 0] += 1 }  // counted as lost
                    guard isSoak else { continue }
                    if try Self.statusOfTool(url, isStream, file) != status { tools[kind, default: 0] += 1 }
                }
            }
        }
        if isSoak { print("\(base.prefix(5)), lost of \(rounds) each: CurlSession \(ours), curl \(tools)") }
        return ours
    }

    private static var zeros: AsyncStream<Data> {
        AsyncStream { continuation in
            for _ in 0..<128 { continuation.yield(Data(count: 64 << 10)) }
            continuation.finish()
        }
    }

    private func response(to request: Request, over session: CurlSession) async -> Result<Response, any Error> {
        let results = Collected<Result<Response, any Error>>()
        session.responseTask(request: request, progress: nil) { result, _ in results.add(result) }.resume()
        return await results.wait()[0]
    }

    /// Returns the status that curl's own tool has received; `nil` if it has failed.
    private static func statusOfTool(_ url: String, _ isStream: Bool, _ file: URL) throws -> Int? {
        let output = Pipe()
        let body = isStream ? ["-T", "-", "-H", "Transfer-Encoding: chunked"] : ["-T", file.path]
        let process = ChildProcess(
            "/usr/bin/env",
            [
                "-u", "LD_LIBRARY_PATH", "curl", "-s", "-k", "--http1.1", "-o", "/dev/null", "-H", "Expect:",
                "-w", "%{exitcode} %{http_code}\n",
            ] + body + [url],
            input: isStream ? .file(try FileHandle(forReadingFrom: file)) : .null, output: .pipe(output), errors: .null)
        try process.run()
        let words = StrayServer.readLine(of: output).split(separator: " ").compactMap { Int($0) }
        process.waitUntilExit()
        return words.first == 0 ? words.last : nil
    }

    // MARK: Failed sendings

    /// The response, and what the receiver receives.
    static let responses: [(String, [String])] = [
        ("HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\nearly", ["413", "early", "end"]),
        ("HTTP/1.1 413 Large\nContent-Length: 5\n\nearly and more", ["413", "early", "end"]),
        (
            "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 307 Other\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            ["103", "307", "end"]
        ),
        ("HTTP/1.1 204 None\r\n\r\n", ["204", "end"]),
        (chunked + "3\r\near\r\n2 ;x=1\r\nly\r\n0\r\nX-Sum: 1\r\n\r\n", ["200", "early", "end X-Sum: 1"]),
        // The end of the connection is a reset, so the response may be incomplete.
        ("HTTP/1.1 413 Large\r\n\r\nearly", ["413", "early", "lost"]),
        ("HTTP/1.1 413 Large\r\nContent-Length: 9\r\n\r\nearly", ["413", "early", "lost"]),
        (chunked + "9\r\nearly", ["200", "early", "lost"]),
        (chunked + "5\r\nearly", ["200", "early", "lost"]),
        (chunked + "5\r\nearly\r\n0\r\nX-Sum: 1\r\n", ["200", "early", "lost"]),
        ("HTTP/1.1 413 Large\r\nContent-Length: 5\r\n", ["lost"]),
        ("HTTP/1.1 413", ["lost"]),
        ("ngth: 5\r\n\r\nearly", ["lost"]),
        ("", ["lost"]),
        (chunked + "z\r\n", ["200", "malformed"]),
        (chunked + "5 5\r\nearly\r\n0\r\n\r\n", ["200", "early", "end"]),
        (chunked + "\r\nearly\r\n0\r\n\r\n", ["200", "malformed"]),
        (chunked + "10000000000000000\r\n", ["200", "malformed"]),
        (chunked + "5\r\nearly!!", ["200", "early", "malformed"]),
        ("HTTP/1.1 413 Large\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nearly", ["malformed"]),
        ("HTTP/1.1 413 Large\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nearly", ["malformed"]),
    ]

    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    @Test(
        "After a failed sending, the received bytes are delivered by the rules of any response",
        .enabled(if: StrayServer.python != nil, "python3 is missing"), arguments: [false, true])
    func failedSending(isReused: Bool) async throws {
        let server = try EarlyServer()
        let session = try CurlSession()
        for (response, expected) in Self.responses {
            if isReused {
                let first = Request(.GET, url: "http://127.0.0.1:\(server.port)/keep/")
                _ = try await self.response(to: first, over: session).get()
            }
            let receiver = EarlyReceiver(server)
            try await exchange(response, server, session, receiver)
            // A sequence cannot be sent again, and an exchange without a response ends.
            #expect(receiver.events == expected, "\(response.debugDescription)")
        }
    }

    @Test(
        "After a failed sending, the receiver can pause and cancel",
        .enabled(if: StrayServer.python != nil, "python3 is missing"))
    func pauses() async throws {
        let server = try EarlyServer()
        let session = try CurlSession()
        let response = Self.chunked + "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"
        let receiver = EarlyReceiver(server, mayPause: true)
        try await exchange(response, server, session, receiver)
        #expect(receiver.events == ["200", "paused", "a", "paused", "b", "paused", "c", "end"])
        let other = EarlyReceiver(server, mayPause: true, isCancelled: true)
        try await exchange(response, server, session, other)
        #expect(other.events == ["200", "paused", "cancelled"])
        // The session can be used afterwards.
        let third = Request(.GET, url: "http://127.0.0.1:\(server.port)/keep/")
        #expect(try await self.response(to: third, over: session).get().status == 200)
    }

    @Test(
        "An exchange that is continued and cancelled at once completes once",
        .enabled(if: StrayServer.python != nil, "python3 is missing"))
    func continuedAndCancelled() async throws {
        let server = try EarlyServer()
        let session = try CurlSession()
        let receiver = EarlyReceiver(server, mayPause: true)
        let digits = (Self.chunked + "1\r\na\r\n0\r\n\r\n").utf8.map {
            String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
        }.joined()
        var request = Request(.PUT, url: "http://127.0.0.1:\(server.port)/reset/\(digits)")
        request.content = .stream(length: nil) { Self.zeros }
        let task = session.streamTask(request: try request.encode(), receiver: receiver)
        task.resume()
        await eventually("the receiver pauses") { receiver.isPaused }
        // The loop takes both requests at once, because it is busy with another response.
        let (isBusy, isOver) = (Collected<Void>(), DispatchSemaphore(value: 0))
        let blocking = BlockingReceiver {
            isBusy.add(())
            _ = isOver.wait(timeout: .now() + 60)
        }
        session.streamTask(request: Request(url: "http://127.0.0.1:\(server.port)/keep/"), receiver: blocking).resume()
        await isBusy.wait()
        receiver.proceed()
        task.receiveMore()
        task.cancel()
        isOver.signal()
        await eventually("the exchange ends") { receiver.isOver }
        session.close()
        #expect(receiver.events == ["200", "paused", "a", "end"])
    }

    /// Sends a body. The server responds and resets the connection while the loop reads the second
    /// part of the body.
    private func exchange(
        _ response: String, _ server: EarlyServer, _ session: CurlSession, _ receiver: EarlyReceiver
    ) async throws {
        let digits = response.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        var request = Request(.PUT, url: "http://127.0.0.1:\(server.port)/reset/\(digits)")
        request.content = .stream(length: nil) { Self.zeros }
        let task = session.streamTask(request: try request.encode(), receiver: receiver)
        task.resume()
        while true {
            await eventually("the receiver pauses or the exchange ends") { receiver.isPaused || receiver.isOver }
            if receiver.isOver { return }
            if receiver.isCancelled { task.cancel() }
            receiver.proceed()
            task.receiveMore()
        }
    }
}

/// A receiver that makes the server reset the connection, and records what it receives.
private final class EarlyReceiver: BodyReceiver {
    private struct State {
        var events: [String] = []
        var sendings = 0
        var isPaused = false
        var accepts = false
        var isOver = false
    }

    let mayPause: Bool
    let isCancelled: Bool
    private let server: EarlyServer
    private let state = Box(State())

    init(_ server: EarlyServer, mayPause: Bool = false, isCancelled: Bool = false) {
        (self.server, self.mayPause, self.isCancelled) = (server, mayPause, isCancelled)
    }

    var events: [String] { state.value.events }
    var isPaused: Bool { state.value.isPaused }
    var isOver: Bool { state.value.isOver }

    func proceed() { state.change { ($0.isPaused, $0.accepts) = (false, true) } }

    func didSend(_ byteCount: Int64, of length: Int64?) {
        let sendings = state.withValue { state in
            state.sendings += 1
            return state.sendings
        }
        if sendings == 2 { server.reset() }
    }

    func didReceive(interim head: ResponseHead) { state.change { $0.events.append("\(head.status)") } }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {
        state.change { $0.events.append("\(head.status)") }
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
        let text = String(decoding: bytes, as: UTF8.self)
        return state.withValue { state in
            if mayPause, !state.accepts {
                state.events.append("paused")
                state.isPaused = true
                return .pause
            }
            state.accepts = false
            if !mayPause, let last = state.events.last, Int(last) == nil {
                state.events[state.events.count - 1] += text
            } else {
                state.events.append(text)
            }
            return .more
        }
    }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        state.change { state in
            switch result {
            case .success(let trailers):
                state.events.append((["end"] + trailers.map { "\($0.name): \($0.value)" }).joined(separator: " "))
            case .failure(let error as URLError) where error.code == .networkConnectionLost: state.events.append("lost")
            case .failure(let error as URLError) where error.code == .badServerResponse:
                state.events.append("malformed")
            case .failure(let error as URLError) where error.code == .cancelled: state.events.append("cancelled")
            case .failure(let error): state.events.append("\(error)")
            }
            state.isOver = true
        }
    }
}

/// A receiver that blocks the loop while it receives the head.
private final class BlockingReceiver: BodyReceiver {
    private let onHead: @Sendable () -> Void

    init(onHead: @escaping @Sendable () -> Void) { self.onHead = onHead }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) { onHead() }
    func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand { .more }
    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {}
}
