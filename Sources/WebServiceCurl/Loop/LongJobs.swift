import Foundation
package import WebServiceCore

/// A reporter of code that blocks an event loop, in debug builds.
package enum LongJobs {
    /// The duration above which a part of a task is reported.
    package static let limit = Duration.milliseconds(50)

    /// The closure that receives the text of a report. Tests replace it.
    package static let report = Mutex<@Sendable (String) -> Void> { text in
        try? FileHandle.standardError.write(contentsOf: Data("\(text)\n".utf8))  // it may be closed
    }

    static func check(_ duration: Duration) {
        guard duration > limit else { return }
        let text =
            "a task on CurlSession.executor ran for \(duration) without suspending and delayed other requests; "
            + "move code that blocks or computes to another executor"
        report.withLock { $0 }(text)
    }
}
