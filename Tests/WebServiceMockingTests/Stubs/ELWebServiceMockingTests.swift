import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

/// The behavior that the mocking tests of ELWebService describe.
@Suite(.permit) struct ELWebServiceMockingTests {
    private let session = MockSession()

    @Test("The state of a mocked task follows resume and cancel, and ends with completed")
    func states() async throws {
        session.on(.GET, "/held", MockResponse.status(200).after(.seconds(60)))
        session.on(.GET, "/a", 200)
        let held = session.dataTask(request: try get("http://a.test/held")) { _, _, _ in }
        #expect(held.state == .suspended)
        held.resume()
        #expect(held.state == .running)
        held.suspend()
        #expect(held.state == .running)  // a request that was sent cannot be held back
        held.cancel()
        #expect(held.state == .canceling || held.state == .completed)
        await eventually("the cancelled task completes") { held.state == .completed }
        let task = session.dataTask(request: try get("http://a.test/a")) { _, _, _ in }
        task.resume()
        await eventually("the task completes") { task.state == .completed }
    }

    @Test("A stub responds if its matcher returns true, and not if it returns false")
    func matcher() async throws {
        session.addStub(MockResponse(statusCode: 200)) { _ in true }
        let matched = await session.response(to: try get("http://a.test/foo"))
        #expect(matched.status == 200)
        #expect(matched.error == nil)
        session.removeAllStubs()
        session.addStub(MockResponse(statusCode: 200)) { _ in false }
        let unmatched = await session.response(to: try get("http://a.test/foo"))
        #expect(unmatched.data == nil)
        #expect(unmatched.response == nil)
        #expect((unmatched.error as? WebServiceError)?.code == .noStub)  // ELWebService has no error here
    }

    @Test("A response retains its data, a URLResponse and an NSError are results")
    func results() throws {
        let data = Data("ale".utf8)
        #expect(MockResponse(statusCode: 200, data: data).data == data)
        let url = try #require(URL(string: "http://a.test/urlResponse"))
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        #expect(response.dataTaskResult(request: URLRequest(url: url)).1 === response)
        let error = NSError(domain: "test", code: 500, userInfo: nil)
        #expect(error.dataTaskResult(request: URLRequest(url: url)).2 as NSError? == error)
        #expect(error.dataTaskResult(request: URLRequest(url: url)).1 == nil)
    }
}
