package import WebServiceCore

/// A session that responds to every request with the same head.
package struct HeadSession: StreamingSession {
    private let head: ResponseHead

    package init(head: ResponseHead) { self.head = head }

    package func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        DeliveringTask(receiver) { [head] delivery in
            HandSession { _ in
                delivery.receive(head, length: 0)
                delivery.finish(.success([:]))
            }.dataTask(request: request) { _, _, _ in }
        }
    }
}
