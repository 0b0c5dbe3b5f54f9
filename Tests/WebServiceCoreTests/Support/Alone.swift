import Foundation

/// A Boolean value that indicates whether one test runs at a time in this process, so that a test may block the threads that all
/// tests share: `WEBSERVICE_ALONE=1`.
let isAlone = ProcessInfo.processInfo.environment["WEBSERVICE_ALONE"] == "1"
