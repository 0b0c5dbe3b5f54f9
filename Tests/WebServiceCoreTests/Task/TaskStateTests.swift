import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The state machine without threads, sessions or time.
@Suite("Task state", .timeLimit(.minutes(10)))
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

    @Test("a preparation that is attached after its exchange does not replace it")
    func latePreparation() {
        var state = make()
        _ = state.resume()
        _ = state.attach(.exchange(Exchange()))
        let (isWanted, replaced) = state.attach(.preparation(Task {}))
        #expect(isWanted)
        #expect(replaced == nil)
        guard case .exchange = state.cancel()?.transport else {
            Issue.record("the exchange has to be cancelled")
            return
        }
    }

    @Test("H-17: an exchange sends 100 requests and no more")
    func messageLimit() throws {
        var state = make()
        _ = state.resume()
        let request = try Request(url: "https://h/").encode()
        let permissions = (0...SessionTask.maximumMessages).map { _ in state.willSend(request, at: 0).permission }
        #expect(permissions == Array(repeating: .granted, count: SessionTask.maximumMessages) + [.refused])
        #expect(state.messages == SessionTask.maximumMessages)
    }

    @Test("a task that is suspended between two handlers runs the second one after resume", arguments: [false, true])
    func suspendedBetweenHandlers(isOnMain: Bool) {
        var state = make()
        let second: Handler = isOnMain ? .updateUI { _ in } : .lookAtResponse { _, _ in }
        _ = state.add(second)
        _ = state.resume()
        #expect(state.complete(Outcome(data: Data()))?.runsHandlers == true)
        let track = state.chain.pickUp()
        guard case .run(.step) = state.nextStep(on: track) else {
            Issue.record("the first handler has to run")
            return
        }
        state.suspend()
        if isOnMain {
            let handler = state.nextMainHandler(on: track)
            #expect(handler == nil)
        }
        guard case .rest = state.nextStep(on: track) else {
            Issue.record("no handler may run while the task is suspended")
            return
        }
        guard case .runHandlers = state.resume(), case .run(let handler) = state.nextStep(on: state.chain.pickUp()) else {
            Issue.record("the second handler has to run")
            return
        }
        #expect(handler.runsOnMain == isOnMain)
    }

    @Test("an interruption ends the attempt in flight; a response that was there before ends no second one", arguments: [false, true])
    func interruptedAttempt(isInFlight: Bool) throws {
        var state = make()
        _ = state.resume()
        let request = try Request(url: "https://h/").encode()
        _ = state.willSend(request, at: 1)
        state.recordAttempt(request, Outcome(data: Data()), at: 2)
        if isInFlight { _ = state.willSend(request, at: 3) }
        _ = state.cancel(at: 4)
        let attempts = state.timeline.ordered.filter { $0.attempt != nil }
        #expect(attempts.map(\.start) == (isInFlight ? [1, 3] : [1]))
        #expect(attempts.map(\.end) == (isInFlight ? [2, 4] : [2]))
    }

    @Test("a Swift task that awaits the end runs the handlers only where no closure of the caller is among them")
    func adoption() {
        var own = make()
        let runsOwn = own.adopt()
        #expect(runsOwn)
        var mixed = make()
        _ = mixed.add(.lookAtResponse { _, _ in })
        let runsMixed = mixed.adopt()
        #expect(!runsMixed)
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
