import Foundation
import WebServiceCore

/// A stream of a ``MockSession``. A stub or another session responds.
final class MockStreamTask: StreamTask {
    private let base: MockDataTask
    private let stubbed: DeliveringTask

    /// - Parameters:
    ///   - base: The task that determines the result from a stub, or passes the request to another
    ///     session.
    ///   - stubbed: The task that delivers the response of the stub.
    init(_ base: MockDataTask, _ stubbed: DeliveringTask) {
        self.base = base
        self.stubbed = stubbed
    }

    var state: DataTaskState { base.state }
    func resume() { base.resume() }
    func suspend() {}

    func receiveMore() {
        if let passed = base.passed { (passed as? any StreamTask)?.receiveMore() } else { stubbed.receiveMore() }
    }

    func cancel() {
        base.cancel()
        // The stub may have responded while bytes are still buffered. If another session sends the
        // request, that session completes the receiver.
        if base.passed == nil { stubbed.cancel() }
    }
}
