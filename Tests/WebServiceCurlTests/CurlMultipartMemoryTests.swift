import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

extension CurlLoadTests {
    @Test(
        "Sending a file of 64 MiB takes less than 16 MiB of memory",
        .enabled(if: !isSanitized && Resources.peakMemory > 0, "memory of other tests would be counted"))
    func multipartMemory() async throws {
        let folder = TemporaryFolder()
        let sink = try Sink()
        let service = WebService("http://127.0.0.1:\(sink.port)", session: try CurlSession())
        func send(_ count: Int) async throws -> String {
            var form = MultipartFormData()
            form.append(file: try folder.sparse("file", count), name: "file")
            return try await service.POST("/").setMultipart(form).string().value
        }
        #expect(try await send(1 << 20) > "1048576")  // creates shared state first
        Resources.forgetPeakMemory()
        let before = Resources.peakMemory
        let received = Int(try await send(64 << 20)) ?? 0
        #expect(received > 64 << 20)
        #expect(received < 64 << 20 + 1024)
        #expect(Resources.peakMemory - before < 16 << 20)
    }
}

extension Resources {
    /// The peak of the resident memory since the last reset, in bytes. 0 if the system does not
    /// report it.
    static var peakMemory: Int { bytes("VmHWM:") }

    static func forgetPeakMemory() {
        // On failure, the peak is that of the whole process lifetime.
        try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
    }
}

/// Responds to every request with the number of bytes in its body, and stores none of them.
private final class Sink: Sendable {
    var port: Int { listener.port }
    private let listener: LoopbackListener

    init() throws {
        listener = try LoopbackListener()
        listener.serve { connection in
            Self.serve(connection)
            close(connection)
        }
    }

    private static func serve(_ connection: Int32) {
        var room = [UInt8](repeating: 0, count: 64 << 10)
        var head = [UInt8]()
        var length: Int?
        var received = 0
        while true {
            let count = read(connection, &room, room.count)
            guard count > 0 else { return }
            if length == nil {
                head += room.prefix(count)
                guard let end = head.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
                let lines = String(decoding: head[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
                length = lines.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) }
                received = head.count - end.upperBound
            } else {
                received += count
            }
            guard let expected = length, received >= expected else { continue }
            let text = "\(received)"
            let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)".utf8)
            guard write(connection, answer, answer.count) == answer.count else { return }
            (head, length) = ([], nil)
        }
    }
}
