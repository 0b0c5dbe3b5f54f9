public import Foundation
public import WebServiceCore
public import WebServiceDiagnostics
import WebServiceServer

/// A page on the loopback interface that shows a service's exchanges while a program runs.
///
/// ```swift
/// let inspector = try Inspector(observing: service)
/// print("Inspector: \(inspector.url)")
/// ```
/// The page lists the exchanges that are resumed after the inspector has been created. It shows
/// their results, attempts, decisions, durations, header fields and bodies, and the messages of
/// WebSocket connections. The page is updated while exchanges are in progress. It can also show
/// each request as a curl command, and export all exchanges as an HTTP archive.
///
/// Secrets are redacted before data leaves the process. The page shows images, and it shows JSON,
/// forms, XML, `text/…` and similar types as text. It does not show other bodies, because secrets
/// in them cannot be recognized; see `showsBinaryBodies`.
///
/// The server listens only on 127.0.0.1. The URL contains a random token. Requests with a different
/// token, `Host` (DNS rebinding) or `Origin` are refused, so other pages in the same browser cannot
/// read anything. A user of this machine who can read the URL, for example in a log, can also read
/// the exchanges. Use the inspector only for development.
///
/// The inspector runs until ``stop()`` is called or the inspector is deallocated. When the program
/// exits, the inspector waits up to one second for the open pages to receive the last changes. The
/// pages still show their exchanges after the program has ended. All members may be called from any
/// thread.
public final class Inspector: Sendable {
    /// The URL of the page, such as `http://127.0.0.1:49152/…/`.
    ///
    /// The URL contains the token and is therefore secret.
    public let url: URL

    /// The observer that records exchanges. Add it to the `WebService.observers` of further
    /// services.
    public var observer: any Observer { store }

    /// Returns an observer that records exchanges under the name of their service.
    ///
    /// The page shows the name next to the host, and the filter of the page also searches the
    /// names.
    ///
    /// ```swift
    /// let inspector = try Inspector()
    /// brewery.observers.append(inspector.observer(named: "Brewery"))
    /// payments.observers.append(inspector.observer(named: "Payments"))
    /// ```
    public func observer(named name: String) -> any Observer { NamedObserver(name: name, store: store) }

    private let store: ExchangeStore
    private let server: LocalServer

    /// Creates an inspector without a service; see ``observer``.
    ///
    /// - Parameters:
    ///   - maximumExchanges: The maximum number of exchanges to retain, which is at least one.
    ///     Beyond it, the oldest exchanges are removed. Defaults to 1,000.
    ///   - bodyLimit: The maximum number of bytes to retain of each body, and of all messages of a
    ///     WebSocket together. A longer body is truncated, and the oldest messages are dropped.
    ///     Defaults to 1 MiB.
    ///   - memoryLimit: The maximum number of bytes to retain of all bodies, messages and header
    ///     fields together. Beyond it, the oldest exchanges are removed, except the last one.
    ///     Defaults to 64 MiB.
    ///   - redaction: The rules for secrets. Defaults to `Redaction.standard`.
    ///   - port: The port of the page. Defaults to 0, which means any free port.
    ///   - showsBinaryBodies: Whether the page shows the bytes of bodies in which secrets cannot be
    ///     recognized. These bodies are not redacted. Defaults to `false`.
    /// - Throws: `WebServiceError` with the code `portUnavailable` if the port is in use or
    ///   reserved, or with the code `mockServer` if the server cannot be started for another
    ///   reason.
    public convenience init(
        maximumExchanges: Int = 1000, bodyLimit: Int = 1 << 20, memoryLimit: Int = 64 << 20,
        redaction: Redaction = .standard, port: UInt16 = 0, showsBinaryBodies: Bool = false
    ) throws {
        let store = ExchangeStore(
            maximumExchanges: maximumExchanges, bodyLimit: bodyLimit, memoryLimit: memoryLimit, redaction: redaction,
            showsBinaryBodies: showsBinaryBodies)
        try self.init(store, port: port)
    }

    private init(_ store: ExchangeStore, port: UInt16) throws {
        let token = SecretToken()
        server = try LocalServer(port: port) { port in
            let routes = InspectorRoutes(port: port, token: token, store: store)
            return { routes.response(to: $0) }
        }
        self.store = store
        AtExit.close(store)
        url = server.baseURL.appendingPathComponent(token.text, isDirectory: true)
    }

    /// Creates an inspector that observes a service. The service also sends the requests that are
    /// changed on the page.
    ///
    /// - Parameters:
    ///   - service: The service to observe. The inspector is added to the service's observers, and
    ///     does not retain the service.
    ///   - maximumExchanges: The maximum number of exchanges to retain. For the details of this and
    ///     the other parameters, and for the errors, see
    ///     ``init(maximumExchanges:bodyLimit:memoryLimit:redaction:port:showsBinaryBodies:)``.
    ///   - bodyLimit: The maximum number of bytes to retain of each body.
    ///   - memoryLimit: The maximum number of bytes to retain of all exchanges.
    ///   - redaction: The rules for secrets.
    ///   - port: The port of the page.
    ///   - showsBinaryBodies: Whether the page shows bodies that cannot be redacted.
    public convenience init(
        observing service: WebService, maximumExchanges: Int = 1000, bodyLimit: Int = 1 << 20,
        memoryLimit: Int = 64 << 20, redaction: Redaction = .standard, port: UInt16 = 0, showsBinaryBodies: Bool = false
    ) throws {
        let store = ExchangeStore(
            maximumExchanges: maximumExchanges, bodyLimit: bodyLimit, memoryLimit: memoryLimit, redaction: redaction,
            showsBinaryBodies: showsBinaryBodies
        ) { [weak service] request in
            _ = service?.sessionTask(request: request).data().resume()
        }
        try self.init(store, port: port)
        service.observers.append(observer)
    }

    deinit {
        stop()
    }

    /// Stops serving the page, and releases the port and all recorded exchanges.
    ///
    /// Waits up to one second for the open pages to receive the last changes. The services retain
    /// the observer, but it no longer records anything. Further calls have no effect.
    public func stop() {
        store.close()
        server.stop()
    }
}
