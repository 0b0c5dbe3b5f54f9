#if WEBSERVICE_CURL && os(Linux)
import Foundation
import WebServiceCore
import WebServiceCurl

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Measurements of the memory of a process that transfers bodies.
///
/// Each line of output is the name of a measurement, a space and a number.
enum MemoryProbe {
    /// - Parameters:
    ///   - mode: `upload`, `read`, `idle` or `hold`.
    ///   - url: The URL of the request.
    ///   - argument: The path of the file to upload, the number of bytes to read per second, or the
    ///     number of idle streams.
    /// - Returns: Whether the mode exists.
    static func run(_ mode: String, _ url: String, _ argument: String) async throws -> Bool {
        let service = WebService(baseURLString: url)
        service.session = try CurlSession()
        switch mode {
        case "upload":
            let body = Request.Body.file(URL(fileURLWithPath: argument))
            _ = try await service.PUT(url).setBody(body).setDeadline(.seconds(3_600)).data().value
        case "read":
            let rate = Int(argument) ?? 0
            let start = ContinuousClock.now
            var count = 0
            for try await chunk in try await service.GET(url).stream().value.body {
                count += chunk.count
                if rate > 0 {
                    try await Task.sleep(until: start + .milliseconds(count / (rate / 1_000)), clock: .continuous)
                }
            }
            tell("bytes \(count)")
        case "idle": try await idle(service, Int(argument) ?? 0)
        case "hold": hold()
        default: return false
        }
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?.split(separator: " ").dropFirst()
            .first
        tell("peak \(peak ?? "0")")
        return true
    }

    /// Opens streams of a server in a child process, and reads their first bytes.
    private static func idle(_ service: WebService, _ count: Int) async throws {
        let server = Process()
        let (input, output) = (Pipe(), Pipe())
        server.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        server.arguments = ["memory", "hold", "http://127.0.0.1", "0"]
        (server.standardInput, server.standardOutput) = (input, output)
        try server.run()
        defer { server.terminate() }
        let port = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let url = "http://127.0.0.1:\(port)/"
        // The memory that every process needs is not that of the streams.
        var streams = [try await service.GET(url).stream().value]
        streams.reserveCapacity(count + 1)
        let before = residentBytes()
        for _ in 0..<count { streams.append(try await service.GET(url).stream().value) }
        tell("opened \((residentBytes() - before) / max(count, 1))")
        let readers = streams.map { stream in Task { for try await _ in stream.body {} } }
        try await Task.sleep(for: .seconds(1))
        tell("read \((residentBytes() - before) / max(count, 1))")
        let start = clock()
        try await Task.sleep(for: .seconds(3))
        tell("processor \((clock() - start) / 1_000)")  // milliseconds
        for reader in readers { reader.cancel() }
        for reader in readers { _ = await reader.result }
        tell("ended \(readers.count)")
    }

    /// Answers every connection with the head and the first chunk of a body that does not end.
    private static func hold() {
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
        let answer = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n".utf8)
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { exit(1) }
            var room = [UInt8](repeating: 0, count: 4_096)
            if recv(client, &room, room.count, 0) > 0 { send(client, answer, answer.count, Int32(MSG_NOSIGNAL)) }
        }
    }

    private static func residentBytes() -> Int {
        let status = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)  // 0 without the file
        return (status?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }
}
#endif
