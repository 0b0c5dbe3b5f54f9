// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport
import Testing

@testable import WebServiceCurl

@Suite("Destinations: addresses", .permit)
struct IPAddressTests {
    @Test("The table contains at least 150 addresses, each once")
    func size() {
        let all = AddressTable.inside + AddressTable.outside
        #expect(all.count >= 150)
        #expect(Set(all).count == all.count)
    }

    @Test(
        "An address of this host, of its networks or for a special purpose is not public",
        arguments: AddressTable.inside)
    func inside(text: String) throws {
        #expect(try #require(IPAddress(text)).isPublic == false)
    }

    @Test("Any other address is public", arguments: AddressTable.outside)
    func outside(text: String) throws {
        #expect(try #require(IPAddress(text)).isPublic)
    }

    @Test("An address with a zone is not public")
    func zones() throws {
        let address = try #require(IPAddress("2606:4700:4700::1111"))
        #expect(IPAddress(bits: address.bits, zone: 2).isPublic == false)
        #expect("\(IPAddress(bits: address.bits, zone: 2))" == "2606:4700:4700::1111%2")
    }

    @Test("All of IPv4 except the networks of the table is public")
    func wholeIPv4() {
        // One address of each /16, which is in none of the smaller networks.
        var publicCount = 0
        for prefix in UInt32(0)...0xFFFF {
            let network = prefix << 16
            let isRefused = [UInt32(0), 10, 127].contains(network >> 24) || network >> 24 >= 224
            let isPublic = IPAddress(ipv4: network | 0x0400 | 1).isPublic
            if isRefused { #expect(!isPublic, "\(IPAddress(ipv4: network))") }
            if isPublic { publicCount += 1 }
        }
        // All but 0/8, 10/8, 127/8 and 224/3 of 256 blocks each, 100.64/10, 169.254/16, 172.16/12,
        // 192.168/16 and 198.18/15.
        #expect(publicCount == 65_536 - 3 * 256 - 32 * 256 - 64 - 1 - 16 - 1 - 2)
    }

    @Test("An address has one description")
    func descriptions() {
        for (text, description) in [
            ("127.0.0.1", "127.0.0.1"), ("::ffff:7f00:1", "127.0.0.1"), ("0:0::1", "::1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("FD00:EC2::254", "fd00:ec2::254"),
        ] {
            #expect(IPAddress(text)?.description == description)
        }
        for text in [
            "", "1", "127.1", "0x7f.1", "127.0.0.1.", "localhost", "[::1]", "::1%lo", "1.2.3.4\0", "::1\0", "1.2.3.256",
        ] {
            #expect(IPAddress(text) == nil, "\(text)")
        }
    }

    @Test("A network contains the addresses with its prefix")
    func networks() throws {
        func contains(_ network: String, _ address: String) throws -> Bool {
            try #require(IPNetwork(network)).contains(try #require(IPAddress(address)))
        }
        #expect(try contains("10.20.0.0/16", "10.20.255.255"))
        #expect(try contains("10.20.0.0/16", "::ffff:10.20.0.1"))
        #expect(try contains("10.20.0.0/16", "10.21.0.0") == false)
        #expect(try contains("10.20.0.0/16", "10.19.255.255") == false)
        #expect(try contains("0.0.0.0/0", "255.255.255.255"))
        #expect(try contains("0.0.0.0/0", "::1") == false)
        #expect(try contains("::/0", "fd00::1"))
        #expect(try contains("::/0", "10.0.0.1") == false)
        #expect(try contains("fd00:20::/32", "fd00:20:ffff::1"))
        #expect(try contains("fd00:20::/32", "fd00:21::") == false)
        #expect(try contains("127.0.0.1/32", "127.0.0.1"))
        #expect(try contains("127.0.0.1/32", "127.0.0.2") == false)
        for text in [
            "", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8",
            "::/129", "fd00::1/64", "h/8", "10.0.0/8", "10.0.0.0/8 ", "10.0.0.0/0008",
        ] {
            #expect(IPNetwork(text) == nil, "\(text)")
        }
    }

    @Test("The address and the port are read from libcurl's structure, whose size bounds the access")
    func structures() throws {
        var ten = in6_addr()
        #expect(inet_pton(AF_INET6, "fe80::a", &ten) == 1)
        var six = sockaddr_in6()
        (six.sin6_family, six.sin6_port, six.sin6_addr, six.sin6_scope_id) =
            (sa_family_t(AF_INET6), UInt16(8080).bigEndian, ten, 3)
        let offset = try #require(MemoryLayout<curl_sockaddr>.offset(of: \.addr))
        func target(_ family: Int32, _ count: UInt32) -> (address: IPAddress, port: Int)? {
            var bytes = [UInt8](repeating: 0, count: 128)
            bytes.replaceSubrange(
                offset..<(offset + MemoryLayout<sockaddr_in6>.size), with: withUnsafeBytes(of: six) { Array($0) })
            bytes.withUnsafeMutableBytes { bytes in
                bytes.storeBytes(of: family, as: Int32.self)
                bytes.storeBytes(of: count, toByteOffset: 12, as: UInt32.self)
            }
            return bytes.withUnsafeBytes { bytes in
                bytes.assumingMemoryBound(to: curl_sockaddr.self).baseAddress.flatMap { IPAddress.target($0) }
            }
        }
        let target6 = target(AF_INET6, 28)
        #expect(target6?.address.description == "fe80::a%3")
        #expect(target6?.port == 8080)
        #expect(target(AF_INET6, 16) == nil)
        #expect(target(AF_INET, 8) == nil)
        #expect(target(AF_UNIX, 110) == nil)
    }
}
