import Foundation

/// A Boolean value that indicates whether the tests of this process run one at a time, so that a
/// test can block shared threads, count the resources of the process and fork. Set by
/// `WEBSERVICE_ALONE=1`.
let isAlone = ProcessInfo.processInfo.environment["WEBSERVICE_ALONE"] == "1"

/// A Boolean value that indicates whether the tests run under the thread sanitizer, which slows
/// them down. Set by `WEBSERVICE_SANITIZED=1`.
let isSanitized = ProcessInfo.processInfo.environment["WEBSERVICE_SANITIZED"] == "1"
