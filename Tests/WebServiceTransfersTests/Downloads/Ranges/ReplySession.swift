import Foundation
import TestSupport

@testable import WebServiceCore

/// A session whose responses have any head and any body, whether they agree or not.
struct ReplySession: StreamingSession {
    struct Reply: Sendable {
        var status = 200
        var headers: Headers = [:]
        var body = Data()
        /// The length of the body that the session reports.
        var length: Int64?
        /// The error after the body.
        var failure: URLError?
        /// Whether the body is shorter or longer than that of the response.
        var isCut = false

        fileprivate var head: ResponseHead? {
            let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            return ResponseHead(bytes: Array("HTTP/1.1 \(status) \r\n\(lines)\r\n".utf8), url: "https://h/a")
        }
    }

    /// Returns the response to a request with these header fields.
    let respond: @Sendable (Headers) -> Reply

    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        DeliveringTask(receiver) { [respond] delivery in
            HandSession { exchange in
                let reply = respond((exchange.request as? EncodedRequest)?.headers ?? [:])
                if let head = reply.head { delivery.receive(head, length: reply.length) }
                if !reply.body.isEmpty { delivery.receive(reply.body) }
                delivery.finish(reply.failure.map { .failure($0) } ?? .success([:]))
            }.dataTask(request: request) { _, _, _ in }
        }
    }
}
