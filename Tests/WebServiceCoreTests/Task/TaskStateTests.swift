import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The state machine without threads, sessions or time.
@Suite("Task state", .timeLimit(.minutes(5)))
struct TaskStateTests {
    private func make() -> TaskState {
        var state = TaskState(request: Request(url: "https://h/"))
        _ = state.add(.step({ _ in nil }, isOwn: true))
        return state
    }

    private final class Exchange: DataTask {
        var state: DataTaskState { .running }
        func resume() {}
        func suspend() {}
        func cancel() {}
    }

    @Test("the first resume starts, the second does nothing")
    func resume() {
        var state = make()
        #expect(state.dataTaskState == .suspended)
        guard case .start = state.resume() else {
            Issue.record("the first resume has to start")
            return
        }
        #expect(state.dataTaskState == .running)
        guard case .none = state.resume() else {
            Issue.record("the second resume has to do nothing")
            return
        }
    }

    @Test("H-20: cancel before resume is the outcome, and a later resume starts nothing")
    func cancelFirst() {
        var state = make()
        let action = state.cancel()
        #expect(action?.runsHandlers == true)
        #expect((state.outcome?.error as? URLError)?.code == .cancelled)
        guard case .none = state.resume() else {
            Issue.record("a cancelled task must not start")
            return
        }
        #expect(state.cancel() == nil)
    }

    @Test("C-43: the first outcome counts, later ones change nothing")
    func firstOutcome() {
        var state = make()
        _ = state.resume()
        #expect(state.complete(Outcome(data: Data([1]))) != nil)
        #expect(state.complete(Outcome(data: Data([2]))) == nil)
        #expect(state.cancel() == nil)
        #expect(state.outcome?.data == Data([1]))
        #expect(state.outcome?.error == nil)
    }

    @Test("H-19: an exchange that is attached after the outcome is not wanted")
    func lateAttach() {
        var state = make()
        _ = state.resume()
        _ = state.cancel()
        let (lateIsWanted, _) = state.attach(.exchange(Exchange()))
        #expect(!lateIsWanted)
        var other = make()
        _ = other.resume()
        let (isWanted, _) = other.attach(.exchange(Exchange()))
        #expect(isWanted)
        #expect(other.cancel()?.transport != nil)
    }

    @Test("a suspended task keeps its outcome until it is resumed")
    func suspended() {
        var state = make()
        _ = state.resume()
        state.suspend()
        #expect(state.dataTaskState == .suspended)
        #expect(state.complete(Outcome(data: Data()))?.runsHandlers == false)
        guard case .runHandlers = state.resume() else {
            Issue.record("resume has to run the handlers")
            return
        }
    }

    @Test("cancelling a suspended task runs its handlers")
    func cancelSuspended() {
        var state = make()
        _ = state.resume()
        state.suspend()
        #expect(state.cancel()?.runsHandlers == true)
        #expect(state.dataTaskState == .canceling)
    }

    @Test("only one thread at a time has the right to run handlers")
    func claim() {
        var state = make()
        _ = state.resume()
        #expect(state.complete(Outcome(data: Data()))?.runsHandlers == true)
        let hasToRun = state.add(.responseError { _ in })
        #expect(!hasToRun)
    }

    @Test("rule 3: what each track admits")
    func admission() {
        let success: [Handler] = [
            .response { _, _ in .empty }, .lookAtResponse { _, _ in }, .responseJSON { _, _ in .empty }, .lookAtJSON { _, _ in },
            .updateUI { _ in },
        ]
        let results: [Handler] = [.transform { _ in .empty }, .lookAtValue { _ in }]
        let failure: [Handler] = [.recover { _ in .empty }, .responseError { _ in }, .updateErrorUI { _ in }]
        for handler in success {
            #expect(Track.pending.admits(handler))
            #expect(Track.success(nil).admits(handler))
            #expect(!Track.failure(TestError()).admits(handler))
        }
        for handler in results {
            #expect(!Track.pending.admits(handler))
            #expect(Track.success(nil).admits(handler))
            #expect(!Track.failure(TestError()).admits(handler))
        }
        for handler in failure {
            #expect(!Track.pending.admits(handler))
            #expect(!Track.success(nil).admits(handler))
            #expect(Track.failure(TestError()).admits(handler))
        }
    }
}
