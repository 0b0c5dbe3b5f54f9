#if WEBSERVICE_CURL && os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@Suite(
    "WebSocket: the memory of a client process",
    .disabled(if: isSanitized, "the sanitizer needs memory for each access"), .permit)
struct WebSocketMemoryTests {
    @Test(
        "A reader that stops holds the server back, and the memory grows by at most the buffer and 1 MiB")
    func backPressure() async throws {
        let message = Data(count: 16 << 10)
        let sent = Collected<Void>()
        let held = Collected<Int>()
        let server = try MockServer.forTest()
        server.on(.GET, "/one", .webSocket { try await $0.send(message) })
        server.on(
            .GET, "/pause",
            MockResponse(statusCode: 200) { body in
                body.pause(for: .seconds(1))
                held.add(sent.values.count)  // the client does not read before it has this response
                try body.write(Data([1]))
            })
        server.on(
            .GET, "/flood",
            .webSocket(compresses: false) { socket in
                while true {
                    try await socket.send(message)
                    sent.add(())
                }
            })
        let output = Pipe()
        let process = ChildProcess(
            programPath("socket-probe"), ["reader", server.baseURLString], input: .null,
            output: .pipe(output), errors: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        try #require(status == 0, "\(text)")
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count == 2 }
        let numbers = Dictionary(lines.map { (String($0[0]), Int($0[1]) ?? 0) }, uniquingKeysWith: { $1 })
        #expect(try #require(numbers["growth"]) <= WebSocket.Options().bufferSize + 1 << 20)
        // The kernel stores some MiB for both ends.
        let limit = 12 << 20 / message.count
        #expect(try #require(held.values.last) <= limit)
        #expect(try #require(numbers["read"]) > limit)
        print("a reader that stops: \(numbers), the server sent \(held.values) messages")
    }
}
#endif
