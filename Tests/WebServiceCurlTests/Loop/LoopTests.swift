import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCurl

@Suite("Curl session: components of the loop", .permit)
struct LoopTests {
    @Test("The cost of admission per host does not depend on the number of busy hosts")
    func admission() {
        // With four times the hosts, the time grows fourfold, or sixteenfold if the cost of each
        // host depends on their number.
        var ratio = Double.infinity
        for _ in 0..<3 where ratio >= 9 { ratio = Self.time(hosts: 20_000) / Self.time(hosts: 5_000) }
        #expect(ratio < 9)
    }

    private static func time(hosts count: Int) -> Double {
        var admission = Admission<Int>(maximumPerHost: 1, maximum: 10)
        let start = processorTime()
        for number in 0..<count { admission.append(number, to: "http://\(number)") }
        var order: [Int] = []
        while let (item, queue) = admission.next() {
            order.append(item)
            admission.release(queue)
        }
        #expect(order == Array(0..<count))
        return processorTime() - start
    }

    @Test("Hosts without requests are removed")
    func forgottenHosts() {
        var admission = Admission<Int>(maximumPerHost: 1, maximum: 10)
        for number in 0..<100_000 {
            admission.append(number, to: "http://\(number)")
            if let (_, queue) = admission.next() { admission.release(queue) }
        }
        #expect(admission.isEmpty)
        #expect(admission.hostCount <= 2_000)
    }

    @Test("An internal handle of libcurl, which has no private pointer, belongs to no exchange")
    func internalHandle() throws {
        let wakeUp = try WakeUp(orThrow: .curl)
        let configuration = CurlSession.Configuration()
        let engine = try CurlEngine(
            configuration, .system, rules: HostRules(configuration), wakeUp: wakeUp.reader)
        defer { engine.freeLibraryObjects() }
        let easy = try #require(curl_easy_init())
        defer { curl_easy_cleanup(easy) }
        #expect(engine.handle(easy) == nil)
        #expect(CurlHandle.from(nil) == nil)
        #expect(CurlEngine.from(nil) == nil)
    }

    @Test("A duration of any length that libcurl requests ends no process")
    func timer() throws {
        let wakeUp = try WakeUp(orThrow: .curl)
        let configuration = CurlSession.Configuration()
        let engine = try CurlEngine(
            configuration, .system, rules: HostRules(configuration), wakeUp: wakeUp.reader)
        defer { engine.freeLibraryObjects() }
        for (milliseconds, moment) in [(Int.max, UInt64.max), (0, 0), (-1, nil), (Int.min, nil)] {
            #expect(engine.setTimer(milliseconds) == 0)
            #expect(engine.libraryInstant == moment)
        }
    }

    @Test("An event on an idle connection closes it only if bytes are pending or the peer has disconnected")
    func strayEvent() throws {
        let wakeUp = try WakeUp(orThrow: .curl)
        let configuration = CurlSession.Configuration()
        let engine = try CurlEngine(
            configuration, .system, rules: HostRules(configuration), wakeUp: wakeUp.reader)
        defer { engine.freeLibraryObjects() }
        let handle = try #require(engine.free.first)
        for count in [0, 1] {
            var ends: [Int32] = [-1, -1]
            #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            engine.connections.opened(ends[0])
            let connection = try #require(engine.connection(ends[0]))
            connection.enter(handle)
            connection.leave()
            var byte: UInt8 = 0
            #expect(send(ends[1], &byte, count, 0) == count)
            engine.closeUnsolicited(ends[0])
            #expect((recv(ends[1], &byte, 1, Int32(MSG_DONTWAIT)) == 0) == (count > 0))
            engine.connections.closed(ends[0])
            for end in ends { close(end) }
        }
    }

    @Test("An event of a closed descriptor is not attributed to a connection that reuses its number")
    func staleEvent() throws {
        let wakeUp = try WakeUp(orThrow: .curl)
        var poller = try Poller(wakeUp: wakeUp.reader)
        var wait = poller.makeWait()
        var old: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &old) == 0)
        poller.opened(old[0])
        poller.watch(old[0], for: .readable)
        close(old[1])
        #expect(wait.run(milliseconds: 1_000) == 1)
        poller.closed(old[0])
        var new: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &new) == 0)
        // Closes the descriptor and reuses its number at once, so that no other thread can take it.
        let reused = dup2(new[0], old[0])
        #expect(reused == old[0])
        poller.opened(reused)
        poller.watch(reused, for: .readable)
        #expect(poller.event(0, of: wait) == .outdated)
        for descriptor in new + [reused] { close(descriptor) }
    }

    @Test("Work that waits for work scheduled in the same batch does not deadlock")
    func waitingInBatch() async {
        let result = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let isDone = DispatchSemaphore(value: 0)
                HandlerPool.shared.together {
                    Task(executorPreference: HandlerPool.shared) { isDone.signal() }
                    continuation.resume(returning: isDone.wait(timeout: .now() + .seconds(60)))
                }
            }
        }
        #expect(result == .success)
    }
}
