import Foundation

/// Whether one test runs at a time in this process, so that a test may block the threads that all
/// tests share, count what the process holds of the system, and fork: `WEBSERVICE_ALONE=1`.
let isAlone = ProcessInfo.processInfo.environment["WEBSERVICE_ALONE"] == "1"

/// Whether this is a run under the thread sanitizer, where everything is slower:
/// `WEBSERVICE_SANITIZED=1`.
let isSanitized = ProcessInfo.processInfo.environment["WEBSERVICE_SANITIZED"] == "1"
