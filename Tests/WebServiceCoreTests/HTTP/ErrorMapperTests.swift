import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Error mappers", .timeLimit(.minutes(10)))
struct ErrorMapperTests {
    enum LoginError: Error, Equatable {
        case invalidCode
        case locked(Int)
    }

    struct APIError: Error, Decodable, Equatable {
        var error: String
    }

    struct Login: HTTPServiceRequest {
        typealias Output = String
        var mapper: (any ErrorMapper)?
        func request(for service: WebService) -> Request {
            var request = service.request(.POST, path: "/login")
            request.options.errorMapper = mapper
            return request
        }
    }

    private let body = #"{"error":"invalid_grant"}"#

    @Test("an answer that is not accepted becomes the mapper's error, which sees status, header fields and body")
    func closure() async throws {
        let service = WebService.make(HandSession(text: body, status: 400))
        service.errorMapper = .closure { response in
            response.status == 400 && response.headers.isEmpty && response.data.count == 25
                ? LoginError.invalidCode : nil
        }
        await #expect(throws: LoginError.invalidCode) { try await service.POST("/login").data().value }
        await #expect(throws: LoginError.invalidCode) { try await service.perform(Login()).value }
    }

    @Test("a body is decoded to an error of one's own; one that is something else leaves the status's")
    func decoding() async throws {
        let service = WebService.make(HandSession(text: body, status: 401))
        service.errorMapper = .decoding(APIError.self)
        await #expect(throws: APIError(error: "invalid_grant")) { try await service.GET("/x").empty().value }
        service.errorMapper = .decoding(APIError.self, statuses: 500...599)
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/x").empty().value }
        #expect(error?.status == 401)
        service.session = HandSession(text: "<html>", status: 502)
        service.errorMapper = .decoding(APIError.self)
        let other = await #expect(throws: WebServiceError.self) { try await service.GET("/x").empty().value }
        #expect(other?.code == .unacceptableStatus)
    }

    @Test("the request's mapper is asked before the service's, which is asked where it knows nothing")
    func order() async throws {
        let service = WebService.make(HandSession(text: body, status: 423))
        service.errorMapper = .decoding(APIError.self)
        let locked: any ErrorMapper = .closure { $0.status == 423 ? LoginError.locked(423) : nil }
        let ignorant: any ErrorMapper = .closure { _ in nil }
        var request = service.request(.GET, path: "/x")
        request.options.errorMapper = locked
        await #expect(throws: LoginError.locked(423)) { try await service.sessionTask(request: request).empty().value }
        await #expect(throws: LoginError.locked(423)) { try await service.perform(Login(mapper: locked)).value }
        request.options.errorMapper = ignorant
        await #expect(throws: APIError(error: "invalid_grant")) {
            try await service.sessionTask(request: request).empty().value
        }
        await #expect(throws: APIError(error: "invalid_grant")) {
            try await service.perform(Login(mapper: ignorant)).value
        }
    }

    @Test("a status that is accepted is no failure, and neither is a mapper asked of a transport error")
    func notAsked() async throws {
        let asked = Collected<Int>()
        let service = WebService.make(HandSession(text: "x", status: 404))
        service.errorMapper = .closure { response in
            asked.add(response.status)
            return TestError()
        }
        #expect(try await service.GET("/x").string().validate(statuses: [404]).value == "x")
        service.session = HandSession { $0.completion(nil, nil, URLError(.notConnectedToInternet)) }
        let error = await #expect(throws: URLError.self) { try await service.GET("/x").string().value }
        #expect(error?.code == .notConnectedToInternet)
        #expect(asked.values.isEmpty)
    }

    @Test("the whole family of failed connections is told apart from what a server or a caller did")
    func connectionFailures() {
        let connection: [URLError.Code] = [
            .notConnectedToInternet, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed,
            .timedOut,
            .internationalRoamingOff, .dataNotAllowed, .callIsActive,
        ]
        for code in connection { #expect(URLError(code).isConnectionFailure) }
        for code in [.cancelled, .badServerResponse, .badURL, .serverCertificateUntrusted, .unsupportedURL]
            as [URLError.Code]
        {
            #expect(!URLError(code).isConnectionFailure)
        }
    }

    @Test("204 is an empty object, nothing, or Void; 304 is told")
    func noContent() async throws {
        let service = WebService.make(HandSession(text: "", status: 204))
        #expect(try await service.GET("/x").json().value == .object([:]))
        #expect(try await service.GET("/x").decode([String]?.self).value == nil)
        try await service.GET("/x").empty().value
        let error = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").decode([String].self).value
        }
        #expect(error?.code == .emptyResponse)
        service.session = HandSession(text: "", status: 304)
        let task = service.GET("/x").data()
        _ = await task.result
        #expect(try await task.response.isNotModified)
    }
}
