package import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// A session that returns scripted responses in order and repeats the last one.
package final class ScriptedSession: Session {
    package enum Answer: Sendable {
        case status(Int, headers: [String: String] = [:], body: String = "")
        case error(URLError.Code)
        /// An error of a request of which nothing was sent.
        case unsent(URLError.Code)
    }

    package let hand: HandSession

    package init(_ answers: [Answer]) {
        let position = Collected<Int>()
        hand = HandSession { exchange in
            position.add(1)
            let url = exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/")
            switch answers[min(position.values.count, answers.count) - 1] {
            case .status(let status, let headers, let body):
                let response = HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers)
                exchange.completion(Data(body.utf8), response, nil)
            case .error(let code):
                exchange.completion(nil, nil, URLError(code))
            case .unsent(let code):
                exchange.completion(nil, nil, URLError(code).markingRequestNotSent())
            }
        }
    }

    package var sent: [URLRequest] { hand.exchanges.values.map(\.request.urlRequestValue) }

    package func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        hand.dataTask(request: request, completion: completion)
    }
}
