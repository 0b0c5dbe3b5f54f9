import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The phase of a session's task", .permit)
struct TaskPhaseTests {
    @Test("A task is resumed once, with its content")
    func resume() {
        var phase = TaskPhase.suspended("content")
        #expect(phase.state == .suspended)
        #expect(phase.resume() == "content")
        #expect(phase.state == .running)
        #expect(phase.resume() == nil)
    }

    @Test("A task is completed once, and returns the phase it was in", arguments: [true, false])
    func complete(isResumed: Bool) {
        var phase = TaskPhase.suspended("content")
        if isResumed { _ = phase.resume() }
        let former = phase.complete()
        #expect(former.state == (isResumed ? .running : .suspended))
        #expect(former.content == "content")
        #expect(phase.state == .completed)
        #expect(phase.complete().content == nil)
    }

    @Test("A completed task is not resumed and has no content")
    func completed() {
        var phase = TaskPhase.suspended("content")
        _ = phase.complete()
        #expect(phase.resume() == nil)
        #expect(phase.content == nil)
        #expect(phase.state == .completed)
    }
}
