public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A mapper from unacceptable responses to custom errors.
///
/// ```swift
/// service.errorMapper = .decoding(APIError.self)
/// ```
/// Typed tasks and typed requests call error mappers for every response whose status they do not
/// accept. The mapper of the request (``Request/Options/errorMapper``) is called first, and then
/// the mapper of the service (``WebService/errorMapper``). If neither returns an error, the error
/// is ``WebServiceError/Code/unacceptableStatus``. Transport errors are not mapped: they remain
/// `URLError`. Delegates and untyped handlers receive every response unchanged.
public protocol ErrorMapper: Sendable {
    /// Returns the error for a response, or `nil` if the response is not mapped.
    ///
    /// This method is usually called in the background, concurrently for several exchanges; for
    /// ``SessionTask/decode(onMain:)``, it is called on the main actor.
    func error(for response: Response) -> (any Error)?
}

/// An error mapper that calls a closure. It is created by ``ErrorMapper/closure(_:)`` and
/// ``ErrorMapper/decoding(_:statuses:decoder:)``.
public struct ClosureErrorMapper: ErrorMapper {
    /// The second argument is the decoder of the service.
    fileprivate let body: @Sendable (_ response: Response, _ decoder: any BodyDecoder) -> (any Error)?

    /// Returns the error that the closure returns.
    ///
    /// A mapper that ``ErrorMapper/decoding(_:statuses:decoder:)`` has created without a decoder
    /// uses a `JSONDecoder` here, because this method has no service.
    public func error(for response: Response) -> (any Error)? { body(response, JSONDecoder()) }
}

extension ErrorMapper {
    /// Returns the error for a response, or `nil` if the response is not mapped.
    ///
    /// - Parameter decoder: The decoder of the service, for a mapper that has none.
    package func error(for response: Response, decoder: any BodyDecoder) -> (any Error)? {
        guard let mapper = self as? ClosureErrorMapper else { return error(for: response) }
        return mapper.body(response, decoder)
    }
}

extension ErrorMapper where Self == ClosureErrorMapper {
    /// Returns a mapper that calls a closure.
    public static func closure(
        _ body: @escaping @Sendable (_ response: Response) -> (any Error)?
    ) -> ClosureErrorMapper {
        ClosureErrorMapper { response, _ in body(response) }
    }

    /// Returns a mapper that decodes the body as a custom error.
    ///
    /// A body that cannot be decoded is not mapped.
    ///
    /// - Parameters:
    ///   - type: The type of the error.
    ///   - statuses: The status codes whose responses are mapped. Defaults to all.
    ///   - decoder: The decoder of the body. Defaults to `nil`: the current ``WebService/decoder``.
    public static func decoding<Failure: Error & Decodable>(
        _ type: Failure.Type, statuses: ClosedRange<Int> = 0...999, decoder: (any BodyDecoder)? = nil
    ) -> ClosureErrorMapper {
        ClosureErrorMapper { response, current in
            guard statuses.contains(response.status) else { return nil }
            // An undecodable body is not mapped.
            return try? JSON.decode(type, from: response.data, using: decoder ?? current)
        }
    }
}

extension URLError {
    /// Whether the error is a failure of the connection.
    ///
    /// The value is `true` if the device has no usable network, the host cannot be resolved or
    /// reached, the connection was lost, or the request timed out. No complete response was
    /// received, and a retry may succeed.
    public var isConnectionFailure: Bool {
        switch code {
        case .notConnectedToInternet, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed,
            .timedOut,
            .internationalRoamingOff, .dataNotAllowed, .callIsActive:
            true
        default: false
        }
    }
}

extension Response {
    /// Whether the status is 304 (RFC 9110, section 15.4.5).
    ///
    /// The representation that the caller has stored is then still valid. The response has no body;
    /// a `ResponseCache` returns the stored one instead.
    public var isNotModified: Bool { status == 304 }
}
