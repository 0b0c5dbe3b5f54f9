import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The end of a delivery may come between the last value of one caller and the first of the next.
@Suite("Serial delivery", .permit)
struct SerialDeliveryTests {
    @Test("The delivery is finished when the last caller has delivered the last value")
    func overlap() {
        var delivery = SerialDelivery<Int>()
        delivery.append(1)
        let firstBegins = delivery.begin()
        let first = [delivery.next(), delivery.next()]
        // Before the first caller asks whether the delivery is finished, a second one begins.
        delivery.append(2)
        let secondBegins = delivery.begin()
        let undelivered = delivery.end()
        let finishedEarly = delivery.isFinished
        let second = [delivery.next(), delivery.next()]
        #expect(firstBegins)
        #expect(first == [1, nil])
        #expect(secondBegins)
        #expect(undelivered == nil)
        #expect(!finishedEarly)
        #expect(second == [2, nil])
        #expect(delivery.isFinished)
    }
}
