import Foundation
public import WebServiceCore

extension CurlSession {
    /// The addresses to which a session may connect, for programs that send requests to URLs of
    /// their users.
    ///
    /// ```swift
    /// configuration.destinations = .publicInternet
    /// configuration.destinations.exceptions = ["10.20.0.0/16", "127.0.0.1:8080"]
    /// ```
    /// The session checks each address to which libcurl is about to connect, not the name in the
    /// URL. It does so after the lookup and for each new connection, including those of redirects,
    /// retries and WebSockets. ``Configuration/addresses``, ``Configuration/resolver`` and
    /// ``Configuration/dnsURL`` change the lookup, but not the check. If a host has several
    /// addresses, those that are allowed are used. If none is allowed, the request fails with
    /// `WebServiceError.Code.destinationRefused`, and no byte is sent.
    ///
    /// A proxy connects on behalf of the session, which does not learn the address. A request over
    /// a proxy is sent if its URL contains an allowed IP address or a host of ``exceptions``, or if
    /// ``trustsProxies`` is `true` and the host is a name other than `localhost`. The address of a
    /// proxy that ``Configuration/proxy`` specifies is not checked. The address of a proxy from the
    /// environment is checked, because libcurl does not report whether it connects to the proxy or
    /// to the host.
    public struct Destinations: Sendable {
        /// A closure that returns whether an address is allowed; `nil` if all are allowed.
        let allows: (@Sendable (Destination) -> Bool)?

        /// The networks, addresses and hosts that are also allowed. Defaults to an empty array.
        ///
        /// An exception is a network such as `10.20.0.0/16` or `fd00:20::/32`, an IP address, or a
        /// host name. A host name allows every address of the host, including over a proxy. A colon
        /// and a port can follow an address or a name, as in `127.0.0.1:8080`, `[::1]:8080` and
        /// `intranet.example.com:443`. An exception that is equal to
        /// ``Configuration/unixSocketPath`` allows the Unix domain socket. With any other string,
        /// the session cannot be created.
        public var exceptions: [String] = []

        /// Whether requests for host names may be sent to a proxy.
        ///
        /// Set this property to `true` only if the proxy itself refuses the addresses that are not
        /// allowed, because the proxy looks up the name and connects, possibly inside its own
        /// network. The host `localhost` and IP addresses are still checked. Defaults to `false`.
        public var trustsProxies = false

        private init() { allows = nil }

        /// Creates a rule from a closure that returns whether the session may connect to an
        /// address.
        ///
        /// The closure is called for each address that is tried for a new connection, and for each
        /// request that may be sent to a proxy and whose host is an IP address or `localhost`. If
        /// ``Configuration/dnsURL`` is set, it is also called for each request. It is called
        /// concurrently, usually on the thread of an event loop, whose requests wait until it
        /// returns.
        public init(_ allows: @escaping @Sendable (_ destination: Destination) -> Bool) { self.allows = allows }

        /// All addresses. The session checks nothing.
        public static let anywhere = Destinations()

        /// The addresses of the public internet; see ``Destination/isPublic``. A Unix domain socket
        /// is not allowed.
        public static let publicInternet = Destinations { $0.isPublic }
    }

    /// An address to which a session is about to connect.
    public struct Destination: Sendable {
        /// The address; `nil` for a Unix domain socket.
        let ip: IPAddress?
        /// The port; 0 for a Unix domain socket.
        public let port: Int
        let url: String
        let path: String

        init(_ ip: IPAddress?, port: Int, url: String, path: String? = nil) {
            self.ip = ip
            self.port = port
            self.url = url
            self.path = path ?? ""
        }

        /// The IP address without brackets, in the form of RFC 5952, or the path of the Unix domain
        /// socket.
        ///
        /// An IPv4-mapped address (`::ffff:192.0.2.1`) is reported as the IPv4 address. If an
        /// address belongs to a network interface, a percent sign and the index of the interface
        /// follow.
        public var address: String { ip?.description ?? path }

        /// The host of the URL in lower case; an IPv6 address is in brackets.
        public var host: String { Origin(url)?.host ?? "" }

        /// Whether the address belongs to the public internet.
        ///
        /// The value is `false` for a Unix domain socket, for the address of a loopback interface,
        /// a private network, a link or a multicast group, and for every other address that IANA's
        /// special-purpose address registries declare as not globally reachable. An IPv6 address
        /// that contains an IPv4 address (IPv4-mapped and IPv4-compatible addresses, NAT64, 6to4,
        /// Teredo, ISATAP) is public only if the IPv4 address is.
        public var isPublic: Bool { ip?.isPublic ?? false }
    }
}

extension CurlSession.Destination: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The address, the port and the host, without other parts of the URL, which may be secret.
    public var description: String {
        ip == nil ? path : "\(address) (port \(port)) for the host '\(host)'"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// A mirror that contains only ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["destination": description], displayStyle: .struct) }
}

extension WebServiceError.Code {
    /// The session's ``CurlSession/Destinations`` allow no address of the request's host. Nothing
    /// was sent.
    public static let destinationRefused = WebServiceError.Code("destinationRefused")
}
