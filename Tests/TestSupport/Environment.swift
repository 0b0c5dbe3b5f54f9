import Foundation

/// Whether the tests run under a sanitizer, which slows them down. Set by `WEBSERVICE_SANITIZED=1`.
package let isSanitized = ProcessInfo.processInfo.environment["WEBSERVICE_SANITIZED"] == "1"

/// Whether the tests run for hours, as in `scripts/soak`. Set by `WEBSERVICE_SOAK=1`.
package let isSoak = ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1"

/// Whether the tests run at full length, as in `scripts/test --all`. Set by
/// `WEBSERVICE_THOROUGH=1`.
package let isThorough = isSoak || ProcessInfo.processInfo.environment["WEBSERVICE_THOROUGH"] == "1"

/// Returns the bound of a duration in real time.
///
/// Other processes can delay a test by any duration. Therefore, the promised bound applies only to
/// tests at full length. In a short run, the bound is at least 30 seconds, which still detects a
/// call that ends only with the default timeout of 60 seconds, or never.
///
/// - Parameter promise: The promised bound.
package func realTimeLimit(_ promise: Duration) -> Duration { isThorough ? promise : max(promise, .seconds(30)) }

/// The limit of each wait in a scenario for sessions (`SessionScenario.run`), by default 10 seconds.
/// At full length, it is half of the default timeout of a request.
package let scenarioLimit: Duration = isThorough && !isSanitized ? .seconds(30) : .seconds(100)

/// Returns how many rounds, seeds, requests or bytes a test uses.
///
/// - Parameters:
///   - short: The number for a test run of a few minutes.
///   - thorough: The number for `scripts/test --all`.
///   - soak: The number for `scripts/soak`; defaults to `thorough`.
package func amount(_ short: Int, thorough: Int, soak: Int? = nil) -> Int {
    isSoak ? soak ?? thorough : isThorough ? thorough : short
}

/// Returns one of `interval` elements, one of `thorough` in `scripts/test --all`, and all elements
/// in `scripts/soak`.
package func sample<Element>(_ elements: [Element], every interval: Int, thorough: Int = 1) -> [Element] {
    stride(from: 0, to: elements.count, by: amount(interval, thorough: thorough, soak: 1)).map { elements[$0] }
}
