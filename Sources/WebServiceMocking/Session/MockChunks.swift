package import Foundation
package import WebServiceCore

/// The result of a stub whose body is a sequence. The result accompanies the head of the response.
package struct MockChunks: Error {
    /// The maximum number of bytes of a body that is collected; `nil` for no limit.
    var maximum: Int?
    /// Returns the error for a longer body.
    var tooLarge: @Sendable () -> any Error = { URLError(.dataLengthExceedsMaximum) }
    /// Calls the closure with each element, and measures pauses on the clock.
    package let produce: @Sendable (_ take: @escaping Take, _ clock: TaskClock) async throws -> Void

    package typealias Take = @Sendable (Data) async throws -> Void
}
