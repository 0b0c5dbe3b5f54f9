import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("HTTPEndpoint", .permit)
struct HTTPEndpointTests {
    private struct Upload: ParameterizedRequest {
        typealias Output = String
        var path: String { "/upload" }
    }

    private struct List: ParameterizedRequest {
        typealias Output = String
        var path: String { "/list" }
    }

    @Test("Several endpoints send their requests over their own sessions, with the pipeline of the service")
    func sessions() async throws {
        let (uploads, main) = (HandSession(text: "uploaded"), HandSession(text: "listed"))
        let service = WebService.make(main)
        service.interceptors = [.headers(["X-App": "1"])]
        service.endpoints = [HTTPEndpoint(session: uploads, where: { $0 is Upload }), HTTPEndpoint()]
        for _ in 0..<2 { #expect(try await service.perform(Upload()).value == "uploaded") }
        #expect(try await service.perform(List()).value == "listed")
        #expect(uploads.exchanges.values.count == 2)
        #expect(main.exchanges.values.count == 1)
        for exchange in uploads.exchanges.values + main.exchanges.values {
            #expect(exchange.request.urlRequestValue.value(forHTTPHeaderField: "X-App") == "1")
        }
        service.endpoints = [HTTPEndpoint(session: uploads)]
        #expect(try await service.perform(List()).value == "uploaded")
    }

    @Test("Cancelling a task cancels the request over the session of its endpoint")
    func cancellation() async {
        let uploads = HandSession()
        let service = WebService.make()
        service.endpoints = [HTTPEndpoint(session: uploads)]
        let task = service.perform(Upload()).resume()
        let exchange = await uploads.exchanges.wait()[0]
        task.cancel()
        #expect(await task.serviceResponse.isCanceled)
        await eventually { exchange.log == ["resume", "cancel"] }
    }
}
