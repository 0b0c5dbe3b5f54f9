import Foundation

/// A Boolean value that indicates whether the tests run under a sanitizer, which slows them down.
/// Set by `WEBSERVICE_SANITIZED=1`.
package let isSanitized = ProcessInfo.processInfo.environment["WEBSERVICE_SANITIZED"] == "1"

/// A Boolean value that indicates whether the tests run at full length, as in `scripts/soak`. Set by
/// `WEBSERVICE_SOAK=1`.
package let isSoak = ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1"

/// Returns all elements at full length, and one of `interval` otherwise.
package func sample<Element>(_ elements: [Element], every interval: Int) -> [Element] {
    isSoak ? elements : stride(from: 0, to: elements.count, by: interval).map { elements[$0] }
}
