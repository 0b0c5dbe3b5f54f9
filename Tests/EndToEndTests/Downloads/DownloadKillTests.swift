import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Kills a process that downloads, again and again, and continues in the next one.
@Suite("Downloads whose process is killed", .permit(minutes: 30))
struct DownloadKillTests {

    /// The process that downloads, and the bytes that the server sends before it kills it.
    private struct Victim {
        var process: ChildProcess?
        var rest: Int
        var sent: Int64 = 0

        /// Counts bytes that are sent.
        ///
        /// - Returns: Whether they are the last ones.
        mutating func send(_ count: Int) -> Bool {
            sent += Int64(count)
            rest -= count
            guard rest <= 0, let process else { return false }
            self.process = nil
            process.send(SIGKILL)
            return true
        }
    }

    @Test("A large file needs hardly more memory than a small one")
    func memory() async throws {
        let sizes = [1 << 20, amount(32 << 20, thorough: 96 << 20, soak: 5 << 30)]
        let server = try MockServer.forTest { request in
            let size = request.path == "/0" ? sizes[0] : sizes[1]
            var response = MockResponse(statusCode: 200)
            response.headers[.contentLength] = "\(size)"
            response.writer = { writer in
                for _ in 0..<size >> 20 { try writer.write(Data(count: 1 << 20)) }
            }
            return response
        }
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("webservice-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var peaks: [Int] = []
        for index in 0...1 {
            let run = try await SessionProbe.run(["download", server.baseURLString + "/\(index)", path, "1"])
            let numbers = run.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
            try #require(numbers.count == 2)
            #expect(numbers[0] == sizes[index])
            peaks.append(numbers[1])
        }
        print("peak memory for \(sizes) bytes: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 4_096)
    }

    /// Waits until a file has a number of bytes, for at most a few seconds.
    private static func wait(for count: Int, in file: URL, _ writer: MockResponse.BodyWriter) {
        for _ in 0..<2_000 {
            var status = stat()
            if count <= 0 || stat(file.path, &status) == 0 && Int(status.st_size) >= count { return }
            writer.pause(for: .milliseconds(1))
        }
    }

    @Test(
        "Killed at any instant, a download is absent or whole, and continues where it ended",
        arguments: [
            (1, amount(3, thorough: 12, soak: 900), 4_000_000), (4, amount(1, thorough: 3, soak: 100), 44 << 20),
        ])
    func kills(connections: Int, count: Int, size: Int) async throws {
        let victim = Mutex(Victim(rest: .max))
        let content = DownloadFixture.content(size)
        let fixture = try DownloadFixture(0)
        let part = fixture.folder.appendingPathComponent(".a.iso.webservice-part")
        fixture.serve { request, _ in
            var response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
            let body = response.data
            response.headers[.contentLength] = "\(body.count)"
            response.writer = { writer in
                var rest = body[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(32 << 10)
                    // Few bytes are on the way when the client is killed, also if it is slow.
                    if connections == 1 { Self.wait(for: size - rest.count - 128 << 10, in: part, writer) }
                    if victim.withLock({ $0.send(piece.count) }) { throw CancellationError() }
                    try writer.write(piece)
                    if connections == 1 { writer.pause(for: .milliseconds(1)) }
                    rest = rest.dropFirst(piece.count)
                }
            }
            return response
        }
        var (kills, lost, isComplete): (Int, Int64, Bool) = (0, 0, true)
        while kills < count || !isComplete {
            if isComplete { try? FileManager.default.removeItem(at: fixture.destination) }
            let process = ChildProcess(
                SessionProbe.path,
                [
                    "download", fixture.server.baseURLString + "/a.iso", fixture.destination.path, "\(connections)",
                ], environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .null)
            let limit = kills < count ? Int.random(in: 0...size) : .max
            let before = connections == 1 ? Int64((try? fixture.part.count) ?? 0) : 0
            victim.withLock { $0 = Victim(process: process, rest: limit) }
            try process.run()
            let status = try await blocking { process.waitUntilExit() }
            let sent = victim.withLock { victim in
                victim.process = nil
                return victim.sent
            }
            try #require([0, -SIGKILL].contains(status))
            isComplete = status == 0
            if isComplete {
                try #require(try fixture.fileHas(content))
                #expect(try fixture.names == ["a.iso"])
            } else {
                kills += 1
                if FileManager.default.fileExists(atPath: fixture.destination.path) {
                    try #require(try fixture.fileHas(content))
                    isComplete = true
                    try? FileManager.default.removeItem(
                        at: fixture.folder.appendingPathComponent(".a.iso.webservice-part"))
                } else if connections == 1, let part = try? fixture.part {
                    try #require(part == content.prefix(part.count))
                    lost += before + sent - Int64(part.count)
                }
            }
        }
        #expect(try fixture.fileHas(content))
        if connections == 1 {
            print("\(kills) kills, \(lost / Int64(kills)) bytes fetched again for each")
            #expect(lost <= Int64(kills) * 256 << 10)
        }
    }
}
