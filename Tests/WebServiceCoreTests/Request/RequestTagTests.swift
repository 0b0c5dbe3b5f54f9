import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Tags of requests", .permit)
struct RequestTagTests {
    private enum Feature: RequestTagKey {
        static let defaultValue = "unknown"
    }

    private enum Screen: RequestTagKey {
        static let defaultValue: Int? = nil
    }

    @Test("A tag has the default value of its key until it is set, independently of other keys")
    func values() {
        var options = Request.Options()
        #expect(options[Feature.self] == "unknown")
        #expect(options[Screen.self] == nil)
        options[Feature.self] = "search"
        #expect(options[Feature.self] == "search")
        #expect(options[Screen.self] == nil)
        options[Screen.self] = 7
        var copy = options
        copy[Feature.self] += "/menu"
        copy[Screen.self] = nil
        #expect(copy[Feature.self] == "search/menu")
        #expect(copy[Screen.self] == nil)
        #expect(options[Feature.self] == "search")
        #expect(options[Screen.self] == 7)
    }

    @Test("The tags of a request are available to interceptors, the task and the error, and are not sent")
    func visibility() async throws {
        let session = HandSession(text: "x", status: 500)
        let service = WebService.make(session)
        service.options[Feature.self] = "menu"
        let seen = Collected<String>()
        service.interceptors = [
            .closure { request, next in
                seen.add(request.options[Feature.self])
                return try await next(request)
            }
        ]
        let task = service.GET("/x").configure { $0.options[Feature.self] += "/search" }
        let error = try await #require(throws: WebServiceError.self) { try await task.data().value }
        #expect(seen.values == ["menu/search"])
        #expect(task.request.options[Feature.self] == "menu/search")
        #expect(error.code == .unacceptableStatus)
        #expect(error.request?.options[Feature.self] == "menu/search")
        #expect(try #require(session.exchanges.values.first).request.urlRequestValue.allHTTPHeaderFields ?? [:] == [:])
    }
}
