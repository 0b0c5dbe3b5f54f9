import Foundation
public import WebServiceCore
import WebServiceStorage

/// An endpoint that sends an ``HTTPServiceRequest`` through the pipeline of the service.
///
/// A service can have several HTTP endpoints, each with its own session and requests:
/// ```swift
/// service.endpoints = [
///     HTTPEndpoint(session: uploads, where: { $0 is any UploadRequest }),
///     HTTPEndpoint(),
/// ]
/// ```
/// A response with `Cache-Control: no-store` (RFC 9111, section 5.2.2.5) is not stored.
public struct HTTPEndpoint: ServiceEndpoint {
    /// Whether the requests of this endpoint count as activity.
    public let countsAsActivity: Bool
    let session: (any Session)?
    private let isServed: @Sendable (any HTTPServiceRequest) -> Bool

    /// Creates an endpoint.
    ///
    /// - Parameters:
    ///   - session: The session that sends the requests. Defaults to `nil`, which means the session
    ///     of the service.
    ///   - countsAsActivity: Whether the requests count as activity. Defaults to `true`.
    ///   - isServed: Returns whether the endpoint supports a request. Defaults to a closure that
    ///     accepts all requests.
    public init(
        session: (any Session)? = nil, countsAsActivity: Bool = true,
        where isServed: @escaping @Sendable (any HTTPServiceRequest) -> Bool = { _ in true }
    ) {
        self.session = session
        self.countsAsActivity = countsAsActivity
        self.isServed = isServed
    }

    /// Returns whether the request is an ``HTTPServiceRequest`` that satisfies the predicate.
    public func supports(_ request: any ServiceRequest) -> Bool {
        (request as? any HTTPServiceRequest).map(isServed) ?? false
    }

    /// Sends the request.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        let request = try Self.http(request)
        let message = try request.request(for: context.service)
        let mappers = [message.options.errorMapper, context.service.errorMapper].compactMap(\.self)
        let decoder = context.service.decoder
        do {
            let response = try await context.send(message, over: session)
            return FetchedResponse(response: response, request: request, mappers: mappers, decoder: decoder)
        } catch let error as WebServiceError {
            guard let response = error.incompleteResponse else { throw error }
            let fetched = FetchedResponse(response: response, request: request, mappers: mappers, decoder: decoder)
            throw fetched.mappedError ?? error
        }
    }

    /// Validates a new response and decodes it. A stored response is only decoded.
    public func process(
        _ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool
    ) throws -> any Sendable {
        if let fetched = rawData as? FetchedResponse {
            do { try fetched.request.validate(fetched.response) } catch { throw fetched.mappedError ?? error }
            return try fetched.request.decode(fetched.response)
        }
        return try Self.http(request).decode(
            Response(data: rawData.rawData ?? Data(), urlResponse: nil, source: .storage, attempts: 0))
    }

    private static func http(_ request: any ServiceRequest) throws -> any HTTPServiceRequest {
        guard let request = request as? any HTTPServiceRequest else {
            throw WebServiceError(
                .noEndpoint,
                "HTTPEndpoint does not support \(type(of: request)); conform the type to HTTPServiceRequest")
        }
        return request
    }

    private struct FetchedResponse: RawDataSource {
        let response: Response
        let request: any HTTPServiceRequest
        let mappers: [any ErrorMapper]
        /// The decoder for error mappers that have none.
        let decoder: any BodyDecoder

        var mappedError: (any Error)? {
            for mapper in mappers {
                if let error = mapper.error(for: response, decoder: decoder) { return error }
            }
            return nil
        }

        var rawData: Data? { request.storedBody(of: response) }

        var isStorable: Bool { !CacheControl(response.headers.values(for: .cacheControl)).has("no-store") }
    }
}
