import Foundation
import TestSupport
import Testing
import WebServiceTransfers

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

/// Bodies that are followed by an error, and the bytes before it.
@Suite("Bytes before an error", .permit)
struct DamagedBodyTests {
    /// Random lines of hexadecimal digits.
    private static let lines: [String] = {
        var state: UInt64 = 1
        return (0..<4_000).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return String(state, radix: 16)
        }
    }()

    /// Returns a server of a gzip body that contains the text in stored blocks (RFC 1951, section
    /// 3.2.4), followed by a block whose type is invalid.
    private static func server(_ text: String, type: String = "text/plain") throws -> MockServer {
        var encoded = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])
        var rest = Data(text.utf8)[...]
        while !rest.isEmpty {
            let block = rest.prefix(6_000)
            rest = rest.dropFirst(block.count)
            let length = UInt16(block.count)
            for number in [length, ~length] { encoded += [UInt8(number & 0xFF), UInt8(number >> 8)] }
            encoded.insert(0, at: encoded.endIndex - 4)
            encoded += block
        }
        return try MockServer { [body = encoded + Data(repeating: 0xFF, count: 5_000)] _ in
            var response = MockResponse(statusCode: 200, data: body)
            response.headers["Content-Encoding"] = "gzip"
            response.headers[.contentType] = type
            return response
        }
    }

    /// Reads a sequence up to its error.
    private static func read<Elements: AsyncSequence>(
        _ elements: Elements
    ) async -> (elements: [Elements.Element], error: (any Error)?) {
        var read: [Elements.Element] = []
        do { for try await element in elements { read.append(element) } } catch { return (read, error) }
        return (read, nil)
    }

    @Test(
        "The bytes before invalid compressed bytes are delivered, with any buffer",
        arguments: RealSession.streaming, [1_000, 256 << 10])
    func chunks(session: RealSession, bufferSize: Int) async throws {
        let text = Self.lines.joined(separator: "\n")
        let server = try Self.server(text)
        defer { server.stop() }
        let body = try await session.service(server).GET("/").stream(bufferSize: bufferSize).value.body
        let (chunks, error) = await Self.read(body)
        let data = chunks.reduce(Data(), +)
        #expect(data.count > 15_000)
        #expect(Data(text.utf8).starts(with: data))
        // Foundation delivers such a body as complete (F9).
        if session.isCurl { #expect((error as? URLError)?.code == .cannotDecodeContentData) }
    }

    @Test(
        "The elements before invalid compressed bytes are delivered",
        arguments: RealSession.streaming)
    func elements(session: RealSession) async throws {
        let server = try Self.server(Self.lines.joined(separator: "\n"))
        defer { server.stop() }
        let (lines, error) = await Self.read(try session.service(server).GET("/").lines())
        #expect(lines.count > 800)
        #expect(lines == Array(Self.lines.prefix(lines.count)))
        if session.isCurl { #expect(error is URLError) }

        let events = Self.lines.map { "data: \($0)\n\n" }.joined()
        let eventServer = try Self.server(events, type: "text/event-stream")
        defer { eventServer.stop() }
        let (received, eventError) = await Self.read(try session.service(eventServer).GET("/").events())
        #expect(received.count > 800)
        #expect(received.map(\.data) == Array(Self.lines.prefix(received.count)))
        if session.isCurl { #expect(eventError is URLError) }
    }

    @Test("A whole body and a download with invalid compressed bytes are errors")
    func whole() async throws {
        let server = try Self.server(Self.lines.joined(separator: "\n"))
        defer { server.stop() }
        let fixture = try DownloadFixture(0)
        for session in RealSession.streaming where session.isCurl {
            let service = try session.service(server)
            await #expect(throws: URLError.self) { try await service.GET("/").data().value }
            await #expect(throws: URLError.self) {
                try await service.GET("/").download(to: fixture.destination).value
            }
            #expect(!FileManager.default.fileExists(atPath: fixture.destination.path))
        }
    }

    @Test(
        "The bytes up to the maximum size are delivered", arguments: RealSession.streaming,
        [0, 1, 70_000, 199_999])
    func tooLarge(session: RealSession, maximum: Int) async throws {
        let content = DownloadFixture.content(200_000)
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200, data: content)
            response.wire = .chunked(size: 50_000)
            return response
        }
        defer { server.stop() }
        let task = try session.service(server).GET("/").configure { $0.options.maximumResponseBytes = maximum }
        let (chunks, error) = await Self.read(try await task.stream().value.body)
        #expect(chunks.reduce(Data(), +) == content.prefix(maximum))
        #expect((error as? WebServiceError)?.code == .responseTooLarge)
    }

    @Test("The bytes that were received before the deadline are delivered")
    func deadline() async throws {
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("before".utf8))
                body.pause(for: .seconds(60))
            }
        }
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try RealSession.best.service(server).session
        let count = Mutex<Int64>(0)
        let task = service.GET("/").setDeadline(.seconds(2)).onProgress { progress in
            count.withLock { $0 = progress.bytesReceived }
        }
        let body = try await task.stream().value.body
        await eventually { count.withLock { $0 } == 6 }
        await clock.advance(by: .seconds(3))
        let (chunks, error) = await Self.read(body)
        #expect(chunks.reduce(Data(), +) == Data("before".utf8))
        #expect((error as? WebServiceError)?.code == .deadline)
    }
}
