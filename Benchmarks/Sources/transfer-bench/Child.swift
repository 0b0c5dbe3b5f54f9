import AsyncHTTPClient
import Foundation
import NIOCore
import Synchronization
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The transfers and checks that run in a process of their own.
enum Child {
    static func run(_ name: String, _ arguments: [String]) async throws {
        switch name {
        case "nothing": _ = try service("http://127.0.0.1")
        case "download":
            _ = try await service(arguments[0]).GET(arguments[0])
                .download(to: URL(fileURLWithPath: arguments[1]), existing: .replace).value
        case "stream": try await stream(arguments[0], to: nil)
        case "stream-to-file": try await stream(arguments[0], to: arguments[1])
        case "peer-to-file": try await peer(arguments[0], to: arguments[1])
        case "slow-reader": try await slowReader(arguments[0])
        case "cancel": try await cancel(arguments[0])
        case "events": try await events()
        case "tokens": try await tokens()
        case "idle-streams": try await idleStreams()
        default: exit(2)
        }
    }

    private static func service(_ base: String) throws -> WebService {
        let service = WebService(baseURLString: base)
        service.session = try CurlSession()
        return service
    }

    private static func stream(_ url: String, to path: String?) async throws {
        let file = path.map { open($0, O_WRONLY | O_CREAT | O_TRUNC, 0o644) }
        let response = try await service(url).GET(url).stream().value
        for try await chunk in response.body {
            guard let file else { continue }
            chunk.withUnsafeBytes { bytes in
                guard write(file, bytes.baseAddress, bytes.count) == bytes.count else { exit(3) }
            }
        }
    }

    private static func peer(_ url: String, to path: String) async throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(600))
        for try await buffer in response.body {
            buffer.withUnsafeReadableBytes { bytes in
                guard write(file, bytes.baseAddress, bytes.count) == bytes.count else { exit(3) }
            }
        }
    }

    /// The memory of a reader that reads 64 MiB of the body at 64 MiB/s.
    private static func slowReader(_ url: String) async throws {
        let response = try await service(url).GET(url).stream().value
        let before = memory()
        var (count, peak) = (0, before)
        let start = ContinuousClock.now
        for try await chunk in response.body {
            count += chunk.count
            try await Task.sleep(until: start + .milliseconds(count >> 16), clock: .continuous)
            peak = max(peak, memory())
            if count > 64 << 20 { break }
        }
        print("slow reader: \((peak - before) >> 10) KiB more memory")
    }

    /// The duration from leaving the loop to the end of the connection, as the server sees it.
    private static func cancel(_ url: String) async throws {
        let ends = Mutex([ContinuousClock.Instant]())
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                defer { ends.withLock { $0.append(.now) } }
                while true { try body.write(Data(count: 16 << 10)) }
            }
        }
        let service = try service(server.baseURLString)
        var durations: [Duration] = []
        for round in 1...200 {
            let response = try await service.GET("/").stream().value
            for try await _ in response.body { break }
            let left = ContinuousClock.now
            while ends.withLock({ $0.count }) < round { await Task.yield() }
            durations.append(ends.withLock { left.duration(to: $0[round - 1]) })
        }
        durations.sort()
        print("leaving the loop to the closed connection: p50 \(durations[100]), p99 \(durations[198])")
        server.stop()
    }

    /// The throughput of events with 100 bytes of data.
    private static func events() async throws {
        let event = "data: " + String(repeating: "x", count: 100) + "\n\n"
        let piece = Data(String(repeating: event, count: 600).utf8)
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<4_000 { try body.write(piece) }
            }
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let start = ContinuousClock.now
        var count = 0
        for try await _ in try service(server.baseURLString).GET("/").events() { count += 1 }
        let seconds = start.duration(to: .now) / .seconds(1)
        print("events over a socket: \(Int(Double(count * event.utf8.count) / seconds / 1e6)) MB/s, \(count) events")
        server.stop()
    }

    /// The duration from the write of a token on the server to its event in the loop.
    private static func tokens() async throws {
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<500 {
                    try body.write(Data("data: \(DispatchTime.now().uptimeNanoseconds)\n\n".utf8))
                    body.pause(for: .milliseconds(2))
                }
            }
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        var latencies: [UInt64] = []
        for try await event in try service(server.baseURLString).GET("/").events() {
            latencies.append(DispatchTime.now().uptimeNanoseconds - (UInt64(event.data) ?? 0))
        }
        latencies.sort()
        print("token latency: p50 \(latencies[250] / 1000) µs, p99 \(latencies[495] / 1000) µs")
        server.stop()
    }

    /// The memory of streams that wait for their next byte.
    private static func idleStreams() async throws {
        let count = 2_000
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data([1]))
                body.pause(for: .seconds(600))
            }
        }
        // The server's threads are created first, so that their memory is not counted.
        let service = try service(server.baseURLString)
        var streams: [StreamedResponse] = []
        let before = memory()
        for _ in 0..<count { streams.append(try await service.GET("/").stream().value) }
        let each = (memory() - before) / (count * 1024)
        print("\(streams.count) idle streams: \(each) KiB each, with the threads of the server")
        exit(0)
    }

    /// The resident memory in bytes.
    private static func memory() -> Int {
        let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""  // Linux only
        return (Int(pages.split(separator: " ").dropFirst().first ?? "") ?? 0) * 4096
    }
}
