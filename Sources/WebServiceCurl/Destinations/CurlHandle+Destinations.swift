import CCurl
import Foundation
import WebServiceCore

/// The check of the addresses to which a handle connects.
extension CurlHandle {
    /// The progress of the check, for one exchange.
    struct DestinationCheck {
        /// Whether addresses are checked.
        var isActive = false
        /// Whether an address may belong to a proxy.
        var mayBeProxy = false
        /// Whether an address was allowed for the connection that is being established.
        var hasAllowedAddress = false
        /// The error of an exchange without an allowed address.
        var refusal: (any Error)?
    }

    /// Begins to check the addresses of an exchange, unless all are allowed or the exchange uses a
    /// configured proxy.
    ///
    /// - Throws: `WebServiceError.Code.destinationRefused` for a request that must not be sent to a
    ///   proxy.
    func checkDestination(of request: EncodedRequest, _ route: CurlRoute) throws(WebServiceError) {
        guard let rules = engine.destinations else { return }
        let proxy = route.proxy ?? engine.configuration.proxy
        let isDirect = engine.configuration.unixSocketPath != nil
        attempt.destinationCheck.mayBeProxy = !isDirect && engine.readsEnvironment(for: proxy)
        // The address of a proxy that the program has configured is not that of a destination.
        attempt.destinationCheck.isActive = isDirect || proxy.address == nil
        guard !attempt.destinationCheck.isActive || attempt.destinationCheck.mayBeProxy else { return }
        try rules.checkOverProxy(request)
    }

    /// Returns whether libcurl may connect to an address.
    ///
    /// If it returns `false`, libcurl continues with the next address of the host.
    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard attempt.destinationCheck.isActive else { return true }
        let target = IPAddress.target(address)
        return isAllowed(target?.address, port: target?.port ?? 0)
    }

    /// Returns whether a request may be sent on a connection.
    ///
    /// The address was checked when the connection was opened, except for the connections that
    /// libcurl opens to the server of `dnsURL`. libcurl 8.23 also uses those connections for
    /// requests to that server.
    func mayUse(_ ends: Connections.Ends) -> Bool {
        guard attempt.destinationCheck.isActive else { return true }
        let configuration = engine.configuration
        let isAllowed =
            configuration.dnsURL == nil || configuration.unixSocketPath != nil
            || isAllowed(IPAddress(ends.remote), port: Int(ends.remotePort))
        // libcurl may open another connection to send the request again.
        attempt.destinationCheck.hasAllowedAddress = false
        return isAllowed
    }

    private func isAllowed(_ address: IPAddress?, port: Int) -> Bool {
        guard let rules = engine.destinations, let request = exchange?.request ?? driver?.channel.request else {
            return false
        }
        let destination = CurlSession.Destination(
            address, port: port, url: request.url, path: engine.configuration.unixSocketPath)
        if rules.allow(destination) {
            attempt.destinationCheck.hasAllowedAddress = true
            attempt.destinationCheck.refusal = nil
            return true
        }
        if !attempt.destinationCheck.hasAllowedAddress, attempt.destinationCheck.refusal == nil {
            attempt.destinationCheck.refusal = DestinationRules.refusal(
                destination, request, mayBeProxy: attempt.destinationCheck.mayBeProxy)
        }
        return false
    }
}
