/// The addresses that do not belong to the public internet.
///
/// The sources are IANA's special-purpose address registries for IPv4 and IPv6, as of 9 October
/// 2025 (https://www.iana.org/assignments/iana-ipv4-special-registry and
/// iana-ipv6-special-registry), and IANA's registries of multicast addresses. To update this table,
/// compare it with these registries.
enum SpecialAddresses {
    // The networks that are not globally reachable, and those whose anycast addresses can lead to a
    // host of the local network.

    /// The networks of IPv4.
    ///
    /// The registries also contain networks that are globally reachable, and therefore public:
    /// 192.31.196.0/24 (AS112, RFC 7535), 192.175.48.0/24 and 2620:4f:8000::/48 (AS112, RFC 7534),
    /// and 192.52.193.0/24 (AMT, RFC 7450).
    static let ipv4: [IPNetwork] = [
        .ipv4(0, 0, 0, 0, 8),  // "This network", RFC 791, section 3.2; 0.0.0.0 leads to this host
        .ipv4(10, 0, 0, 0, 8),  // Private use, RFC 1918
        .ipv4(100, 64, 0, 0, 10),  // Shared address space (carrier-grade NAT), RFC 6598
        .ipv4(127, 0, 0, 0, 8),  // Loopback, RFC 1122, section 3.2.1.3
        .ipv4(169, 254, 0, 0, 16),  // Link-local, RFC 3927; metadata of cloud machines, 169.254.169.254
        .ipv4(172, 16, 0, 0, 12),  // Private use, RFC 1918
        // IETF protocol assignments, RFC 6890, section 2.1, as a whole: IPv4 service continuity
        // (RFC 7335), the dummy address (RFC 7600), the anycast addresses of PCP (RFC 7723) and
        // TURN (RFC 8155), which lead to the local NAT, and the discovery of NAT64 (RFC 8880).
        .ipv4(192, 0, 0, 0, 24),
        .ipv4(192, 0, 2, 0, 24),  // Documentation (TEST-NET-1), RFC 5737
        .ipv4(192, 88, 99, 0, 24),  // Deprecated (6to4 relay anycast), RFC 7526, with 6a44, RFC 6751
        .ipv4(192, 168, 0, 0, 16),  // Private use, RFC 1918
        .ipv4(198, 18, 0, 0, 15),  // Benchmarking, RFC 2544
        .ipv4(198, 51, 100, 0, 24),  // Documentation (TEST-NET-2), RFC 5737
        .ipv4(203, 0, 113, 0, 24),  // Documentation (TEST-NET-3), RFC 5737
        .ipv4(224, 0, 0, 0, 4),  // Multicast, RFC 5771
        .ipv4(240, 0, 0, 0, 4),  // Reserved, RFC 1112, section 4, with limited broadcast, RFC 919
    ]

    /// The networks of IPv6.
    static let ipv6: [IPNetwork] = [
        // Outside of `globalUnicast`
        .ipv6(0x64, 0xFF9B, 1, length: 48),  // IPv4-IPv6 translation for local use, RFC 8215
        .ipv6(0x100, length: 64),  // Discard-only, RFC 6666
        .ipv6(0x100, 0, 0, 1, length: 64),  // Dummy prefix, RFC 9780
        .ipv6(0x5F00, length: 16),  // Segment routing (SRv6) SIDs, RFC 9602
        .ipv6(0xFC00, length: 7),  // Unique local, RFC 4193; metadata of cloud machines, fd00:ec2::254
        .ipv6(0xFE80, length: 10),  // Link-local unicast, RFC 4291
        .ipv6(0xFEC0, length: 10),  // Site-local unicast, deprecated, RFC 3879
        .ipv6(0xFF00, length: 8),  // Multicast, RFC 4291, section 2.7

        // Inside of `globalUnicast`
        // IETF protocol assignments, RFC 2928, as a whole except Teredo: the anycast addresses of
        // PCP (RFC 7723), TURN (RFC 8155) and DNS-SD registration (RFC 9665), benchmarking (RFC
        // 5180), AMT (RFC 7450), AS112 (RFC 7535), ORCHID (RFC 4843 and RFC 7343) and remote
        // identifiers of drones (RFC 9374).
        .ipv6(0x2001, length: 23),
        .ipv6(0x2001, 0xDB8, length: 32),  // Documentation, RFC 3849
        .ipv6(0x3FFF, length: 20),  // Documentation, RFC 9637
    ]

    /// Global unicast: the only addresses of IPv6 that IANA has assigned to networks (RFC 4291,
    /// section 2.4). All others are reserved.
    static let globalUnicast = IPNetwork.ipv6(0x2000, length: 3)

    // MARK: Networks whose addresses contain an IPv4 address

    // IPv4-mapped addresses (::ffff:0:0/96) are those of IPv4; see `IPAddress`.

    /// IPv4-compatible, deprecated, RFC 4291, section 2.5.5.1; with the unspecified address (::)
    /// and loopback (::1), whose last 32 bits are in 0.0.0.0/8.
    static let compatible = IPNetwork.ipv6(length: 96)
    /// IPv4-IPv6 translation (NAT64), RFC 6052, section 2.1.
    static let translated = IPNetwork.ipv6(0x64, 0xFF9B, length: 96)
    /// 6to4, RFC 3056, section 2.
    static let sixToFour = IPNetwork.ipv6(0x2002, length: 16)
    /// Teredo, RFC 4380, section 4.
    static let teredo = IPNetwork.ipv6(0x2001, 0, length: 32)
}
