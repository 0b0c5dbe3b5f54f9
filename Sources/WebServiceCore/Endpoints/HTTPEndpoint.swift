import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Performs requests of type ``HTTPServiceRequest`` over the service's session, with all that the service wraps around an exchange.
///
/// An answer that says `Cache-Control: no-store` (RFC 9111, section 5.2.2.5) is not stored.
public struct HTTPEndpoint: ServiceEndpoint {
    /// Whether its requests count as activity.
    public let countsAsActivity: Bool
    private let isServed: @Sendable (any HTTPServiceRequest) -> Bool

    /// - Parameters:
    ///   - countsAsActivity: Whether its requests count as activity.
    ///   - isServed: Which requests it serves; all unless given.
    public init(countsAsActivity: Bool = true, where isServed: @escaping @Sendable (any HTTPServiceRequest) -> Bool = { _ in true }) {
        self.countsAsActivity = countsAsActivity
        self.isServed = isServed
    }

    /// Every ``HTTPServiceRequest``, or those that were chosen.
    public func supports(_ request: any ServiceRequest) -> Bool {
        (request as? any HTTPServiceRequest).map(isServed) ?? false
    }

    /// Sends the request.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        let request = try Self.http(request)
        let message = try request.request(for: context.service)
        let response = try await context.send(message)
        return Answer(response: response, request: request, mappers: [message.errorMapper, context.service.errorMapper].compactMap(\.self))
    }

    /// Validates a new answer, and decodes.
    public func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws -> any Sendable {
        let request = try Self.http(request)
        if let answer = rawData as? Answer {
            do { try request.validate(answer.response) } catch { throw answer.mappedError ?? error }
            return try request.decode(answer.response)
        }
        return try request.decode(Response(data: rawData.rawData ?? Data(), urlResponse: nil, source: .storage, attempts: 0))
    }

    private static func http(_ request: any ServiceRequest) throws -> any HTTPServiceRequest {
        guard let request = request as? any HTTPServiceRequest else {
            throw WebServiceError(.noEndpoint, "an HTTPEndpoint performs only requests of type HTTPServiceRequest, not \(type(of: request))")
        }
        return request
    }

    private struct Answer: RawDataSource {
        let response: Response
        let request: any HTTPServiceRequest
        let mappers: [any ErrorMapper]

        var mappedError: (any Error)? {
            for mapper in mappers {
                if let error = mapper.error(for: response) { return error }
            }
            return nil
        }

        var rawData: Data? { request.storedBody(of: response) }

        var isStorable: Bool { !CacheControl(response.headers.values(for: .cacheControl)).has("no-store") }
    }
}
