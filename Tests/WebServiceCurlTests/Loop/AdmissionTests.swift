import Foundation
import TestSupport
import Testing

@testable import WebServiceCurl

@Suite("Curl session: admission", .permit)
struct AdmissionTests {
    @Test("Each host has a maximum number of running requests, and the others wait in order")
    func perHost() {
        var admission = Admission<Int>(maximumPerHost: 2, maximum: 100)
        for item in 1...5 { admission.append(item, to: "a") }
        let first = admission.next()
        #expect(first?.item == 1)
        #expect(admission.next()?.item == 2)
        #expect(admission.next() == nil)
        if let queue = first?.queue { admission.release(queue) }
        #expect(admission.next()?.item == 3)
        #expect(admission.next() == nil)
    }

    @Test("Hosts take turns at the total limit, and a host at its own limit does not block the others")
    func turns() {
        var admission = Admission<String>(maximumPerHost: 2, maximum: 3)
        for number in 1...4 {
            admission.append("a\(number)", to: "a")
            admission.append("b\(number)", to: "b")
        }
        var under: [(item: String, queue: Admission<String>.HostQueue)] = []
        var order: [String] = []
        while true {
            while let next = admission.next() {
                under.append(next)
                order.append(next.item)
            }
            #expect(under.count <= 3)
            guard !under.isEmpty else { break }
            admission.release(under.removeFirst().queue)
        }
        #expect(order == ["a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"])
        #expect(admission.isEmpty)
    }

    @Test("Hosts take turns even if all requests to one host are added first")
    func turnsBehindMany() {
        var admission = Admission<String>(maximumPerHost: 2, maximum: 3)
        for host in ["a", "b", "c"] as [Substring] {
            for number in 1...3 { admission.append("\(host)\(number)", to: host) }
        }
        var order: [String] = []
        while let next = admission.next() { order.append(next.item) }
        #expect(order == ["a1", "b1", "c1"])
    }

    @Test(
        "A host with HTTP/2 is sent 100 requests at a time, or the maximum per host if that is larger",
        arguments: [(2, 99), (150, 149)])
    func multiplexed(maximumPerHost: Int, expected: Int) {
        var admission = Admission<Int>(maximumPerHost: maximumPerHost, maximum: 1_000)
        admission.append(0, to: "a")
        let first = admission.next()
        first?.queue.isMultiplexed = true
        for item in 1...200 { admission.append(item, to: "a") }
        var count = 0
        while admission.next() != nil { count += 1 }
        #expect(count == expected)
    }

    @Test("10,000 waiting items are removed at once")
    func removal() {
        var admission = Admission<Int>(maximumPerHost: 1, maximum: 10)
        for item in 0..<10_000 { admission.append(item, to: "host\(item % 3)") }
        let going = (0..<3).compactMap { _ in admission.next() }
        #expect(going.count == 3)
        #expect(admission.removeWaiting().count == 9_997)
        for (_, queue) in going { admission.release(queue) }
        #expect(admission.isEmpty)
        #expect(admission.next() == nil)
    }

    @Test(
        "Items that need not start any more do not accumulate behind those of a host that does not respond")
    func unwanted() {
        var admission = Admission<Int>(maximumPerHost: 1, maximum: 10)
        admission.append(0, to: "a")
        #expect(admission.next()?.item == 0)
        for item in 1...100_000 { admission.append(item, to: "a") { $0.isMultiple(of: 1_000) } }
        let waiting = admission.removeWaiting()
        #expect(waiting.count <= 250)
        #expect(waiting.filter { $0.isMultiple(of: 1_000) } == Array(stride(from: 1_000, through: 100_000, by: 1_000)))
    }
}
