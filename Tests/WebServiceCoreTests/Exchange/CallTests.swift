import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Verifies the state machine without threads, sessions or clocks.
@Suite("State of a task", .permit)
struct CallTests {
    private func make() -> Call {
        var state = Call(request: Request(url: "https://h/"))
        _ = state.add(.ownStep(TypedResult<Void>(.response { _ in })))
        return state
    }

    private static let instant = TaskClock(ManualTimekeeper()).instant

    private struct Work: Cancellable {
        func cancel() {}
    }

    private static func success(_ bytes: UInt8...) -> Result<Response, any Error> {
        .success(Response(body: Data(bytes), source: .mock))
    }

    @Test("The first resume starts the task, and the second has no effect")
    func resume() {
        var state = make()
        #expect(state.dataTaskState == .suspended)
        guard case .start = state.resume(at: Self.instant) else {
            Issue.record("the first resume must start the task")
            return
        }
        #expect(state.dataTaskState == .running)
        guard case .none = state.resume(at: Self.instant) else {
            Issue.record("the second resume must have no effect")
            return
        }
    }

    @Test("Cancelling before resume sets the outcome, and a later resume has no effect")
    func cancelFirst() {
        var state = make()
        let action = state.cancel(at: 0)
        #expect(action?.runsHandlers == true)
        #expect { try state.result?.get() } throws: { ($0 as? URLError)?.code == .cancelled }
        guard case .none = state.resume(at: Self.instant) else {
            Issue.record("a cancelled task must not start")
            return
        }
        #expect(state.cancel(at: 0) == nil)
    }

    @Test("The first outcome is final, and later ones have no effect")
    func firstOutcome() throws {
        var state = make()
        _ = state.resume(at: Self.instant)
        #expect(state.complete(Self.success(1), at: 0) != nil)
        #expect(state.complete(Self.success(2), at: 0) == nil)
        #expect(state.cancel(at: 0) == nil)
        #expect(try state.result?.get().data == Data([1]))
    }

    @Test("An exchange attached after the outcome is rejected")
    func lateAttach() {
        var state = make()
        _ = state.resume(at: Self.instant)
        _ = state.cancel(at: 0)
        let (lateIsWanted, _) = state.attach(Work())
        #expect(!lateIsWanted)
        var other = make()
        _ = other.resume(at: Self.instant)
        let (isWanted, _) = other.attach(Work())
        #expect(isWanted)
        #expect(other.cancel(at: 0)?.work != nil)
    }

    @Test("A task that completes while suspended runs its handlers at resume")
    func suspended() {
        var state = make()
        _ = state.resume(at: Self.instant)
        state.suspend()
        #expect(state.dataTaskState == .suspended)
        #expect(state.complete(Self.success(), at: 0)?.runsHandlers == false)
        guard case .runHandlers = state.resume(at: Self.instant) else {
            Issue.record("resume must run the handlers")
            return
        }
    }

    @Test("Cancelling a suspended task runs its handlers")
    func cancelSuspended() {
        var state = make()
        _ = state.resume(at: Self.instant)
        state.suspend()
        #expect(state.cancel(at: 0)?.runsHandlers == true)
        #expect(state.dataTaskState == .canceling)
    }

    @Test("Only one thread at a time runs handlers")
    func claim() {
        var state = make()
        _ = state.resume(at: Self.instant)
        #expect(state.complete(Self.success(), at: 0)?.runsHandlers == true)
        let hasToRun = state.add(.responseError { _ in })
        #expect(!hasToRun)
    }

    @Test("A task that is suspended between two handlers runs the second one after resume", arguments: [false, true])
    func suspendedBetweenHandlers(isOnMain: Bool) {
        var state = make()
        let second: Handler = isOnMain ? .updateUI { _ in } : .observeResponse { _, _ in }
        _ = state.add(second)
        _ = state.resume(at: Self.instant)
        #expect(state.complete(Self.success(), at: 0)?.runsHandlers == true)
        let track = state.chain.pickUp()
        guard case .run(.ownStep) = state.nextStep(on: track) else {
            Issue.record("the first handler must run")
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
        guard case .runHandlers = state.resume(at: Self.instant),
            case .run(let handler) = state.nextStep(on: state.chain.pickUp())
        else {
            Issue.record("the second handler must run")
            return
        }
        #expect(handler.runsOnMain == isOnMain)
    }

    @Test("Each track admits only the handlers for its result")
    func admission() {
        let success: [Handler] = [
            .response { _, _ in .empty }, .observeResponse { _, _ in }, .responseJSON { _, _ in .empty },
            .observeJSON { _, _ in },
            .updateUI { _ in },
        ]
        let results: [Handler] = [.transform { _ in .empty }, .observeValue { _ in }]
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
