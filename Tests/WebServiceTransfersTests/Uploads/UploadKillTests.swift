import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Kills a process that uploads, again and again, and continues in the next one.
@Suite("Uploads whose process is killed", .permit(minutes: 30))
struct UploadKillTests {
    private static let pieceSize = 100_000

    /// The process that uploads, and the number of request bytes after which it is killed.
    private struct Victim {
        var process: ChildProcess?
        var rest = Int.max
    }

    /// Returns a process that uploads the file of a fixture.
    ///
    /// - Parameter life: The duration in microseconds after which the process kills itself;
    ///   negative for none.
    private func uploader(_ fixture: UploadFixture, life: Int = -1) -> ChildProcess {
        ChildProcess(
            programPath("session-probe"),
            [
                "upload", fixture.server.server.baseURLString + "/files/1", fixture.file.path, "\(fixture.kind)",
                "\(Self.pieceSize)", "\(life)",
            ], environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .null)
    }

    @Test(
        "Killed before the last response arrives, the next process completes the upload without content",
        arguments: UploadProtocol.allCases)
    func killedAtEnd(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind, 250_000)
        let received = Mutex(0)
        let victim = Mutex<ChildProcess?>(nil)
        let isDead = ThreadSignal()
        fixture.server.set { request, _ in
            let isWhole = received.withLock { received in
                received += request.body.count
                return received == fixture.content.count
            }
            let process = victim.withLock { victim in
                defer { if isWhole { victim = nil } }
                return isWhole ? victim : nil
            }
            guard let process else { return nil }
            process.send(SIGKILL)
            isDead.wait()
            return nil
        }
        var statuses: [Int32] = []
        for number in 0..<2 {
            let process = uploader(fixture)
            if number == 0 { victim.withLock { $0 = process } }
            try process.run()
            statuses.append(try await blocking { process.waitUntilExit() })
            isDead.signal()
            await eventually("the server has the whole file") { fixture.isStored }
        }
        #expect(statuses == [-SIGKILL, 0])
        #expect(received.withLock { $0 } == fixture.content.count)
        #expect(fixture.server.violations == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test(
        "Killed at any instant, the server has a prefix or the whole file, and at most one piece is sent again",
        arguments: [(UploadProtocol.draft, isSoak ? 500 : 15), (.tus, isSoak ? 500 : 15)])
    func kills(_ kind: UploadProtocol, _ count: Int) async throws {
        let victim = Mutex(Victim())
        let fixture = try UploadFixture(kind, 1_050_000)
        let server = fixture.server
        let received = Mutex(0)
        server.set { request, _ in
            received.withLock { $0 += request.body.count }
            let process = victim.withLock { victim -> ChildProcess? in
                victim.rest -= max(1, request.body.count)
                guard victim.rest <= 0 else { return nil }
                defer { victim.process = nil }
                return victim.process
            }
            // The request has an effect, but its response is lost.
            process?.send(SIGKILL)
            return nil
        }
        var (kills, completions, isOver) = (0, 0, false)
        // The last upload is completed. Otherwise, its bytes would count as sent again.
        while kills < count || !isOver {
            let isLast = kills >= count
            // Every second process kills itself at an instant that no request determines.
            let isTimed = !isLast && kills % 2 == 0
            let process = uploader(fixture, life: isTimed ? Int.random(in: 0...60_000) : -1)
            victim.withLock {
                $0 = Victim(process: process, rest: isLast || isTimed ? .max : Int.random(in: 1...1_100_000))
            }
            try process.run()
            let status = try await blocking { process.waitUntilExit() }
            victim.withLock { $0.process = nil }
            try #require([0, -SIGKILL].contains(status))
            try #require(server.violations == [])
            let uploads = server.current.uploads.values
            let arePrefixes = uploads.allSatisfy { $0.data == fixture.content.prefix($0.data.count) }
            try #require(arePrefixes)
            let whole = uploads.filter { $0.data == fixture.content }
            isOver = try fixture.names == ["a.iso"] && whole.contains { $0.isComplete }
            // A process that is killed after the server has created an upload, and before it has
            // stored the URL, leaves an upload of one piece. No upload with more content is
            // abandoned, and none is created after a whole one, because the next process asks for
            // the offset.
            try #require(whole.count <= 1)
            let abandoned = uploads.map(\.data.count).sorted().dropLast()
            try #require(abandoned.allSatisfy { $0 <= Self.pieceSize })
            if status == 0 { try #require(isOver) } else { kills += 1 }
            if isOver {
                completions += 1
                server.forgetUploads()
            }
            server.forgetRequests()
        }
        // A server that stores whole requests loses at most the piece in flight.
        let surplus = received.withLock { $0 } - completions * fixture.content.count
        print("\(kind): \(kills) kills, \(completions) completions, \(surplus) bytes stored more than once")
        #expect((0...kills * Self.pieceSize).contains(surplus))
    }

    @Test(
        "A large file needs hardly more memory than a small one", arguments: UploadProtocol.allCases)
    func memory(_ kind: UploadProtocol) async throws {
        let sizes = [1 << 20, amount(32 << 20, thorough: 96 << 20, soak: 5 << 30)]
        let folder = TemporaryFolder()
        var peaks: [Int] = []
        for size in sizes {
            let file = try folder.sparse("zeros", size)
            let received = Collected<Int>()
            let server = try RawServer { connection in
                let creates = connection.method == "PUT" || connection.method == "POST"
                var count = 0
                _ = connection.readBody { bytes in
                    count += bytes.count
                    return true
                }
                received.add(count)
                let offset = received.values.reduce(0, +)
                return connection.answer(
                    """
                    HTTP/1.1 \(creates ? "201 Created" : "204 No Content")\r
                    Tus-Version: 1.0.0\r
                    Tus-Extension: creation,creation-with-upload\r
                    Upload-Limit: min-size=0\r
                    Location: /uploads/1\r
                    Upload-Offset: \(offset)\r
                    Upload-Complete: ?\(offset == size ? 1 : 0)\(creates ? "\r\nContent-Length: 0" : "")
                    """)
            }
            let output = Pipe()
            let process = ChildProcess(
                programPath("session-probe"),
                ["upload", server.url + "/files/1", file.path, "\(kind)", "\(8 << 20)", "-1"],
                environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .pipe(output))
            let (status, text) = try await process.finish(reading: output)
            #expect(status == 0)
            let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
            try #require(numbers.count == 2)
            #expect(numbers[0] == size)
            #expect(received.values.reduce(0, +) == size)
            peaks.append(numbers[1])
        }
        print("peak memory of \(kind) for \(sizes) bytes: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 4_096)
    }
}
