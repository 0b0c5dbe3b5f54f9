import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The phase of a session's task, with the content that the task needs until it is complete.
///
/// A task is resumed and completed once. The transitions return the content to the caller that made
/// them, which then acts on it without the lock of the task.
package enum TaskPhase<Content> {
    case suspended(Content)
    case running(Content)
    case completed

    /// The state that a task in this phase reports.
    package var state: DataTaskState {
        switch self {
        case .suspended: .suspended
        case .running: .running
        case .completed: .completed
        }
    }

    /// The content; `nil` if the task is complete.
    package var content: Content? {
        switch self {
        case .suspended(let content), .running(let content): content
        case .completed: nil
        }
    }

    /// Begins the running phase.
    ///
    /// - Returns: The content; `nil` if the task was resumed or completed before.
    package mutating func resume() -> Content? {
        guard case .suspended(let content) = self else { return nil }
        self = .running(content)
        return content
    }

    /// Completes the task.
    ///
    /// - Returns: The phase that the task was in.
    package mutating func complete() -> TaskPhase {
        defer { self = .completed }
        return self
    }
}

extension TaskPhase: Sendable where Content: Sendable {}
