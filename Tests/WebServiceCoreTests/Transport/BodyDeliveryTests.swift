import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The delivery of a response for a session that cannot pause its transport.
@Suite("Delivery of bodies", .permit)
struct BodyDeliveryTests {
    /// A receiver whose demand a closure of the test determines.
    private final class Receiver: BodyReceiver {
        let mayPause = true
        /// The sizes of the pieces that were offered.
        let offered = Collected<Int>()
        let results = Collected<URLError.Code?>()
        private let demand: @Sendable (_ call: Int) -> Demand

        init(demand: @escaping @Sendable (_ call: Int) -> Demand) {
            self.demand = demand
        }

        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {}

        func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
            offered.add(bytes.count)
            return demand(offered.values.count)
        }

        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
            if case .failure(let error) = result { results.add((error as? URLError)?.code) } else { results.add(nil) }
        }
    }

    private let bytes = Data("ale".utf8)

    @Test("An exchange that is aborted while its receiver pauses ends once")
    func abortedDuringPause() {
        let delivery = Mutex<BodyDelivery?>(nil)
        let receiver = Receiver { _ in
            delivery.withLock { $0 }?.abort(URLError(.cancelled))
            return .pause
        }
        let made = BodyDelivery(receiver)
        delivery.withLock { $0 = made }
        defer { delivery.withLock { $0 = nil } }
        made.receive(bytes)
        #expect(receiver.offered.values == [3])
        #expect(receiver.results.values == [.cancelled])
    }

    @Test("A receiver that demands more bytes before it returns from a pause receives the same bytes again")
    func demandDuringPause() {
        let delivery = Mutex<BodyDelivery?>(nil)
        let receiver = Receiver { call in
            delivery.withLock { $0 }?.receiveMore()
            return call == 1 ? .pause : .more
        }
        let made = BodyDelivery(receiver)
        delivery.withLock { $0 = made }
        defer { delivery.withLock { $0 = nil } }
        made.receive(bytes)
        #expect(receiver.offered.values == [3, 3])
    }

    @Test("More than 256 KiB for a paused receiver are written to a file and delivered in order")
    func file() async {
        let receiver = Receiver { $0 == 1 ? .pause : .more }
        let delivery = BodyDelivery(receiver)
        let freed = Collected<Void>()
        delivery.receive(bytes)
        delivery.receive(.watched { freed.add(()) })
        #expect(freed.values.count == 1)
        delivery.finish(.success([:]))
        #expect(receiver.offered.values == [3])
        #expect(receiver.results.values.isEmpty)
        delivery.receiveMore()
        #expect(await receiver.results.wait() == [nil])
        #expect(receiver.offered.values.prefix(2) == [3, 3])
        #expect(receiver.offered.values.dropFirst(2).reduce(0, +) == 1 << 20)
    }

    @Test("Cancelling a task whose transport has completed ends a paused exchange")
    func cancelledAfterTransport() {
        let receiver = Receiver { _ in .pause }
        let delivery = Mutex<BodyDelivery?>(nil)
        let task = DeliveringTask(receiver) { made in
            delivery.withLock { $0 = made }
            return HandSession.Exchange(Request(url: "https://h/"), { _, _, _ in }, { _ in })
        }
        let transport = delivery.withLock { $0.take() }
        transport?.receive(bytes)
        transport?.finish(.success([:]))
        #expect(receiver.results.values.isEmpty)
        task.cancel()
        #expect(receiver.results.values == [.cancelled])
    }
}
