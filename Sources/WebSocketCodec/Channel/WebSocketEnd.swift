import Foundation
package import WebServiceCore

/// The errors with which a connection ends.
package enum WebSocketEnd {
    /// The code of a connection that is closed.
    package static let closedCode = WebServiceError.Code("webSocketClosed")
    /// The code of a protocol violation.
    package static let violationCode = WebServiceError.Code("webSocketViolation")

    /// Returns the end of the messages after the Close frame of the peer.
    static func result(of closure: WebSocketClosure?) -> Result<WebSocketMessage?, any Error> {
        switch closure?.code {
        case nil, .normalClosure, .goingAway: .success(nil)
        case _?: .failure(closed(by: closure))
        }
    }

    /// Returns the error that a send throws if the connection is closed or about to be closed.
    package static func closed(_ end: Result<WebSocketClosure?, any Error>?) -> any Error {
        switch end {
        case .failure(let error): error
        case .success(let closure?): closed(by: closure)
        case .success(nil), nil: WebServiceError(closedCode, "the connection is closed; open another one")
        }
    }

    /// Returns a description for the timeline, without the reason, which may be private.
    package static func description(of end: Result<WebSocketClosure?, any Error>) -> String {
        switch end {
        case .success(let closure): closure.map { "closed with code \($0.code.rawValue)" } ?? "closed"
        case .failure(let error): "failed: \(type(of: error))"
        }
    }

    /// - Parameter closure: The Close frame of the peer.
    private static func closed(by closure: WebSocketClosure?) -> WebServiceError {
        WebServiceError(
            closedCode, "the peer has closed the connection\(closure?.explanation ?? ""); open another one",
            underlying: closure)
    }
}

extension WebSocketViolation {
    /// The error of the connection that the violation ends.
    var error: any Error {
        switch self {
        case .missingClose:
            URLError(.networkConnectionLost, userInfo: [NSLocalizedDescriptionKey: description])
        case .frameTooLarge, .messageTooLarge:
            WebServiceError(.elementTooLarge, "\(self); increase maximumMessageBytes", underlying: self)
        case .tooManyFragments:
            WebServiceError(.elementTooLarge, "\(self); increase maximumFragmentCount", underlying: self)
        default:
            WebServiceError(
                WebSocketEnd.violationCode, "the peer has violated the WebSocket protocol: \(self)", underlying: self)
        }
    }
}

extension Task where Success == Never, Failure == Never {
    /// - Throws: `URLError.cancelled` if the Swift task is cancelled.
    static func checkNotCancelled() throws {
        if isCancelled { throw URLError(.cancelled) }
    }
}
