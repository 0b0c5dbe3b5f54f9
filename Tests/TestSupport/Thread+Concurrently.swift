package import Foundation

extension Thread {
    /// Runs the closure on the given number of threads at the same time and waits for all of them.
    package static func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        let group = DispatchGroup()
        for number in 0..<count {
            group.enter()
            Thread {
                body(number)
                group.leave()
            }.start()
        }
        group.wait()
    }
}
