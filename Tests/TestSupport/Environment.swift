import Foundation

/// A Boolean value that indicates whether the tests run under a sanitizer, which slows them down.
/// Set by `WEBSERVICE_SANITIZED=1`.
package let isSanitized = ProcessInfo.processInfo.environment["WEBSERVICE_SANITIZED"] == "1"
