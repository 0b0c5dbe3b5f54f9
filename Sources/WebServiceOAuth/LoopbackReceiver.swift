public import Foundation
import LoopbackSocket
public import WebServiceCore

/// A receiver of one callback on this device, for the log-in of a command-line program (RFC 8252,
/// section 7.3).
///
/// ``OAuth/logIn(scopes:within:receiver:open:)`` uses it. The receiver listens on 127.0.0.1 from
/// its creation until the log-in ends, or until it is closed or deallocated. The browser receives a
/// page that asks the user to return to the program.
///
/// A request with another path or method, or with the state of another log-in, receives an error.
/// The receiver then continues to wait.
public final class LoopbackReceiver: Sendable {
    /// The redirect URL, which consists of `http://127.0.0.1:`, the port and the path.
    public let redirect: URL

    private let server: LoopbackPageServer
    private let callback = Once<Result<URL, any Error>>()

    /// Creates a receiver and begins to listen.
    ///
    /// - Parameters:
    ///   - path: The path of the redirect URL. Defaults to `/callback`.
    ///   - port: The port. Defaults to 0, which means any free port. Servers should accept any port
    ///     (RFC 8252, section 7.3), so pass a fixed one only if the server requires it.
    ///   - message: The text of the page. Defaults to an English text.
    /// - Throws: `WebServiceError.Code.invalidURL` if the path cannot be used in the redirect
    ///   URL, or `WebServiceError.Code.loopbackReceiver` if the port cannot be used.
    public init(
        path: String = "/callback", port: UInt16 = 0,
        message: String = "You can close this window and return to the program."
    ) throws {
        do throws(SystemFailure) {
            server = try LoopbackPageServer(port: port, path: path, message: message)
        } catch {
            throw error.error(.loopbackReceiver, "port \(port) on 127.0.0.1 cannot be used; pass another port, or 0")
        }
        let text = "http://127.0.0.1:\(server.port)\(path)"
        guard path.utf8.first == UInt8(ascii: "/"), ASCII.isVisible(path.utf8),
            !path.utf8.contains(where: { "?#".utf8.contains($0) }),
            let url = URL(string: text), url.absoluteString == text  // a browser also encodes other characters
        else {
            throw WebServiceError(
                .invalidURL, "the path must begin with a slash and contain only characters of a URL's path")
        }
        redirect = url
    }

    deinit { close() }

    /// Stops listening. A wait in progress ends with `CancellationError`.
    public func close() {
        server.close()
        callback.set(.failure(CancellationError()))
    }

    /// Begins to respond to browsers. Must be called only once.
    ///
    /// - Parameter expects: Returns whether a URL is the expected callback. Called on any thread.
    func listen(_ expects: @escaping @Sendable (URL) -> Bool) {
        let callback = callback
        let allowed = CharacterSet.urlQueryAllowed.union(CharacterSet(charactersIn: "%#"))
        server.start { target in
            // `URL` would also encode the percent signs of a query with invalid characters.
            let text = target.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
            guard let url = URL(string: text), expects(url) else { return nil }
            return { callback.set(.success(url)) }
        }
    }

    /// Waits for the expected callback and stops listening. Must be called only once.
    ///
    /// - Throws: `WebServiceError.Code.authorizationExpired` after the limit, or
    ///   `CancellationError`.
    func callback(within limit: Duration, _ clock: TaskClock) async throws -> URL {
        defer { close() }
        let expired = WebServiceError(
            .authorizationExpired, "the log-in was not completed within \(limit); start a new one")
        return try await clock.value(
            of: callback, orAfter: limit, .failure(expired), orIfCancelled: .failure(CancellationError())
        ).get()
    }
}

extension WebServiceError.Code {
    /// A ``LoopbackReceiver`` cannot listen, for example because its port is in use.
    public static let loopbackReceiver = WebServiceError.Code("loopbackReceiver")
}
