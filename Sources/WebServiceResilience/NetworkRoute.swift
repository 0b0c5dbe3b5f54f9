import Foundation

/// The routing table of the system.
enum NetworkRoute {
    /// Returns whether the system has a route to a host: a name, or an address without brackets.
    /// Nothing is sent.
    ///
    /// A host name cannot be resolved without a request. For a name, the method returns whether
    /// there is a route to any public address. For `localhost`, it returns `true`.
    static func exists(to host: String) -> Bool {
        if let isRoute = ipv4(host) ?? ipv6(host) { return isRoute }
        // Addresses for documentation (RFC 5737, RFC 3849) are not local to any network.
        return host == "localhost" || ipv4("192.0.2.1") == true || ipv6("2001:db8::1") == true
    }

    /// Returns whether the system has a route to an IPv4 address, or `nil` if the string is not
    /// such an address.
    private static func ipv4(_ host: String) -> Bool? {
        var address = sockaddr_in()
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return nil }
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(9).bigEndian
        return connects(AF_INET, &address)
    }

    /// - Returns: `nil` for a string that is not an IPv6 address.
    private static func ipv6(_ host: String) -> Bool? {
        var address = sockaddr_in6()
        guard inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { return nil }
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = UInt16(9).bigEndian
        return connects(AF_INET6, &address)
    }

    /// Connects a datagram socket, which only looks up the route. If no socket can be created, a
    /// route is assumed, unless the system does not support the address family.
    private static func connects<Address>(_ family: Int32, _ address: inout Address) -> Bool {
        #if os(Linux) && !canImport(Musl)
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        #elseif os(Linux)
        let type = SOCK_DGRAM | SOCK_CLOEXEC
        #else
        let type = SOCK_DGRAM
        #endif
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { return errno != EAFNOSUPPORT }
        defer { close(descriptor) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
            }
        }
    }
}
