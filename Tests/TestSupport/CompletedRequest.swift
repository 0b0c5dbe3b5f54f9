package import Foundation
import Testing
package import WebServiceCore

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// The result that a completion receives.
package struct Answer: Sendable {
    package var data: Data?
    package var response: HTTPURLResponse?
    package var error: (any Error)?
    package var wasOnMainThread: Bool

    package var text: String? { data.map { String(decoding: $0, as: UTF8.self) } }
    package var status: Int? { response?.statusCode }
}

extension Session {
    /// Sends a request and waits for its result.
    package func response(to request: any URLRequestEncodable) async -> Answer {
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
package final class Counter: Sendable {
    private let number = Mutex(0)

    package init() {}

    package var value: Int { number.withLock { $0 } }

    package func add() {
        number.withLock { $0 += 1 }
    }
}

/// One `URLSession` for the whole run, because Foundation on Linux is not safe if sessions are
/// created and deallocated repeatedly.
package let plainSession = makePlainSession()

/// Returns a `URLSession` that stores nothing on disk. It must not be invalidated.
package func makePlainSession() -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = nil
    configuration.urlCache = nil
    return URLSession(configuration: configuration)
}

/// Returns a request without header fields.
package func get(_ url: String, method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    return request
}
