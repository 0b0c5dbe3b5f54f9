import Foundation
import WebServiceCore

/// A stream of a ``MockSession``: its response is that of a stub, or another session delivers it.
final class MockStreamTask: StreamTask {
    private let base: MockDataTask
    private let stubbed: DeliveringTask

    /// - Parameters:
    ///   - base: The task whose result is that of a stub, or the task of another session.
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
        // The stub may have responded while bytes are still buffered. Another session completes the
        // receiver itself.
        if base.passed == nil { stubbed.cancel() }
    }
}
