import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension CurlLoadTests {
    @Test(
        "Sending a file of 64 MiB takes less than 16 MiB of memory", .covers("M-11"),
        .enabled(if: !isSanitized && Resources.peakMemory > 0, "memory of other tests would be counted"))
    func multipartMemory() async throws {
        let folder = try CurlMultipartTests.Folder()
        let sink = try Sink()
        let service = WebService(baseURLString: "http://127.0.0.1:\(sink.port)")
        service.session = try CurlSession()
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
    static var peakMemory: Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""  // 0, as documented
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
    }

    static func forgetPeakMemory() {
        // On failure, the peak is that of the whole process lifetime.
        try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
    }
}

/// Responds to every request with the number of bytes in its body, and stores none of them.
private final class Sink: Sendable {
    struct Failure: Error {}

    let port: Int
    private let listener: Int32

    init() throws {
        #if canImport(Glibc)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
        listener = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { [listener] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 5) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isListening else { throw Failure() }
        Thread.detachNewThread { [listener] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                Self.serve(connection)
                close(connection)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
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
