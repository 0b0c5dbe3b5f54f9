import Foundation
import Synchronization

/// A case to measure. It executes `count` operations and returns after all of them are complete.
struct Case: Sendable {
    let name: String
    let run: @Sendable (_ count: Int) -> Void
}

/// Runs all cases in turn for several rounds, so that changes in the speed of the machine affect
/// all of them equally. The first round is discarded.
///
/// - Returns: The median of the nanoseconds per operation, and the median of each round's ratio to
///   the first case.
@MainActor
func measure(_ cases: [Case], count: Int, rounds: Int) -> [(name: String, nanoseconds: Double, ratio: Double)] {
    let cases = cases.filter { item in only.map { item.name.hasPrefix($0) } ?? true }
    guard !cases.isEmpty else { return [] }
    var samples = cases.map { _ in [Double]() }
    for round in 0...rounds {
        for (index, item) in cases.enumerated() {
            let start = ContinuousClock.now
            item.run(count)
            let elapsed = start.duration(to: .now)
            let nanoseconds = Double(elapsed.components.seconds) * 1e9 + Double(elapsed.components.attoseconds) / 1e9
            if round > 0 { samples[index].append(nanoseconds / Double(count)) }
        }
    }
    return cases.enumerated().map { index, item in
        let ratios = zip(samples[index], samples[0]).map { $0 / $1 }
        return (item.name, median(samples[index]), median(ratios))
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

func report(_ title: String, _ results: [(name: String, nanoseconds: Double, ratio: Double)]) {
    print("\n\(title)")
    for result in results {
        let name = result.name.padding(toLength: 58, withPad: " ", startingAt: 0)
        print("  \(name)\(String(format: "%9.2f µs   %6.2f ×", result.nanoseconds / 1000, result.ratio))")
    }
}

/// Starts `count` operations, with at most `inFlight` at a time, and waits for the last one.
func keepInFlight(
    _ inFlight: Int, of count: Int, _ start: @escaping @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
) {
    let driver = Driver(count: count, start: start)
    for _ in 0..<min(inFlight, count) { driver.startNext() }
    driver.finished.wait()
}

/// Starts the next operation when one ends, on the same thread.
private final class Driver: Sendable {
    let finished = DispatchSemaphore(value: 0)
    private let started = Atomic<Int>(0)
    private let ended = Atomic<Int>(0)
    private let count: Int
    private let start: @Sendable (@escaping @Sendable () -> Void) -> Void

    init(count: Int, start: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.count = count
        self.start = start
    }

    func startNext() {
        guard started.add(1, ordering: .relaxed).newValue <= count else { return }
        start {
            if self.ended.add(1, ordering: .acquiringAndReleasing).newValue == self.count {
                self.finished.signal()
            } else {
                self.startNext()
            }
        }
    }
}
