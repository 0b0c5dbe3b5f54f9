import CCurl
import WebServiceCore

/// Requests that the thread of a caller sends while the loop's thread waits for events.
///
/// All of these conditions must be met:
/// - the session: ``supportsCallers``, set once (`CurlEngine.swift`);
/// - the loop, before it waits: ``mayServeCallers``, which it stores in the atomic flag
///   `CurlTurn.isOpenToCallers`;
/// - the request: `fitsOneSend` (`CurlTransfer.swift`);
/// - the caller: in the same process, and not on the thread of a loop (`CurlLoop.submit`);
/// - the turn, which the caller takes without waiting (`CurlTurn.send`);
/// - an idle connection to the host (``send(_:to:)``).
extension CurlEngine {
    /// Whether a caller may send the next request: nothing is in flight, the last exchanges did not
    /// overlap, and there are open connections.
    var mayServeCallers: Bool {
        supportsCallers && busy.isEmpty && !exchangesOverlap && connections.count > 0 && closingInstant == nil
            && admission.isEmpty
    }

    /// Sends a request on the thread of a caller, over an idle connection to its host.
    ///
    /// The method does not block: it never looks up a name, opens a connection or receives a
    /// response.
    ///
    /// - Returns: Whether the loop's thread must be woken; `nil` if the exchange has not begun,
    ///   because there is no such connection.
    func send(_ transfer: CurlTransfer, to host: Substring) -> Bool? {
        guard let connection = admission.lastConnection(to: host), connections[connection.socket] === connection,
            connection.isIdle, !connection.isUnusable, !connection.hasUnsolicitedBytes
        else { return nil }
        callersConnection = connection
        defer { endCall(connection) }
        admission.append(transfer, to: host)
        startAdmitted()
        guard let handle = transfer.handle else { return true }
        guard handle.attempt.isHeld, Int(runningCount) == busy.count else { return true }
        handle.receive()
        callersRequestCount += 1
        // libcurl sets timers only for connecting and for receiving, and receiving also causes an
        // event.
        return idleCheckInstant < waitEnd
    }

    /// Watches the connection for the events that libcurl requested last.
    ///
    /// Before libcurl sends immediately, it also requests an event for when it can send. That event
    /// would wake the loop's thread.
    private func endCall(_ connection: Connections.Connection) {
        callersConnection = nil
        guard let events = callersEvents.take(), connections[connection.socket] === connection else { return }
        _ = watch(connection.socket, events)
    }
}
