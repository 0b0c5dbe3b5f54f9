import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The code of the guide's chapter on mocking, in the same order.
@Suite(.permit) struct GuideMockingTests {
    enum ResponseError: Error {
        case failedToSendRequest
    }

    struct MyMockedResult: MockableDataTaskResult {
        func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
            guard let url = request.urlRequestValue.url else { return (nil, nil, nil) }

            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 12345, textEncodingName: nil)
            return (nil, response, nil)
        }
    }

    @Test("The guide's first stub responds with its JSON")
    func firstStub() async throws {
        let session = MockSession()
        let brewerJSON = ["name": "Long Trail Brewing Company", "location": "Vermont"]
        let mockedResponse = MockResponse(statusCode: 200, json: ["brewers": [brewerJSON]])
        session.addStub(mockedResponse)

        let answer = await session.response(to: try get("http://brewhapi.herokuapp.com/brewers"))
        let json = try JSONSerialization.jsonObject(with: try #require(answer.data)) as? [String: [[String: String]]]
        #expect(json == ["brewers": [brewerJSON]])
        #expect(answer.status == 200)
        #expect(answer.response?.value(forHTTPHeaderField: "content-type") == "application/json")
    }

    @Test("A custom type can be a stub")
    func ownType() async throws {
        let session = MockSession()
        session.addStub(MyMockedResult())
        let (data, response, error) = await withCheckedContinuation { continuation in
            let task = session.dataTask(request: Request(.GET, url: "https://somehapi.herokuapp.com/a")) {
                data, response, error in
                continuation.resume(returning: (data, response, error))
            }
            task.resume()
        }
        #expect(response?.url?.path == "/a")
        #expect(response?.expectedContentLength == 12345)
        #expect(data == nil)
        #expect(error == nil)
    }

    @Test("The guide's responses have a status, JSON, or data with a header field")
    func responses() async throws {
        let noContentResponse = MockResponse(statusCode: 204)
        #expect(noContentResponse.data.isEmpty)
        #expect(noContentResponse.headers.isEmpty)

        let jsonResponse = MockResponse(statusCode: 200, json: ["foo": "bar"])
        #expect(jsonResponse.data == Data(#"{"foo":"bar"}"#.utf8))

        let responseData: Data = Data("brew".utf8)
        var response = MockResponse(statusCode: 200, data: responseData)
        response.headers = ["Content-Length": "12345"]
        let session = MockSession()
        session.addStub(response)
        let answer = await session.response(to: try get("https://somehapi.herokuapp.com"))
        #expect(answer.data == responseData)
        #expect(answer.response?.value(forHTTPHeaderField: "Content-Length") == "12345")
    }

    @Test("The guide's matcher selects requests by their path")
    func matcher() async throws {
        let mockSession = MockSession()
        let response = MockResponse(statusCode: 200, json: ["foo": "bar"])

        // add a stub that matches only requests with "/brews" in the URL path
        mockSession.stub(response) { (matchingRequest: any URLRequestEncodable) in

            if let path = matchingRequest.urlRequestValue.url?.path {
                // use this stub if the path contains /brews
                return path.contains("/brews")
            }

            // do not use this stub for this request
            return false
        }

        #expect(await mockSession.response(to: try get("http://a.test/brews/1")).status == 200)
        let error = await mockSession.response(to: try get("http://a.test/pubs")).error as? WebServiceError
        #expect(error?.code == .noStub)
    }

    @Test("The error of a stub is delivered without data and response")
    func errors() async throws {
        let session = MockSession()
        session.addStub(ResponseError.failedToSendRequest as NSError)
        let answer = await session.response(to: try get("http://a.test/"))
        let error = try #require(answer.error) as NSError
        #expect(error == ResponseError.failedToSendRequest as NSError)
        #expect(answer.data == nil)
        #expect(answer.response == nil)
    }

    @Test("A service over a mock receives the responses of its stubs, and an error for an unmatched request")
    func service() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail Brewing Company"]]])) {
            request in
            request.urlRequestValue.url?.path == "/brewers"
        }
        let service = WebService(baseURLString: "http://brewhapi.herokuapp.com/")
        service.session = session

        func outcome(of path: String) async -> String {
            await withCheckedContinuation { continuation in
                service
                    .GET(path)
                    .responseJSON { json, response in
                        let brewers = (json as? [String: [[String: String]]])?["brewers"]
                        continuation.resume(returning: brewers?.first?["name"] ?? "no brewer")
                    }
                    .responseError { error in
                        continuation.resume(returning: "\(error)")
                    }
                    .resume()
            }
        }
        #expect(await outcome(of: "/brewers") == "Long Trail Brewing Company")
        #expect(
            await outcome(of: "/pubs?token=canary").hasPrefix(
                "noStub: no stub matches GET /pubs; the closest of 1 stub:\n  a stub with a closure (Guide"))
        #expect(
            session.recordedRequests.map { $0.url?.absoluteString ?? "" }.first
                == "http://brewhapi.herokuapp.com/brewers")
    }

    @Test("A service sends a request to a server on loopback")
    func serviceAndServer() async throws {
        let server = try MockServer()
        server.on(.GET, "/brewers", MockResponse(statusCode: 200, json: ["name": "ale"]))
        let service = WebService(baseURLString: server.baseURLString)
        let name = await withCheckedContinuation { continuation in
            service.GET("brewers")
                .responseJSON { json, _ in continuation.resume(returning: (json as? [String: String])?["name"]) }
                .responseError { _ in continuation.resume(returning: nil) }
                .resume()
        }
        #expect(name == "ale")
        #expect(server.receivedRequests.map(\.target) == ["/brewers"])
    }
}
