import Foundation
import WebServiceCore

/// The changes of a store as server-sent events (WHATWG HTML, section 9.2).
///
/// An event without a name contains the rows of all exchanges that have changed since the previous
/// one. Events with the name `details` follow it, one for each changed exchange: its number on the
/// first line and its details on the second. The page retains them, so that they can be read after
/// the end of the program. A slow reader receives fewer events, and no events are buffered for it.
struct ChangeFeed: AsyncSequence, Sendable {
    typealias Element = Data

    let store: ExchangeStore
    let position: Position

    /// The versions of the store up to which rows and details were delivered.
    struct Position: Sendable, Equatable, CustomStringConvertible {
        var rows = 0
        var details = 0

        init() {}

        /// - Parameter text: The description of a position. Another text is the start.
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
        /// Registered until the iterator is deallocated, which follows the delivery of all events.
        let reader: ExchangeStore.Reader

        mutating func next() async throws -> Data? {
            while !Task.isCancelled {
                let changes = store.changes(after: position)
                if isFirst || !changes.isEmpty {
                    let hasRows = isFirst || changes.version > position.rows
                    (position.rows, position.details, isFirst) = (changes.version, changes.detailsEnd, false)
                    return events(changes, hasRows: hasRows)
                }
                if changes.isLast { return nil }
                await store.waitForChange(after: changes.version)
            }
            return nil
        }

        // JSON contains no line breaks outside of strings, and escapes those in strings.
        private func events(_ changes: ExchangeStore.Changes, hasRows: Bool) -> Data {
            var data = Data("id: \(position)\n".utf8)
            if hasRows, let json = PageJSON.data(ExchangeChanges(changes, store.redaction)) {
                data += Data("data: ".utf8) + json + Data("\n\n".utf8)
            }
            for exchange in changes.details {
                let shown = ShownExchange(exchange, store.redaction, showsBinary: store.showsBinaryBodies)
                guard let json = PageJSON.data(shown) else { continue }
                data += Data("event: details\ndata: \(exchange.number)\ndata: ".utf8) + json + Data("\n\n".utf8)
            }
            return data
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store: store, position: position, reader: ExchangeStore.Reader(of: store))
    }
}
