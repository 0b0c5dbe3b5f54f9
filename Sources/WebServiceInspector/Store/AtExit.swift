import Foundation
import WebServiceCore

/// A handler that delivers the last changes to the pages when the process exits, even if the
/// program ends immediately after its last exchange.
enum AtExit {
    private struct Weak: Sendable {
        weak var store: ExchangeStore?
    }

    private static let stores = Mutex<[Weak]>([])

    private static let registration: Void = {
        atexit {
            for weak in stores.withLock({ $0 }) { weak.store?.close() }
        }
    }()

    /// Closes a store when the process exits.
    static func close(_ store: ExchangeStore) {
        _ = registration
        stores.withLock { stores in
            stores.removeAll { $0.store == nil }
            stores.append(Weak(store: store))
        }
    }
}
