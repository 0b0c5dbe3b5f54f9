import Foundation
import WebServiceCore

/// The changes to a store as server-sent events (WHATWG HTML, section 9.2).
///
/// An event without a name contains the rows of all exchanges that have changed since the previous
/// such event. It is followed by batches of events with the name `details`, one for each changed
/// exchange. The first line of such an event contains the number of the exchange, and the second
/// line contains its details. The page retains the details, so they can be read after the program
/// has ended. The last event is named `end`, and the page then closes the connection. A slow reader
/// receives fewer events, and no events are buffered for it.
struct ChangeFeed: AsyncSequence, Sendable {
    typealias Element = Data

    let store: ExchangeStore
    let position: Position

    /// The versions of the store up to which rows and details have been delivered.
    struct Position: Sendable, Equatable, CustomStringConvertible {
        var rows = 0
        var details = 0

        init() {}

        /// - Parameter text: The description of a position. Any other text means the start.
        init(_ text: String?) {
            let parts = (text ?? "").split(separator: ".").map { Int($0) ?? 0 }
            if parts.count == 2 { (rows, details) = (parts[0], parts[1]) }
        }

        var description: String { "\(rows).\(details)" }
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let store: ExchangeStore
        var position: Position
        var isFirst = true
        /// Whether the last events were rows. Details follow rows, so that neither delays the
        /// other.
        var followsRows = false
        var hasEnded = false
        /// The registration of the feed, which lasts until the iterator is deallocated.
        let reader: ExchangeStore.Reader

        mutating func next() async throws -> Data? {
            while !Task.isCancelled {
                let changes = store.changes(after: position)
                if isFirst || !changes.exchanges.isEmpty && (!followsRows || changes.details.isEmpty) {
                    (position.rows, isFirst, followsRows) = (changes.version, false, true)
                    return rows(changes)
                }
                if !changes.details.isEmpty {
                    (position.details, followsRows) = (changes.detailsEnd, false)
                    return details(changes)
                }
                if hasEnded {
                    await store.waitForEnd()
                    return nil
                }
                if changes.isLast {
                    hasEnded = true
                    return Data("event: end\ndata:\n\n".utf8)
                }
                await store.waitForChange(after: changes.version)
            }
            return nil
        }

        // JSON contains no line breaks outside strings, and those in strings are escaped.
        private func rows(_ changes: ExchangeStore.Changes) -> Data {
            let json = PageJSON.data(ExchangeChanges(changes, store.redaction)) ?? Data()
            return Data("id: \(position)\ndata: ".utf8) + json + Data("\n\n".utf8)
        }

        private func details(_ changes: ExchangeStore.Changes) -> Data {
            changes.details.reduce(into: Data("id: \(position)\n".utf8)) { data, exchange in
                let shown = ShownExchange(exchange, store.redaction, showsBinary: store.showsBinaryBodies)
                let json = PageJSON.data(shown) ?? Data()
                data += Data("event: details\ndata: \(exchange.number)\ndata: ".utf8) + json + Data("\n\n".utf8)
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store: store, position: position, reader: ExchangeStore.Reader(of: store))
    }
}
