import Foundation
import WebServiceCore
import WebServiceCurl
import WebServiceSockets

/// Opens a connection whose server sends without end, reads nothing until another response of the
/// server is complete, and then reads.
///
/// Each line of output is the name of a measurement, a space and a number: `growth`, the additional
/// memory in bytes before the first message was read, and `read`, the number of messages that were
/// read then.
///
/// - Parameter base: The URL of the server, without a path.
func readLate(_ base: String) async throws {
    let service = WebService(baseURLString: base)
    service.session = try CurlSession()
    // The memory that every connection needs is not that of the messages.
    _ = try await service.GET("/pause").data().value
    let first = try await service.webSocket("/one")
    _ = try await first.messages.first { _ in true }
    try await first.close()
    let before = memory("VmRSS:")
    let socket = try await service.webSocket("/flood")
    _ = try await service.GET("/pause").data().value
    print("growth \(memory("VmHWM:") - before)")
    var count = 0
    for try await _ in socket.messages {
        count += 1
        if count == 2_000 { break }
    }
    print("read \(count)")
}

/// Returns a number of bytes that the kernel reports for this process.
private func memory(_ name: String) -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""  // Linux only
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
    return (line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
}
