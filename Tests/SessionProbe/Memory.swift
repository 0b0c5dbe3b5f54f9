#if WEBSERVICE_CURL && os(Linux)
import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceCurl
import WebServiceStorage
import WebServiceTransfers

/// Measurements of the memory of a process that transfers bodies.
///
/// Each line of output is the name of a measurement, a space and a number.
enum MemoryProbe {
    /// - Parameters:
    ///   - mode: `upload`, `form`, `read`, `cache`, `idle`, `cancelled`, `hold` or `drain`.
    ///   - url: The URL of the request.
    ///   - argument: The path of the file to upload or of a folder for files, the length of the part
    ///     of a form, the number of bytes to read per second, or the number of idle streams or
    ///     cancelled tasks.
    /// - Returns: Whether the mode exists.
    static func run(_ mode: String, _ url: String, _ argument: String) async throws -> Bool {
        let service = WebService(baseURLString: url)
        service.session = try CurlSession()
        switch mode {
        case "upload":
            let server = try Server("drain")
            let body = Request.Body.file(URL(fileURLWithPath: argument))
            let count = try await service.PUT(server.url).setBody(body).setDeadline(.seconds(3_600)).string().value
            tell("bytes \(count)")
            server.stop()
        case "form":
            let server = try Server("drain")
            var form = MultipartFormData()
            form.append("Long Trail", name: "name")
            let length = Int(argument) ?? 0
            form.append(.stream(length: Int64(length)) { Zeros(count: length) }, name: "log")
            let count = try await service.POST(server.url).setMultipart(form).setDeadline(.seconds(3_600)).string()
                .value
            tell("bytes \(count)")
            server.stop()
        case "read":
            let rate = Int(argument) ?? 0
            let start = ContinuousClock.now
            var count = 0
            for try await chunk in try await service.GET(url).stream().value.body {
                count += chunk.count
                if rate > 0 {
                    await elapse(start + .milliseconds(count / (rate / 1_000)) - .now)
                }
            }
            tell("bytes \(count)")
        case "cache": try await cache(service, URL(fileURLWithPath: argument))
        case "idle": try await idle(service, Int(argument) ?? 0)
        case "cancelled": await cancelled(service, Int(argument) ?? 0)
        case "hold": serve { client, _ in send(client, held, held.count, Int32(MSG_NOSIGNAL)) }
        case "drain": serve(drain)
        default: return false
        }
        tell("peak \(try peak())")
        return true
    }

    /// Measures how much the peak of the resident memory grows while a download is stored in a
    /// cache, while it is served from the cache, and while a stream is.
    private static func cache(_ service: WebService, _ folder: URL) async throws {
        let bodies = try BodyFolder(folder.appendingPathComponent("bodies"), maximumBytes: 8 << 30)
        let cache = ResponseCache(
            storage: try FileStorage(folder: folder.appendingPathComponent("entries")), bodies: bodies)
        service.interceptors = [cache]
        let file = folder.appendingPathComponent("file")
        for (path, label) in [("/small", nil), ("/large", "download")] {
            for kind in ["stored", "served"] {
                let before = try beginPeak()
                let found = try await service.GET(path).download(to: file, existing: .replace).value
                await cache.finishStoring()
                guard let label else { continue }
                tell("\(label)-\(kind) \(try peak() - before)")
                tell("\(label)-\(kind)-bytes \(found.byteCount)")
                tell("\(label)-\(kind)-sent \(found.response.attempts)")
            }
        }
        let before = try beginPeak()
        var count = 0
        for try await bytes in try await service.GET("/large").stream().value.body { count += bytes.count }
        tell("stream-served \(try peak() - before)")
        tell("stream-served-bytes \(count)")
    }

    /// Sets the peak of the resident memory to the current value, and returns it in KiB.
    private static func beginPeak() throws -> Int {
        try "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
        return try peak()
    }

    /// The peak of the resident memory in KiB (`VmHWM`).
    private static func peak() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    }

    /// Opens streams of a server in a child process, and reads their first bytes.
    private static func idle(_ service: WebService, _ count: Int) async throws {
        let server = try Server("hold")
        defer { server.stop() }
        let url = server.url
        // The memory that every process needs is not that of the streams.
        var streams = [try await service.GET(url).stream().value]
        streams.reserveCapacity(count + 1)
        let before = residentBytes()
        for _ in 0..<count { streams.append(try await service.GET(url).setTimeout(.seconds(3_600)).stream().value) }
        tell("opened \((residentBytes() - before) / max(count, 1))")
        let readers = streams.map { stream in Task { for try await _ in stream.body {} } }
        await elapse(.seconds(count > 1_000 ? 4 : 2))
        tell("read \((residentBytes() - before) / max(count, 1))")
        let start = clock()
        await elapse(.seconds(2))
        tell("processor \((clock() - start) / 1_000)")  // milliseconds
        for reader in readers { reader.cancel() }
        for reader in readers { _ = await reader.result }
        tell("ended \(readers.count)")
    }

    /// Creates tasks and cancels them: before `resume()`, after it, and with a handler.
    private static func cancelled(_ service: WebService, _ count: Int) async {
        func cancel(_ count: Int) async {
            for index in 0..<count {
                let task = service.GET("/x").data()
                if index % 3 == 1 { task.resume() }
                if index % 3 == 2 { task.onError { _ in }.resume() }
                task.cancel()
                if index % 100 == 0 { _ = await task.result }  // the pool keeps up
            }
        }
        await cancel(1_000)  // what every process needs
        let before = residentBytes()
        await cancel(count)
        tell("growth \((residentBytes() - before) >> 10)")  // KiB
        tell("listed \(service.exchanges.count)")
    }

    /// A sequence of zeros in pieces of 64 KiB.
    private struct Zeros: AsyncSequence, Sendable {
        let count: Int

        struct AsyncIterator: AsyncIteratorProtocol {
            var rest: Int

            mutating func next() async -> Data? {
                let count = Swift.min(rest, 64 << 10)
                rest -= count
                return count == 0 ? nil : Data(count: count)
            }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: count) }
    }

    /// A server in a child process.
    private struct Server {
        let url: String
        private let process = Process()
        private let input = Pipe()

        init(_ mode: String) throws {
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            process.arguments = ["memory", mode, "http://127.0.0.1", "0"]
            (process.standardInput, process.standardOutput) = (input, output)
            try process.run()
            let port = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            url = "http://127.0.0.1:\(port.trimmingCharacters(in: .whitespacesAndNewlines))/"
        }

        func stop() { process.terminate() }
    }

    /// The head and the first chunk of a body that does not end.
    private static let held = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n".utf8)

    /// Reads a request with `Content-Length`, and responds with the number of bytes of its body.
    private static func drain(_ client: Int32, _ start: [UInt8]) {
        let text = String(decoding: start, as: UTF8.self)
        guard let head = text.range(of: "\r\n\r\n"), let field = text.range(of: "Content-Length: ") else { return }
        let length = Int(text[field.upperBound...].prefix { $0.isNumber }) ?? 0
        var count = text[head.upperBound...].utf8.count
        var room = [UInt8](repeating: 0, count: 256 << 10)
        while count < length, case let more = recv(client, &room, room.count, 0), more > 0 { count += more }
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: \("\(count)".count)\r\n\r\n\(count)".utf8)
        send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
    }

    /// Accepts connections until standard input ends, and passes their first bytes to the closure.
    private static func serve(_ answer: (_ client: Int32, _ start: [UInt8]) -> Void) {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let listener = socket(AF_INET, type, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size)
                getsockname(listener, address, &size)
            }
        }
        listen(listener, 1_024)
        tell("\(UInt16(bigEndian: address.sin_port))")
        Thread.detachNewThread {
            while readLine() != nil {}
            exit(0)
        }
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { exit(1) }
            var room = [UInt8](repeating: 0, count: 4_096)
            let count = recv(client, &room, room.count, 0)
            if count > 0 { answer(client, Array(room[..<count])) }
        }
    }

    private static func residentBytes() -> Int {
        let status = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)  // 0 without the file
        return (status?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }
}
#endif
