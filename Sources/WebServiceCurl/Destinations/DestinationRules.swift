import Foundation
import WebServiceCore

/// The ``CurlSession/Destinations`` of a configuration, with parsed exceptions.
struct DestinationRules: Sendable {
    private struct Exceptions: Sendable {
        var networks: [(network: IPNetwork, port: Int?)] = []
        var hosts: [(name: String, port: Int?)] = []
        var includesUnixSocket = false

        /// - Parameter host: The host in lower case, without a trailing period.
        func contains(_ host: String, _ port: Int) -> Bool {
            hosts.contains { $0.name == host && $0.port ?? port == port }
        }

        func contains(_ destination: CurlSession.Destination) -> Bool {
            guard let address = destination.ip else { return includesUnixSocket }
            if networks.contains(where: {
                $0.network.contains(address) && $0.port ?? destination.port == destination.port
            }) {
                return true
            }
            return !hosts.isEmpty && contains(withoutTrailingPeriod(destination.host), destination.port)
        }
    }

    private let allows: @Sendable (CurlSession.Destination) -> Bool
    private let exceptions: Exceptions
    /// Whether names may be sent to a proxy.
    private let trustsProxies: Bool

    /// - Returns: `nil` if all destinations are allowed.
    /// - Throws: `WebServiceError.Code.curl` for an invalid exception.
    init?(_ configuration: CurlSession.Configuration) throws(WebServiceError) {
        let destinations = configuration.destinations
        var exceptions = Exceptions()
        for text in destinations.exceptions {
            if text == configuration.unixSocketPath {
                exceptions.includesUnixSocket = true
            } else {
                try Self.add(text, to: &exceptions)
            }
        }
        guard let allows = destinations.allows else { return nil }
        self.allows = allows
        self.exceptions = exceptions
        trustsProxies = destinations.trustsProxies
    }

    private static func add(_ text: String, to exceptions: inout Exceptions) throws(WebServiceError) {
        if let network = IPNetwork(text) ?? IPAddress(text).map({ IPNetwork($0) }) {
            return exceptions.networks.append((network, nil))
        }
        guard let origin = Origin("http://" + text), !text.utf8.contains(where: { "/?#\\".utf8.contains($0) }) else {
            throw WebServiceError(
                .curl,
                "an exception of 'destinations' is not a network, an IP address or a host name; use the form "
                    + "'10.20.0.0/16', '127.0.0.1:8080' or 'intranet.example.com'")
        }
        // The colons of an address in brackets do not precede a port.
        let end = text.utf8.lastIndex(of: UInt8(ascii: "]")) ?? text.startIndex
        let port = text.utf8[end...].contains(UInt8(ascii: ":")) ? origin.port : nil
        if let address = address(of: origin.host) {
            exceptions.networks.append((IPNetwork(address), port))
        } else {
            exceptions.hosts.append((withoutTrailingPeriod(origin.host), port))
        }
    }

    /// Returns whether the session may connect to the destination.
    func allow(_ destination: CurlSession.Destination) -> Bool {
        allows(destination) || exceptions.contains(destination)
    }

    /// Checks a request that is sent to a proxy.
    ///
    /// - Throws: `WebServiceError.Code.destinationRefused`.
    func checkOverProxy(_ request: EncodedRequest) throws(WebServiceError) {
        guard let origin = Origin(request.url) else { throw Self.proxyRefusal("", request) }
        let host = withoutTrailingPeriod(origin.host)
        // RFC 6761, section 6.3: names below `localhost` are loopback addresses.
        let isLoopback = host == "localhost" || host.hasSuffix(".localhost")
        if let address = isLoopback ? IPAddress(ipv4: 0x7F00_0001) : Self.address(of: host) {
            let destination = CurlSession.Destination(address, port: origin.port, url: request.url)
            guard allow(destination) else { throw Self.refusal(destination, request) }
        } else {
            guard trustsProxies || exceptions.contains(host, origin.port) else {
                throw Self.proxyRefusal(host, request)
            }
        }
    }

    // MARK: Errors

    /// Returns the error for a request whose destination is not allowed.
    static func refusal(
        _ destination: CurlSession.Destination, _ request: EncodedRequest, mayBeProxy: Bool = false
    ) -> WebServiceError {
        let host = destination.host
        let place =
            destination.ip == nil
            ? "the Unix domain socket \(destination.path)"
            : "the address \(destination.address) (port \(destination.port)) of the host '\(host)'"
        return WebServiceError(
            .destinationRefused,
            "'destinations' does not allow \(place); add it to 'exceptions' if requests may be sent to it"
                + (mayBeProxy ? ", or set 'proxy' if the address belongs to the proxy in the environment" : ""),
            request: request.source)
    }

    private static func proxyRefusal(_ host: String, _ request: EncodedRequest) -> WebServiceError {
        WebServiceError(
            .destinationRefused,
            "'destinations' does not allow a proxy to look up the host '\(host)', because its address cannot be "
                + "checked; set 'proxy' to .none, or 'trustsProxies' to true if the proxy checks addresses",
            request: request.source)
    }

    // MARK: Hosts

    /// Returns the address of a host that is not a name, as `Origin` represents it.
    private static func address(of host: String) -> IPAddress? {
        IPAddress(host.utf8.first == UInt8(ascii: "[") ? String(host.dropFirst().dropLast()) : host)
    }
}

private func withoutTrailingPeriod(_ host: String) -> String {
    host.hasSuffix(".") ? String(host.dropLast()) : host
}
