import Foundation
import WebServiceCore

/// The collected bytes of a body that is delivered as a whole.
final class CollectedBody: Sendable {
    private let data = Mutex(Data())

    var value: Data { data.withLock { $0 } }

    /// Appends a chunk.
    ///
    /// - Returns: The number of bytes that have been collected so far.
    func append(_ chunk: Data) -> Int {
        data.withLock { data in
            data.append(chunk)
            return data.count
        }
    }
}
