// libcurl's header also declares socket constants.
import CCurl
import Foundation

/// An IPv4 or IPv6 address.
///
/// An IPv4 address has the bits of its IPv4-mapped form (RFC 4291, section 2.5.5.2), so both are
/// equal, as they are for the system.
struct IPAddress: Sendable, Hashable {
    let bits: UInt128
    /// The index of the network interface to which the address belongs; 0 for all interfaces.
    let zone: UInt32

    init(bits: UInt128, zone: UInt32 = 0) {
        self.bits = bits
        self.zone = zone
    }

    init(ipv4: UInt32) { self.init(bits: UInt128(0xFFFF) << 32 | UInt128(ipv4)) }

    /// Creates an address from text that the system can parse, without brackets or a zone.
    init?(_ text: String) {
        guard !text.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(ipv4: UInt32(bigEndian: four.s_addr))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        self.init(bits: Self.bits(of: six))
    }

    /// Returns the address and the port to which libcurl connects; `nil` if the address is neither
    /// IPv4 nor IPv6.
    ///
    /// The pointer is valid only during the call of libcurl, and is not stored.
    static func target(_ address: UnsafePointer<curl_sockaddr>) -> (address: IPAddress, port: Int)? {
        // The structure ends with an address of the general type, in whose place libcurl stores a
        // longer one.
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        let bytes = UnsafeRawPointer(address) + offset
        let count = Int(address.pointee.addrlen)
        switch address.pointee.family {
        case AF_INET where count >= MemoryLayout<sockaddr_in>.size:
            let address = bytes.loadUnaligned(as: sockaddr_in.self)
            return (
                IPAddress(ipv4: UInt32(bigEndian: address.sin_addr.s_addr)), Int(UInt16(bigEndian: address.sin_port))
            )
        case AF_INET6 where count >= MemoryLayout<sockaddr_in6>.size:
            let address = bytes.loadUnaligned(as: sockaddr_in6.self)
            return (
                IPAddress(bits: bits(of: address.sin6_addr), zone: address.sin6_scope_id),
                Int(UInt16(bigEndian: address.sin6_port))
            )
        default: return nil
        }
    }

    private static func bits(of address: in6_addr) -> UInt128 {
        withUnsafeBytes(of: address) { UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self)) }
    }

    /// The IPv4 address; `nil` for an IPv6 address.
    var ipv4: UInt32? { bits >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: bits) : nil }

    // MARK: Meaning

    /// Whether the address belongs to the public internet: it neither belongs to this host or its
    /// networks nor is reserved for a special purpose (``SpecialAddresses``).
    ///
    /// An IPv6 address that contains an IPv4 address leads to that address, so it is public only if
    /// the IPv4 address is.
    var isPublic: Bool {
        guard zone == 0 else { return false }  // only link-local addresses have a zone
        if ipv4 != nil { return !SpecialAddresses.ipv4.contains { $0.contains(self) } }
        if let embedded { return embedded.allSatisfy(\.isPublic) }
        return SpecialAddresses.globalUnicast.contains(self) && !SpecialAddresses.ipv6.contains { $0.contains(self) }
            && isatap?.isPublic ?? true
    }

    /// The IPv4 addresses to which a translator or the end of a tunnel sends packets for this
    /// address; `nil` if the address has no such prefix.
    private var embedded: [IPAddress]? {
        func ipv4(_ shift: Int) -> IPAddress { IPAddress(ipv4: UInt32(truncatingIfNeeded: bits >> shift)) }
        if SpecialAddresses.compatible.contains(self) || SpecialAddresses.translated.contains(self) { return [ipv4(0)] }
        if SpecialAddresses.sixToFour.contains(self) { return [ipv4(80)] }
        // The server of the tunnel, and the client behind it, whose bits are inverted.
        if SpecialAddresses.teredo.contains(self) {
            return [ipv4(64), IPAddress(ipv4: ~UInt32(truncatingIfNeeded: bits))]
        }
        return nil
    }

    /// The IPv4 address in an interface identifier of ISATAP (RFC 5214, section 6.1), which any
    /// network can use; `nil` for another identifier.
    private var isatap: IPAddress? {
        guard [0x0000_5EFE, 0x0200_5EFE].contains(UInt32(truncatingIfNeeded: bits >> 32)) else { return nil }
        return IPAddress(ipv4: UInt32(truncatingIfNeeded: bits))
    }
}

extension IPAddress: CustomStringConvertible {
    /// The address: IPv4 in dotted decimal, and IPv6 in the form of RFC 5952 with the zone as a
    /// number.
    var description: String {
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
            let length = socklen_t(text.count)
            if let ipv4 {
                var address = in_addr(s_addr: ipv4.bigEndian)
                return inet_ntop(AF_INET, &address, text.baseAddress, length).map { String(cString: $0) }
            }
            return withUnsafeBytes(of: bits.bigEndian) { bytes in
                inet_ntop(AF_INET6, bytes.baseAddress, text.baseAddress, length).map { String(cString: $0) }
            }
        }
        return (text ?? "") + (zone == 0 ? "" : "%\(zone)")
    }
}

/// A network, which consists of the addresses that begin with the same bits.
struct IPNetwork: Sendable, Hashable {
    private let first: UInt128
    private let mask: UInt128

    /// - Parameter length: The number of these bits, out of the 128 bits of an ``IPAddress``.
    private init(_ first: UInt128, _ length: Int) {
        self.first = first
        mask = ~(UInt128.max >> length)
    }

    /// Creates the network that consists of one address.
    init(_ address: IPAddress) { self.init(address.bits, 128) }

    /// Creates a network from its prefix, such as `10.0.0.0/8` or `fd00::/8`.
    ///
    /// - Returns: `nil` for any other text, such as an address in which a bit after the prefix is
    ///   set.
    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, let address = IPAddress(String(Substring(parts[0]))), (1...3).contains(parts[1].count),
            parts[1].allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(Substring(parts[1])),
            case let length = parts[0].contains(UInt8(ascii: ":")) ? count : count + 96, length <= 128,
            address.bits << length == 0
        else { return nil }
        self.init(address.bits, length)
    }

    /// Returns an IPv4 network from the bytes and the length of its prefix.
    static func ipv4(_ first: UInt32, _ second: UInt32, _ third: UInt32, _ fourth: UInt32, _ length: Int) -> IPNetwork {
        IPNetwork(IPAddress(ipv4: first << 24 | second << 16 | third << 8 | fourth).bits, length + 96)
    }

    /// Returns an IPv6 network from the first groups and the length of its prefix.
    static func ipv6(_ groups: UInt16..., length: Int) -> IPNetwork {
        let bits = groups.enumerated().reduce(UInt128(0)) { $0 | UInt128($1.element) << (112 - 16 * $1.offset) }
        return IPNetwork(bits, length)
    }

    /// Returns whether an address begins with the prefix. A prefix that is shorter than that of the
    /// IPv4-mapped addresses contains only IPv6 addresses.
    func contains(_ address: IPAddress) -> Bool {
        address.bits & mask == first && (first >> 32 == 0xFFFF || address.ipv4 == nil)
    }
}
