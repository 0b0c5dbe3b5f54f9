import Foundation
import WebServiceCore

/// The changes of a store as server-sent events (WHATWG HTML, section 9.2).
///
/// The first event contains all exchanges that have changed since a version. Each further event
/// contains the changes since the previous one. A slow reader therefore receives fewer events, and
/// no events are buffered for it.
struct ChangeFeed: AsyncSequence, Sendable {
    typealias Element = Data

    let store: ExchangeStore
    let version: Int

    struct AsyncIterator: AsyncIteratorProtocol {
        let store: ExchangeStore
        var version: Int
        var isFirst = true

        mutating func next() async throws -> Data? {
            if !isFirst { await store.waitForChange(after: version) }
            guard !Task.isCancelled, let changes = store.changes(after: version) else { return nil }
            (version, isFirst) = (changes.version, false)
            guard let json = PageJSON.data(ExchangeChanges(changes, store.redaction)) else { return nil }
            // JSON contains no line breaks outside of strings, and escapes those in strings.
            return Data("id: \(changes.version)\ndata: ".utf8) + json + Data("\n\n".utf8)
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store: store, version: version)
    }
}
