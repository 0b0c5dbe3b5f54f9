import Synchronization
import WebServiceCore

extension WebSocket {
    /// The messages of a connection, or values that are decoded from them.
    public struct Messages<Element: Sendable>: AsyncSequence, Sendable {
        private let iterations: Iterations
        private let nextElement: @Sendable () async throws -> Element?

        init(_ iterations: Iterations, _ nextElement: @escaping @Sendable () async throws -> Element?) {
            self.iterations = iterations
            self.nextElement = nextElement
        }

        /// Returns an iterator over the messages.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(iterations: iterations, nextElement: nextElement)
        }

        /// The iterator of ``Messages``.
        public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
            fileprivate let iterations: Iterations
            fileprivate let nextElement: @Sendable () async throws -> Element?
            /// The number of the iteration; `nil` before its first element.
            fileprivate var number: Int?

            /// Returns the next message; `nil` at the end.
            public mutating func next() async throws -> Element? {
                if let number, number != iterations.latest {
                    throw WebServiceError(
                        .streamConsumed, "a later iteration has read messages; create a new iterator")
                }
                let element = try await nextElement()
                number = number ?? iterations.begin()
                return element
            }
        }
    }

    /// The iterations over the messages of a connection. Only the latest one may continue.
    final class Iterations: Sendable {
        private let count = Atomic(0)

        /// The number of the iteration that began last.
        var latest: Int { count.load(ordering: .acquiring) }

        /// Begins an iteration.
        ///
        /// - Returns: The number of the iteration.
        func begin() -> Int { count.add(1, ordering: .acquiringAndReleasing).newValue }
    }
}
