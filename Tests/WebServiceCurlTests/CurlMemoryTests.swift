import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

extension CurlLoadTests {
    /// Receives one small body, runs `receive`, and returns the growth of the peak resident memory.
    private func growth(_ source: Source, _ receive: (WebService) async throws -> Void) async throws -> Int {
        let service = WebService("http://127.0.0.1:\(source.port)", session: try CurlSession { $0.proxy = .none })
        // Shared state exists after this request.
        #expect(try await service.GET("/small").data().value.count == 1 << 10)
        Resources.forgetPeakMemory()
        let before = Resources.residentMemory
        try await receive(service)
        let grown = Resources.peakMemory - before
        // Otherwise, the next case would begin with the memory of this one.
        await eventually("the body is released") { Resources.residentMemory - before < 32 << 20 }
        return grown
    }

    private static let canMeasure = !isSanitized && Resources.peakMemory > 0

    @Test(
        "A body of 64 MiB takes at most 16 MiB more memory than its size, with a length and in chunks",
        .enabled(if: canMeasure, "memory of other tests would be counted"),
        arguments: ["/length", "/chunks"])
    func largeBodyMemory(path: String) async throws {
        let grown = try await growth(Source()) { service in
            let body = try await service.GET(path).data().value
            #expect(body.count == 64 << 20)
        }
        #expect(grown >= 60 << 20, "\(grown >> 20) MiB")
        #expect(grown < 80 << 20, "\(grown >> 20) MiB")
    }

    @Test(
        "An endless body or 1 GiB of gzip ends at a limit of 10 MB and takes less than 30 MB",
        .enabled(if: canMeasure, "memory of other tests would be counted"),
        arguments: ["/bomb", "/endless", "/endless-length"])
    func limitedBodyMemory(path: String) async throws {
        let limit = 10_000_000
        let grown = try await growth(Source()) { service in
            for _ in 0..<3 {
                var request = service.request(.GET, path: path)
                request.options.maximumResponseBytes = limit
                let result = await service.sessionTask(request: request).data().result
                #expect(result.code == .responseTooLarge, "\(result)")
            }
        }
        #expect(grown < 3 * limit, "\(grown >> 20) MiB")
    }

    @Test(
        "An endless head takes less than 8 MiB of memory",
        .enabled(if: canMeasure, "memory of other tests would be counted"),
        arguments: ["/head", "/interim", "/line"])
    func endlessHeadMemory(path: String) async throws {
        let grown = try await growth(Source()) { service in
            for _ in 0..<3 {
                let result = await service.GET(path).data().result
                #expect(result.code == .responseTooLarge, "\(result)")
            }
        }
        #expect(grown < 8 << 20, "\(grown >> 20) MiB")
    }
}

/// A server that generates its responses piece by piece, so that they take no memory.
private final class Source: Sendable {
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
        var room = [UInt8](repeating: 0, count: 4 << 10)
        while case let count = read(connection, &room, room.count), count > 0 {
            let path = String(decoding: room.prefix(count), as: UTF8.self).split(separator: " ").dropFirst().first ?? ""
            let response = response(String(path))
            guard send(response.head, on: connection) else { return }
            for _ in 0..<response.count {
                guard send(response.piece, on: connection) else { return }
            }
            guard send(response.end, on: connection) else { return }
        }
    }

    /// Returns a response and the number of times its piece is sent.
    private static func response(_ path: String) -> (head: [UInt8], piece: [UInt8], count: Int, end: [UInt8]) {
        let ok = "HTTP/1.1 200 OK\r\n"
        let zeros = [UInt8](repeating: 0, count: 64 << 10)
        let chunk = Array("10000\r\n".utf8) + zeros + Array("\r\n".utf8)
        let chunked = Array("\(ok)Transfer-Encoding: chunked\r\n\r\n".utf8)
        switch path {
        case "/length": return (Array("\(ok)Content-Length: \(64 << 20)\r\n\r\n".utf8), zeros, 1_024, [])
        case "/chunks": return (chunked, chunk, 1_024, Array("0\r\n\r\n".utf8))
        case "/endless": return (chunked, chunk, .max, [])
        case "/endless-length": return (Array("\(ok)\r\n".utf8), zeros, .max, [])
        case "/head": return (Array(ok.utf8), Array("X-Brew: ale\r\n".utf8), .max, [])
        case "/interim": return ([], Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), .max, [])
        case "/line": return (Array("\(ok)X-Brew: ".utf8), zeros.map { _ in 0x61 }, .max, [])
        case "/bomb":
            // Zeros (RFC 1951, section 3.2.6): one byte, then repetitions of "the last byte 258
            // times", eight of them in 13 bytes.
            let block: [UInt8] = [0x05, 0xA3, 0x60, 0x14, 0x8C, 0x82, 0x51, 0x30, 0x0A, 0x46, 0xC1, 0x28, 0x18]
            let head =
                Array("\(ok)Content-Encoding: gzip\r\n\r\n".utf8) + [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x63, 0x18]
            return (head, Array(repeatElement(block, count: 5_000).joined()), 104, [])
        default: return (Array("\(ok)Content-Length: 1024\r\n\r\n".utf8), Array(zeros.prefix(1_024)), 1, [])
        }
    }

    private static func send(_ bytes: [UInt8], on connection: Int32) -> Bool {
        #if canImport(Glibc)
        let flags = Int32(MSG_NOSIGNAL)
        #else
        let flags: Int32 = 0
        #endif
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { platformSend(connection, $0, flags) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

private func platformSend(_ connection: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    send(connection, bytes.baseAddress, bytes.count, flags)
}
