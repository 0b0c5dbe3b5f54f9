import Foundation
import TestSupport
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

/// A clock that the test advances.
final class TurnedClock: Timekeeper {
    private let time: Mutex<Date>

    init(_ start: Date = Date(timeIntervalSince1970: 1_800_000_000)) { time = Mutex(start) }

    var instant: UInt64 { TaskClock.system.now }
    var date: Date { time.withLock { $0 } }
    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        TaskClock.system.schedule(after: delay, target)
    }
    func cancel(_ alarm: Alarm) { TaskClock.system.cancel(alarm) }
    func advance(by seconds: TimeInterval) { time.withLock { $0.addTimeInterval(seconds) } }
}

/// Runs one test of the suite, both as the server and as the client.
final class HTTPCacheRun: Sendable {
    private struct State {
        /// The received requests, each with its step.
        var received: [(step: Int, request: ReceivedRequest)] = []
        /// The validators that were sent.
        var validators: Set<String> = []
    }

    private let test: HTTPCacheSuite.Test
    private let clock = TurnedClock()
    private let state = Mutex(State())

    init(_ test: HTTPCacheSuite.Test) { self.test = test }

    // MARK: - The server

    func answer(_ request: ReceivedRequest) -> MockResponse {
        guard let number = request.headers["Req-Num"].flatMap({ Int($0) }), test.requests.indices.contains(number - 1)
        else {
            return MockResponse(statusCode: 400)
        }
        let step = test.requests[number - 1]
        let now = clock.date
        clock.advance(by: step.response_pause ?? 0)
        let (count, isKnown) = state.withLock { state in
            state.received.append((number, request))
            let sent = [request.headers["If-None-Match"], request.headers["If-Modified-Since"]].compactMap { $0 }
            return (state.received.count, sent.contains { state.validators.contains($0) })
        }
        let isNotModified = step.isValidated && isKnown
        var response = MockResponse(
            statusCode: isNotModified ? 304 : step.status, data: Data((step.response_body ?? test.id).utf8))
        if step.disconnect == true {
            response.wire = .disconnect
            return response
        }
        response.headers.add("\(count)", for: "Server-Request-Count")
        response.headers.add("\(number)", for: "Client-Request-Count")
        response.headers.add("\(Int(now.timeIntervalSince1970))", for: "Server-Now")
        for field in step.response_headers ?? [] {
            let name = field[0].text(of: "", now)
            var value = field[1].text(of: name, now)
            if step.magic_locations == true, ["location", "content-location"].contains(name.lowercased()) {
                value = value.isEmpty ? request.path : "/\(test.id)/\(value)"
            }
            response.headers.add(value, for: Headers.Name(name))
            if ["etag", "last-modified"].contains(name.lowercased()) {
                state.withLock { _ = $0.validators.insert(value) }
            }
        }
        if let interim = step.interim_responses { response.wire = .raw(bytes(of: response, after: interim)) }
        return response
    }

    private func bytes(of response: MockResponse, after interim: [[HTTPCacheSuite.Value]]) -> Data {
        var text = ""
        for message in interim {
            text += "HTTP/1.1 \(message[0].text(of: "", clock.date)) Interim\r\n"
            for field in message.dropFirst().first?.members ?? [] {
                text += "\(field.members[0].text(of: "", clock.date)): \(field.members[1].text(of: "", clock.date))\r\n"
            }
            text += "\r\n"
        }
        text += "HTTP/1.1 \(response.statusCode) Final\r\nContent-Length: \(response.data.count)\r\n"
        for field in response.headers { text += "\(field.name): \(field.value)\r\n" }
        return Data((text + "\r\n").utf8) + response.data
    }

    // MARK: - The client

    /// - Returns: The deviations from the test. Empty if there are none.
    func play(with service: WebService) async -> [String] {
        let cache = ResponseCache(
            storage: MemoryStorage(), account: { "suite" }, usesHeuristics: true, storageErrorObserver: nil,
            timekeeper: clock)
        service.interceptors = [cache]
        var complaints: [String] = []
        var serverNow = clock.date
        for (index, step) in test.requests.enumerated() {
            var found: [String] = []
            do {
                let request = request(index, step, serverNow, service)
                let response = try await service.sessionTask(request: request).data().validateNothing().response
                if let seconds = response.header("Server-Now").flatMap(TimeInterval.init) {
                    serverNow = Date(timeIntervalSince1970: seconds)
                }
                found = source(of: response, step) + fields(of: response, step, serverNow) + content(of: response, step)
            } catch {
                if step.disconnect != true || step.expected_type != nil { found.append("\(error)") }
            }
            complaints += (found + whatWasSent(step, index)).map { "\(index + 1): \($0)" }
            await cache.finishStoring()
            if step.pause_after == true { clock.advance(by: 3) }
        }
        return complaints
    }

    private func request(_ index: Int, _ step: HTTPCacheSuite.Step, _ serverNow: Date, _ service: WebService) -> Request
    {
        var path = "/\(test.id)" + (step.filename.map { "/" + $0 } ?? "")
        if let query = step.query_arg { path += "?" + query }
        var request = service.request(Request.Method(rawValue: step.request_method ?? "GET"), path: path)
        for field in step.request_headers ?? [] {
            let name = field[0].text(of: "", clock.date)
            let isOld = step.rfc850date?.contains(name.lowercased()) == true
            request.headers.add(
                field[1].text(of: name, step.magic_ims == true ? serverNow : clock.date, rfc850: isOld),
                for: Headers.Name(name))
        }
        request.headers["Req-Num"] = "\(index + 1)"
        if let body = step.request_body { request.body = Data(body.utf8) }
        if step.redirect == "manual" { request.options.redirectPolicy = .manual }
        if step.cache == "no-cache" { request.options.cachePolicy = .reloadRevalidatingCacheData }
        return request
    }

    private func source(of response: Response, _ step: HTTPCacheSuite.Step) -> [String] {
        let isRight =
            switch step.expected_type {
            case "cached": response.source == .cache
            case "not_cached": response.source == .network
            case "etag_validated", "lm_validated": response.source == .revalidated || response.status == 304
            default: true
            }
        return isRight ? [] : ["came from \(response.source)"]
    }

    private func fields(of response: Response, _ step: HTTPCacheSuite.Step, _ serverNow: Date) -> [String] {
        var found: [String] = []
        for expected in step.expected_response_headers ?? [] {
            let parts = expected.members
            let name = parts[0].text(of: "", serverNow)
            let value = response.header(Headers.Name(name))
            if parts.count == 1, value == nil { found.append("no \(name)") }
            if parts.count == 2, value != parts[1].text(of: name, serverNow) {
                found.append("\(name): \(value ?? "none")")
            }
            if parts.count == 3, case .number(let least) = parts[2], value.flatMap(Double.init) ?? -1 <= least {
                found.append("\(name): \(value ?? "none")")
            }
        }
        for missing in step.expected_response_headers_missing ?? [] {
            let parts = missing.members
            let name = parts[0].text(of: "", serverNow)
            if let value = response.header(Headers.Name(name)),
                parts.count == 1 || value == parts[1].text(of: name, serverNow)
            {
                found.append("has \(name): \(value)")
            }
        }
        return found
    }

    private func content(of response: Response, _ step: HTTPCacheSuite.Step) -> [String] {
        var found: [String] = []
        let expectedStatus =
            step.expected_status ?? (step.response_status == nil || step.isValidated ? nil : step.status)
        if let expectedStatus, response.status != expectedStatus { found.append("status \(response.status)") }
        // The session of Foundation delivers no body for a redirect.
        let hasBody =
            step.check_body != false && ![204, 504].contains(response.status) && !(300..<400).contains(response.status)
        let text = String(decoding: response.data, as: UTF8.self)
        let expected =
            step.expected_response_text
            ?? (hasBody && step.request_method != "HEAD" ? step.response_body ?? test.id : nil)
        if let expected, text != expected { found.append("body \(text)") }
        return found
    }

    private func whatWasSent(_ step: HTTPCacheSuite.Step, _ index: Int) -> [String] {
        let received = state.withLock { $0.received }.filter { $0.step == index + 1 }.map(\.request)
        let first = received.first
        var found: [String] = []
        switch step.expected_type {
        case "etag_validated" where first?.headers["If-None-Match"] == nil: found.append("no If-None-Match was sent")
        case "lm_validated" where first?.headers["If-Modified-Since"] == nil:
            found.append("no If-Modified-Since was sent")
        // A stale response is validated in the background, by a request that may have arrived already.
        case "cached"
        where !received.isEmpty && step.disconnect != true && step.status < 500
            && !test.id.hasPrefix("stale-while-revalidate"):
            found.append("the server received a request")
        case "not_cached" where received.isEmpty: found.append("the server received no request")
        default: break
        }
        if let method = step.expected_method, first?.method.rawValue != method { found.append("no \(method) was sent") }
        for field in step.expected_request_headers ?? [] {
            let name = field[0].text(of: "", clock.date)
            let value = first?.headers[name]
            if value != field[1].text(of: name, clock.date) { found.append("\(name) \(value ?? "none") was sent") }
        }
        return found
    }
}
