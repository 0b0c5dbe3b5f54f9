import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

/// The result that a completion receives.
struct Answer: Sendable {
    var data: Data?
    var response: HTTPURLResponse?
    var error: (any Error)?
    var wasOnMainThread: Bool

    var text: String? { data.map { String(decoding: $0, as: UTF8.self) } }
    var status: Int? { response?.statusCode }
}

extension Session {
    /// Sends a request and waits for its result.
    func response(to request: any URLRequestEncodable) async -> Answer {
        await withCheckedContinuation { continuation in
            dataTask(request: request) { data, response, error in
                let answer = Answer(
                    data: data, response: response as? HTTPURLResponse, error: error,
                    wasOnMainThread: Thread.isMainThread
                )
                continuation.resume(returning: answer)
            }.resume()
        }
    }
}

/// A counter for any thread.
final class Counter: Sendable {
    private let number = Mutex(0)

    var value: Int { number.withLock { $0 } }

    func add() {
        number.withLock { $0 += 1 }
    }
}

/// One `URLSession` for the whole run, because Foundation on Linux is not safe if sessions are
/// created and deallocated repeatedly.
let plainSession = makePlainSession()

/// Returns a `URLSession` that stores nothing on disk. It must not be invalidated.
func makePlainSession() -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = nil
    configuration.urlCache = nil
    return URLSession(configuration: configuration)
}

func get(_ url: String, method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    return request
}

extension Result {
    /// The error; `nil` for a success.
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
