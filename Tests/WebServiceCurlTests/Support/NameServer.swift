// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport

/// A name server (RFC 1035) over UDP on 127.0.0.1, whose closure returns the addresses of a name.
final class NameServer: Sendable {
    /// Returns the addresses of a name. `lookup` is the number of earlier lookups of that name.
    typealias Responder = @Sendable (_ name: String, _ lookup: Int) -> [String]

    struct Failure: Error {}

    /// The number of lookups of IPv4 addresses, by name.
    var lookups: [String: Int] { counts.value }
    private let counts = Box<[String: Int]>([:])

    init(port: UInt16, _ respond: @escaping Responder) throws {
        #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
        let descriptor = socket(AF_INET, SOCK_DGRAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound else { throw Failure() }
        let counts = counts
        Thread.detachNewThread {
            var query = [UInt8](repeating: 0, count: 1_500)
            while true {
                var client = sockaddr_storage()
                var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
                withUnsafeMutablePointer(to: &client) { client in
                    client.withMemoryRebound(to: sockaddr.self, capacity: 1) { client in
                        let count = recvfrom(descriptor, &query, query.count, 0, client, &length)
                        guard count > 16, let answer = Self.answer(Array(query[..<count]), counts, respond) else {
                            return
                        }
                        _ = sendto(descriptor, answer, answer.count, 0, client, length)
                    }
                }
            }
        }
    }

    private static func answer(_ query: [UInt8], _ counts: Box<[String: Int]>, _ respond: Responder) -> [UInt8]? {
        var labels: [String] = []
        var index = 12
        while index < query.count, query[index] != 0 {
            let end = index + 1 + Int(query[index])
            guard end < query.count else { return nil }
            labels.append(String(decoding: query[(index + 1)..<end], as: UTF8.self))
            index = end
        }
        guard index + 4 < query.count else { return nil }
        let name = labels.joined(separator: ".").lowercased()
        let type = query[index + 2]  // 1 for IPv4, 28 for IPv6
        // The system sends both queries of a lookup at the same time.
        let key = type == 28 ? "AAAA " + name : name
        let lookup = counts.withValue { counts in
            defer { counts[key, default: 0] += 1 }
            return counts[key, default: 0]
        }
        let records = respond(name, lookup).compactMap { address -> [UInt8]? in
            if address.contains(":") {
                var six = in6_addr()
                guard type == 28, inet_pton(AF_INET6, address, &six) == 1 else { return nil }
                return withUnsafeBytes(of: six) { Array($0) }
            }
            var four = in_addr()
            guard type == 1, inet_pton(AF_INET, address, &four) == 1 else { return nil }
            return withUnsafeBytes(of: four) { Array($0) }
        }
        var answer = Array(query[..<2]) + [0x81, 0x80, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
        answer += query[12..<(index + 5)]
        // Each with a time to live of 0.
        for record in records { answer += [0xC0, 0x0C, 0, type, 0, 1, 0, 0, 0, 0, 0, UInt8(record.count)] + record }
        return answer
    }
}
