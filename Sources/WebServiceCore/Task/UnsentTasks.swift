import Foundation

/// The reports of tasks that are deallocated without being sent, in debug builds. Release builds
/// record and report nothing.
package enum UnsentTasks {
    /// The place in the source code that created a task.
    struct Creation: Sendable {
        let file: StaticString
        let line: UInt
    }

    #if DEBUG
    /// The closure that receives each report; `nil` to report nothing. Tests replace it.
    package static let report = Mutex<(@Sendable (String) -> Void)?>(write)

    static let write: @Sendable (String) -> Void = { text in
        try? FileHandle.standardError.write(contentsOf: Data("\(text)\n".utf8))  // standard error may be closed
    }

    static func report(_ request: Request, _ creation: Creation) {
        guard let report = report.withLock({ $0 }) else { return }
        report(
            "WebService: \(request), created at \(creation.file):\(creation.line), was deallocated without being sent; "
                + "call resume() or await its value")
    }
    #endif
}

extension WebService {
    /// Whether a debug build reports each task that is deallocated without being sent.
    ///
    /// ```
    /// WebService: POST https://api.example.com/orders, created at App/Orders.swift:12, was
    /// deallocated without being sent; call resume() or await its value
    /// ```
    /// The report is a line on standard error. It covers tasks that a method such as
    /// ``POST(_:pathParameters:file:line:)`` or ``sessionTask(request:file:line:)`` has created and
    /// that were not resumed, awaited or cancelled. Nothing is reported if the program has read
    /// ``SessionTask/request``, for example to send the request elsewhere. Defaults to `true`. In
    /// release builds, nothing is recorded or reported, and the value is `false`.
    public static var reportsUnsentTasks: Bool {
        get {
            #if DEBUG
            UnsentTasks.report.withLock { $0 != nil }
            #else
            false
            #endif
        }
        set {
            #if DEBUG
            UnsentTasks.report.withLock { $0 = newValue ? UnsentTasks.write : nil }
            #endif
        }
    }
}

extension SessionTask {
    /// Records where the task was created, in debug builds.
    @inline(__always)
    func created(at file: StaticString, _ line: UInt) -> SessionTask {
        #if DEBUG
        call.withLock { $0.creation = UnsentTasks.Creation(file: file, line: line) }
        #endif
        return self
    }
}
