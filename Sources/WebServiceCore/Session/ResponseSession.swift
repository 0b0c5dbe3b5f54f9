import Foundation

/// A session that provides response heads in bytes, transport metrics and progress.
///
/// A head in bytes is parsed when it is read; see ``ResponseHead``. A service uses
/// ``responseTask(request:progress:completion:)`` if the session implements it and
/// ``Session/dataTask(request:completion:)`` otherwise; there is no other visible difference.
public protocol ResponseSession: Session {
    /// Creates a task that sends `request` when it is resumed; nothing happens before.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - progress: Called as bytes are transferred, one call at a time, on any thread, and not
    ///     after the completion; `nil` if no observer is registered.
    ///   - completion: Called exactly once after the task was resumed, with the response or the
    ///     error and the metrics; after `cancel()` with `URLError.cancelled`. It may be called on
    ///     the session's own thread: the completion that a service passes returns immediately and
    ///     runs no custom code.
    func responseTask(
        request: any URLRequestEncodable,
        progress: (@Sendable (_ progress: TransferProgress) -> Void)?,
        completion: @escaping @Sendable (_ result: Result<Response, any Error>, _ metrics: TransportMetrics?) -> Void
    ) -> any DataTask
}
