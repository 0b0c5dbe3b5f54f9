import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

// The snippets of the programming guide from which the framework takes its names, in current Swift.

struct Brewer: Codable, Equatable, Sendable {
    var name: String
}

enum ResponseError: Error {
    case expectedStatus200, failedToSendRequest, failedToDecodeBrewer, nope
}

func brewers(from json: Any) -> [Brewer]? {
    guard let list = (json as? [String: Any])?["brewers"] as? [[String: Any]] else { return nil }
    return list.compactMap { ($0["name"] as? String).map(Brewer.init(name:)) }
}

private let brewersJSON = #"{"brewers":[{"name":"Long Trail"},{"name":"Trashboat"}]}"#

// MARK: - The API client of the guide

/// The API of a brew client.
protocol BrewClientAPI {
    var webService: WebService { get }

    func fetchAllBrewers() -> ServiceTask
    func insertBrew(brew: Brewer) -> ServiceTask
}

extension Brewer {
    var webServiceParameters: [String: Any] { ["name": name] }
}

/// The requests of the API.
extension BrewClientAPI {
    func fetchAllBrewers() -> ServiceTask {
        return webService.GET("/brews")
    }

    func insertBrew(brew: Brewer) -> ServiceTask {
        return webService.POST("/brews").setParameters(brew.webServiceParameters)
    }
}

/// A client for the brew API.
final class BrewClient: BrewClientAPI {
    static let baseURL = "http://brewhapi.herokuapp.com/"
    let webService = WebService(baseURLString: BrewClient.baseURL)
}

extension ServiceTask {
    @discardableResult
    func responseAsBrewers(handler: @escaping @MainActor @Sendable ([Brewer]) -> Void) -> Self {
        return
            responseJSON { json, response in
                if let models: [Brewer] = brewers(from: json) {
                    return .value(models)
                } else {
                    // any value conforming to Error
                    return .failure(ResponseError.failedToDecodeBrewer)
                }
            }
            .updateUI { value in
                if let brewers = value as? [Brewer] {
                    handler(brewers)
                }
            }
    }
}

final class CustomSession: Session {
    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        return FoundationSession.shared.dataTask(request: request.urlRequestValue, completion: completion)
            as any DataTask
    }
}

@Suite("Snippets of the guide", .permit)
struct GuideConformanceTests {
    let session = MockSession()
    let service = WebService(baseURLString: "http://brewhapi.herokuapp.com/")

    init() {
        service.session = session
        session.addStub(MockResponse(statusCode: 200, data: Data(brewersJSON.utf8)))
    }

    @Test("A service accepts a custom session and a URLSession")
    func sessions() {
        let service = WebService(baseURLString: "http://myapi")
        service.session = CustomSession()
        #expect(service.session is CustomSession)
        service.session = URLSession(configuration: URLSessionConfiguration.ephemeral)
        #expect(service.session is URLSession)
    }

    @Test("A request is created from a path, and a task sends it")
    func sendingRequests() async throws {
        let request: Request = service.request(.GET, path: "/brewers")
        #expect(request.url?.absoluteString == "http://brewhapi.herokuapp.com/brewers")
        let task: SessionTask = service.sessionTask(request: request)
        #expect(session.recordedRequests.isEmpty)
        let done = Collected<Int>()
        task.response { data, response in done.add(data?.count ?? 0) }
        task.resume()
        #expect(await done.wait() == [brewersJSON.utf8.count])
        #expect(session.recordedRequests.map(\.httpMethod) == ["GET"])
    }

    @Test("response and responseError handlers can be chained")
    func handlingResponses() async {
        let done = Collected<String>()
        let request: Request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .response { data, response in
                // process response
                done.add("response")
            }
            .responseError { error in
                print("I AM ERROR \(error)")
            }
            .resume()
        #expect(await done.wait() == ["response"])
    }

    @Test("serialize(json:) sets the body and the content type")
    func sendingJSON() throws {
        var request: Request = service.request(.POST, path: "/brewers")
        try request.serialize(json: ["name": "Trashboat Brewing"])
        let sent = request.urlRequestValue
        #expect(sent.httpBody == Data(#"{"name":"Trashboat Brewing"}"#.utf8))
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == "application/json")
    }

    @Test("Query parameters are percent-encoded and appended to the URL")
    func queryParameters() {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = ["state": "new york"]
        #expect(request.urlRequestValue.url?.absoluteString == "http://brewhapi.herokuapp.com/brewers?state=new%20york")
    }

    @Test("A custom encoder adds query parameters to the path")
    func customEncoding() {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameterEncoder = { (url, parameters) -> URL? in
            // manually encode query parameters
            var path = ""

            for (key, value) in parameters {
                path += "\(key)/\(value)"
            }

            // return the encoded URL
            let encodedURL = url?.appendingPathComponent(path)
            return encodedURL
        }
        request.queryParameters = ["brew": "12345"]
        #expect(request.urlRequestValue.url?.absoluteString == "http://brewhapi.herokuapp.com/brewers/brew/12345")

        // Define a custom encoding
        let customEncoder: QueryParameterEncoder = { (url, parameters) -> URL? in
            var path = ""

            for (key, value) in parameters {
                path += "\(key)/\(value)"
            }

            let encodedURL = url?.appendingPathComponent(path)
            return encodedURL
        }

        // Use custom encoding
        var other = service.request(.GET, path: "/brewers")
        other.queryParameterEncoder = customEncoder
        other.queryParameters = ["brew": "12345"]
        #expect(other.urlRequestValue.url == request.urlRequestValue.url)
    }

    @Test("Form parameters become the body and set the content type")
    func formParameters() {
        var request = service.request(.POST, path: "/brewers")
        request.formParameters = ["name": "Trashboat Brewing"]
        let sent = request.urlRequestValue
        #expect(sent.httpBody == Data("name=Trashboat+Brewing".utf8))
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
    }

    @Test("Header fields and a raw body are set by assignment")
    func headersAndBody() {
        var request = service.request(.POST, path: "/brewers")
        request.headers["custom-header-name"] = "foo"
        request.body = Data("model".utf8)
        let sent = request.urlRequestValue
        #expect(sent.value(forHTTPHeaderField: "custom-header-name") == "foo")
        #expect(sent.httpBody == Data("model".utf8))
    }

    @Test("responseJSON passes the parsed JSON to its handler")
    func handlingJSON() async {
        let done = Collected<[Brewer]>()
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .responseJSON { (json: Any, response: URLResponse?) in
                // process JSON
                done.add(brewers(from: json) ?? [])
            }
            .responseError { error in
                print("I AM ERROR \(error)")
            }
            .resume()
        #expect(await done.wait() == [[Brewer(name: "Long Trail"), Brewer(name: "Trashboat")]])
    }

    @Test("transform receives the value of the preceding handler")
    func composing() async {
        let done = Collected<Int>()
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .response { data, response in
                let intermediateValue: (Int, Int)

                // process response to create intermediate value
                intermediateValue = (20, 22)

                return .value(intermediateValue)
            }
            .transform { _intermediateValue in
                let intermediateValue = _intermediateValue as? (Int, Int) ?? (0, 0)
                let finalValue: Int

                // process intermediate value to create final value
                finalValue = intermediateValue.0 + intermediateValue.1

                return .value(finalValue)
            }
            .transform { value in done.add(value as? Int ?? 0) }
            .resume()
        #expect(await done.wait() == [42])
    }

    @Test("transform is not called after a failure")
    func transformAfterFailure() async {
        let called = Collected<String>()
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .response { data, response in
                return .failure(ResponseError.nope)
            }
            .transform { value in
                // closure is **not** called
                called.add("transform")
            }
            .responseError { _ in called.add("error") }
            .resume()
        #expect(await called.wait() == ["error"])
    }

    @Test("recover turns a failure into a value")
    func recovering() async {
        let called = Collected<String>()
        let recoverGracefully: @Sendable (any Error) -> Bool = { _ in true }
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .response { data, response in
                return .failure(ResponseError.nope)
            }
            .recover { error in
                if recoverGracefully(error) {
                    // recovery succeeds:
                    return .value("It's all good")
                }

                // recovery fails:
                return .failure(error)
            }
            .transform { value in
                // closure **is** called _if_ recovery succeeds
                called.add(value as? String ?? "")
            }
            .resume()
        #expect(await called.wait() == ["It's all good"])
    }

    @Test("updateUI receives the value on the main queue")
    func updatingUI() async {
        let done = Collected<[Brewer]>()
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .responseJSON { json, response in
                if let models: [Brewer] = brewers(from: json) {
                    return .value(models)
                } else {
                    // any value conforming to Error
                    return .failure(ResponseError.failedToDecodeBrewer)
                }
            }
            .updateUI { value in
                // this closure will be dispatched to the main queue via `updateUI()`
                dispatchPrecondition(condition: .onQueue(.main))
                if let brewers = value as? [Brewer] {
                    // update some UI with brewer models
                    done.add(brewers)
                }
            }
            .resume()
        #expect(await done.wait().first?.count == 2)
    }

    @Test(
        "The result of each handler selects the value handlers or the error handlers that follow",
        arguments: [200, 500])
    func serviceTaskResult(status: Int) async {
        session.addStub(MockResponse(statusCode: status, data: Data(brewersJSON.utf8)))
        let done = Collected<String>()
        let request = service.request(.GET, path: "/brewers")
        service
            .sessionTask(request: request)
            .response { data, response in
                // filter responses that do not have status 200

                if let httpResponse = response as? HTTPURLResponse, httpResponse.statusCode != 200 {
                    return .failure(ResponseError.expectedStatus200)
                }

                return .empty
            }
            .responseJSON { json, response in
                // decode JSON as an array of models

                if let models: [Brewer] = brewers(from: json) {
                    // return valid model data to updateUI handler
                    return .value(models)
                } else {
                    // any value conforming to Error
                    return .failure(ResponseError.failedToDecodeBrewer)
                }
            }
            .updateUI { (value: Any) in
                // configure the UI with the model on the main thread

                if let models = value as? [Brewer] {
                    done.add("\(models.count) models")
                }
            }
            .updateErrorUI { error in
                // handle errors and update UI accordingly
                done.add("\(error)")
            }
            .resume()
        #expect(await done.wait() == [status == 200 ? "2 models" : "expectedStatus200"])
    }

    @Test("Extensions of an API client send requests and decode responses")
    func buildingAnAPIClient() async {
        let brewClient = BrewClient()
        brewClient.webService.session = session
        let done = Collected<[Brewer]>()

        brewClient
            .fetchAllBrewers()
            .responseAsBrewers { brewers in
                // update UI with the valid model data
                done.add(brewers)
            }
            .updateErrorUI { error in
                print("I AM ERROR: \(error)")
            }
            .resume()
        #expect(await done.wait().first?.map(\.name) == ["Long Trail", "Trashboat"])

        brewClient.insertBrew(brew: Brewer(name: "A & B")).response { _, _ in done.add([]) }.resume()
        await done.wait(for: 2)
        #expect(session.recordedRequests.last?.httpBody == Data("name=A+%26+B".utf8))
    }

    @Test("A mock response completes the request of a client")
    func mocking() async {
        // create a mock session
        let session = MockSession()

        // add a response stub to the session
        let brewerJSON = ["name": "Long Trail Brewing Company", "location": "Vermont"]
        let mockedResponse = MockResponse(statusCode: 200, json: ["brewers": [brewerJSON]])
        session.addStub(mockedResponse)

        // inject mock session as your web service's session
        let client = BrewClient()
        client.webService.session = session

        let done = Collected<Int>()
        client
            .fetchAllBrewers()
            .responseAsBrewers { brews in
                done.add(brews.count)
            }.updateErrorUI { error in
                Issue.record("the updateErrorUI handler must not be called for valid JSON: \(error)")
            }
            .resume()
        #expect(await done.wait() == [1])
    }

    @Test("The error of a stub is passed to the error handlers")
    func errorStub() async {
        session.addStub(ResponseError.failedToSendRequest as NSError)
        let done = Collected<String>()
        service.GET("/brews").responseError { done.add("\(($0 as NSError).domain)") }.resume()
        #expect(await done.wait().first?.contains("ResponseError") == true)
    }

    @Test("A delegate logs requests and responses")
    func logging() async {
        final class RequestLogger: PartialDelegate {
            let lines = Collected<String>()

            func requestSent(request: URLRequest) {
                lines.add("Sending request: \(request)")
            }

            func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
                if let response = response {
                    lines.add("Received response: \(response.url?.absoluteString ?? "")")

                    if let data = data, let body = NSString(data: data, encoding: String.Encoding.utf8.rawValue) {
                        lines.add("... body: \(body)")
                    }
                } else if let error = error {
                    lines.add("Received error: \(error)")
                }
            }
        }

        let logger = RequestLogger()
        let service = WebService(baseURLString: "http://brewhapi.herokuapp.com/", passthroughDelegate: logger)
        service.session = session
        service.GET("/brewers").resume()
        let lines = await logger.lines.wait(for: 3)
        #expect(
            lines.map { String($0.prefix(17)) } == ["Sending request: ", "Received response", "... body: {\"brewe"])
    }
}
