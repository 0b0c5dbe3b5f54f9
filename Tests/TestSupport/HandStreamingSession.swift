import Foundation
package import WebServiceCore

/// A streaming session under the control of the test, which provides the receiver of each exchange.
package final class HandStreamingSession: StreamingSession {
    package final class Exchange: StreamTask {
        package let receiver: any BodyReceiver
        private let url: String
        private let calls = Mutex<[String]>([])
        private let onResume: @Sendable (Exchange) -> Void

        init(
            _ request: any URLRequestEncodable, _ receiver: any BodyReceiver,
            onResume: @escaping @Sendable (Exchange) -> Void
        ) {
            self.receiver = receiver
            self.onResume = onResume
            url = request.urlRequestValue.url?.absoluteString ?? ""
        }

        /// The names of the methods that were called, in order.
        package var log: [String] { calls.withLock { $0 } }
        package var state: DataTaskState { .running }
        package func resume() {
            calls.withLock { $0.append("resume") }
            onResume(self)
        }
        package func suspend() { calls.withLock { $0.append("suspend") } }
        package func cancel() { calls.withLock { $0.append("cancel") } }
        package func receiveMore() { calls.withLock { $0.append("receiveMore") } }

        package func receive(status: Int, fields: String = "", decoder: (any ContentDecoder)? = nil) throws {
            let bytes = Array("HTTP/1.1 \(status) -\r\n\(fields)\r\n".utf8)
            if let head = ResponseHead(bytes: bytes, url: url) {
                try receiver.didReceive(head, length: nil, decoder: decoder)
            }
        }

        package func receive(_ text: String) throws -> Demand {
            try Data(text.utf8).withUnsafeBytes { try receiver.didReceive($0) }
        }

        package func complete() { receiver.didComplete(.success([:]), metrics: nil) }
    }

    /// The exchanges that were resumed: a transport delivers nothing before that.
    package let exchanges = Collected<Exchange>()
    private let onTask: @Sendable () -> Void

    /// - Parameter onTask: Called for each task that is created.
    package init(onTask: @escaping @Sendable () -> Void = {}) {
        self.onTask = onTask
    }

    package func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        onTask()
        return Exchange(request, receiver) { [weak exchanges] in exchanges?.add($0) }
    }
}
