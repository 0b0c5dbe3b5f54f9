// Measures MockServer: requests per second of clients that keep their connections, each on a
// thread of its own with one request in flight. Client and server share the processors.

import Foundation
import WebServiceMocking
import WebServiceServer

struct Failure: Error {}

/// A connection that sends the same request again and again.
final class Client {
    private let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    init(port: Int) throws {
        #if canImport(Glibc)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure() }
        var one: Int32 = 1
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(descriptor) }

    /// Sends a request and reads a response of a known length.
    func exchange(_ request: [UInt8], responseLength: Int) throws {
        guard write(descriptor, request, request.count) == request.count else { throw Failure() }
        var received = 0
        while received < responseLength {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { throw Failure() }
            received += count
        }
    }
}

/// Returns the requests per second of `clients` connections.
func measure(clients: Int, count: Int, bodyLength: Int) throws -> Double {
    let server = try MockServer()
    defer { server.stop() }
    server.on(.GET, "/brewers", MockResponse(statusCode: 200, data: Data(count: bodyLength)))
    let request = Array("GET /brewers HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    let head = "HTTP/1.1 200 OK\r\nContent-Length: \(bodyLength)\r\n\r\n".utf8.count
    let port = server.port
    let group = DispatchGroup()
    let start = ContinuousClock.now
    for _ in 0..<clients {
        group.enter()
        Thread.detachNewThread {
            defer { group.leave() }
            do {
                let client = try Client(port: port)
                for _ in 0..<count / clients { try client.exchange(request, responseLength: head + bodyLength) }
            } catch {
                print("a client failed: \(error)")
                exit(1)
            }
        }
    }
    group.wait()
    return Double(count / clients * clients) / (start.duration(to: .now) / .seconds(1))
}

let quick = CommandLine.arguments.contains("--quick")
print("MockServer, keep-alive\n\n| in flight | body | requests/s |\n| ---: | ---: | ---: |")
for (clients, bodyLength) in [(1, 100), (16, 100), (16, 10_000), (64, 100)] {
    var rates = try (0..<(quick ? 3 : 7)).map { _ in
        try measure(clients: clients, count: quick ? 20_000 : 100_000, bodyLength: bodyLength)
    }
    rates.sort()
    print("| \(clients) | \(bodyLength) bytes | \(Int(rates[rates.count / 2])) |")
}
