public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Turns answers that typed tasks do not accept into errors of your own domain, ahead of any other error.
///
/// ```swift
/// service.errorMapper = .decoding(APIError.self)
/// ```
/// Typed tasks and typed requests ask it for every answer whose status they do not accept: that of the request first (``Request/errorMapper``), then that of
/// the service (``WebService/errorMapper``). When neither knows better, the error is ``WebServiceError/Code/unacceptableStatus``. Failures of the transport
/// stay what they are: `URLError`. Delegates and untyped handlers get every answer as it came.
public protocol ErrorMapper: Sendable {
    /// The error that an answer stands for; `nil` when the mapper does not know it. Called in the background, from several exchanges at once.
    func error(for response: Response) -> (any Error)?
}

/// An ``ErrorMapper`` made of a closure.
public struct ClosureErrorMapper: ErrorMapper {
    private let body: @Sendable (Response) -> (any Error)?

    /// Makes a mapper of a closure, which gets status, header fields and body.
    public init(_ body: @escaping @Sendable (_ response: Response) -> (any Error)?) {
        self.body = body
    }

    /// What the closure says.
    public func error(for response: Response) -> (any Error)? {
        body(response)
    }
}

extension ErrorMapper where Self == ClosureErrorMapper {
    /// A mapper made of a closure, which gets status, header fields and body.
    public static func closure(_ body: @escaping @Sendable (_ response: Response) -> (any Error)?) -> ClosureErrorMapper {
        ClosureErrorMapper(body)
    }

    /// Decodes the body to an error of your own; a body that is something else is nobody's error.
    ///
    /// - Parameters:
    ///   - type: The error, as the server writes it.
    ///   - statuses: The statuses for which the body is looked at; all unless given.
    ///   - decoder: What decodes it.
    public static func decoding<Failure: Error & Decodable>(
        _ type: Failure.Type, statuses: ClosedRange<Int> = 0...999, decoder: some BodyDecoder = JSONDecoder()
    ) -> ClosureErrorMapper {
        ClosureErrorMapper { response in
            guard statuses.contains(response.status) else { return nil }
            return try? JSON.decode(type, from: response.data, using: decoder)  // a body that cannot be decoded is not what the mapper is for
        }
    }
}

extension URLError {
    /// Whether there was no connection: the device is offline, the host has no address or cannot be reached, or the connection was lost. No server has
    /// answered; to ask again later may help.
    public var isConnectionFailure: Bool {
        switch code {
        case .notConnectedToInternet, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .timedOut,
            .internationalRoamingOff, .dataNotAllowed, .callIsActive:
            true
        default: false
        }
    }
}

extension Response {
    /// Whether the answer says that what the caller has is still good (304, RFC 9110, section 15.4.5). It has no body; a `ResponseCache` answers with its own.
    public var isNotModified: Bool { status == 304 }
}
