public import Foundation
public import WebServiceCore
public import WebServiceDiagnostics
import WebServiceMocking

/// A page on the loopback interface that shows the exchanges of a service while a program runs.
///
/// ```swift
/// let inspector = try Inspector(observing: service)
/// print("Inspector: \(inspector.url)")
/// ```
/// The page lists the exchanges that are resumed from now on: results, attempts and decisions,
/// durations, header fields and bodies. It updates while they are in progress, shows an exchange as
/// a cURL command, and downloads all of them as an HTTP archive.
///
/// Everything that leaves the process is redacted. The bodies of images are shown as images, and
/// those of JSON, forms and `text/…` as text; others are not shown, because secrets in them cannot
/// be recognized.
///
/// The server listens on 127.0.0.1 only. The URL contains a random token. Requests with another
/// token, another `Host` (DNS rebinding) or another `Origin` are refused, so other pages in the
/// same browser cannot read anything. A user of this machine who can read the URL, for example in a
/// log, can read the exchanges: use the inspector for development.
///
/// The inspector ends with ``stop()`` or its deallocation. All members may be called from any
/// thread.
public final class Inspector: Sendable {
    /// The URL of the page, such as `http://127.0.0.1:49152/…/`.
    ///
    /// It contains the token and is therefore secret.
    public let url: URL

    /// Records exchanges. Add it to the `WebService.observers` of further services.
    public var observer: any Observer { store }

    private let store: ExchangeStore
    private let server: MockServer

    /// Creates an inspector without a service; see ``observer``.
    ///
    /// - Parameters:
    ///   - maximumExchanges: The number of exchanges to retain, at least one. Then the oldest ones
    ///     are removed. Defaults to 1,000.
    ///   - bodyLimit: The number of bytes of a body to retain. A longer body is truncated. Defaults
    ///     to 1 MiB.
    ///   - memoryLimit: The number of bytes of all bodies and header fields to retain. Then the
    ///     oldest exchanges are removed, except the last one. Defaults to 64 MiB.
    ///   - redaction: The rules for secrets. Defaults to `Redaction.standard`.
    /// - Throws: `WebServiceError` with the code `mockServer` if the server cannot be started.
    public init(
        maximumExchanges: Int = 1000, bodyLimit: Int = 1 << 20, memoryLimit: Int = 64 << 20,
        redaction: Redaction = .standard
    ) throws {
        let store = ExchangeStore(
            maximumExchanges: maximumExchanges, bodyLimit: bodyLimit, memoryLimit: memoryLimit, redaction: redaction)
        let token = SecretToken()
        server = try MockServer(unrecorded: { port in
            let routes = InspectorRoutes(port: port, token: token, store: store)
            return { routes.response(to: $0) }
        })
        self.store = store
        url = server.baseURL.appendingPathComponent(token.text, isDirectory: true)
    }

    /// Creates an inspector that observes a service.
    ///
    /// - Parameters:
    ///   - service: The service. The inspector is added to its observers.
    ///   - maximumExchanges: See ``init(maximumExchanges:bodyLimit:memoryLimit:redaction:)``, also
    ///     for the other parameters and the error.
    ///   - bodyLimit: The number of bytes of a body to retain.
    ///   - memoryLimit: The number of bytes of all bodies and header fields to retain.
    ///   - redaction: The rules for secrets.
    public convenience init(
        observing service: WebService, maximumExchanges: Int = 1000, bodyLimit: Int = 1 << 20,
        memoryLimit: Int = 64 << 20, redaction: Redaction = .standard
    ) throws {
        try self.init(
            maximumExchanges: maximumExchanges, bodyLimit: bodyLimit, memoryLimit: memoryLimit, redaction: redaction)
        service.observers.append(observer)
    }

    deinit {
        stop()
    }

    /// Closes the page and releases the port and all recorded exchanges.
    ///
    /// The observer remains in the services, and records nothing. Further calls have no effect.
    public func stop() {
        store.close()
        server.stop()
    }
}
