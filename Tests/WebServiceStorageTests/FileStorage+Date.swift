import Foundation
import TestSupport

@testable import WebServiceCore
@testable import WebServiceStorage

extension FileStorage {
    convenience init(
        folder: URL, maximumBytes: Int? = nil, maximumCount: Int? = nil, date: @escaping @Sendable () -> Date
    ) throws {
        try self.init(
            folder: folder, maximumBytes: maximumBytes, maximumCount: maximumCount,
            timekeeper: TestTimekeeper(date: date))
    }
}
