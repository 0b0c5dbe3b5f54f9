import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore

@Suite("Error mappers", .permit)
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

    @Test("A mapper receives status, header fields and body of an unacceptable response and returns its error")
    func closure() async throws {
        let service = WebService.make(HandSession(text: body, status: 400))
        service.errorMapper = .closure { response in
            response.status == 400 && response.headers.isEmpty && response.data.count == 25
                ? LoginError.invalidCode : nil
        }
        await #expect(throws: LoginError.invalidCode) { try await service.POST("/login").data().value }
        await #expect(throws: LoginError.invalidCode) { try await service.perform(Login()).value }
    }

    @Test("A body is decoded to a custom error, and other bodies or statuses leave the status error in place")
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

    @Test("The decoder of the service decodes errors, unless the mapper has a decoder")
    func decoder() async throws {
        struct Blocked: Error, Decodable, Equatable { var blockedUntil: Date }
        struct Call: HTTPServiceRequest {
            typealias Output = String
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let decoder = JSONDecoder()
        (decoder.keyDecodingStrategy, decoder.dateDecodingStrategy) = (.convertFromSnakeCase, .secondsSince1970)
        let service = WebService.make(HandSession(text: #"{"blocked_until":1000}"#, status: 403))
        service.errorMapper = .decoding(Blocked.self)
        service.decoder = decoder
        let blocked = Blocked(blockedUntil: Date(timeIntervalSince1970: 1000))
        await #expect(throws: blocked) { try await service.GET("/x").empty().value }
        await #expect(throws: blocked) { try await service.perform(Call()).value }
        await #expect(throws: blocked) {
            try await service.GET("/x").configure { $0.options.errorMapper = .decoding(Blocked.self) }.empty().value
        }
        service.errorMapper = .decoding(Blocked.self, decoder: JSONDecoder())
        await #expect(throws: WebServiceError.self) { try await service.GET("/x").empty().value }
        await #expect(throws: WebServiceError.self) { try await service.perform(Call()).value }
    }

    @Test("The mapper of the request runs first, and the mapper of the service runs if it returns nil")
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

    @Test("A mapper does not run for an accepted status or for a transport error")
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

    @Test("isConnectionFailure is true for connection errors and false for cancellation and server errors")
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

    @Test("A 204 response decodes to an empty object, nil or Void, and a 304 response is marked as not modified")
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
