package import Foundation

/// A copy of a streamed body, which is made while the body is read.
///
/// The methods are called one after another by the reader of the body.
package protocol BodyCopy: AnyObject, Sendable {
    /// Adds the next decoded bytes. The reader waits until the method returns.
    func add(_ bytes: Data) async

    /// Completes the copy after the end of the body.
    func finish()

    /// Discards the copy after the body has failed or is no longer read. This method is also called
    /// after ``finish()``, and then has no effect.
    func abandon()
}

extension Response {
    /// Returns the response with a body that is copied while it is read; `nil` if the body is not
    /// streamed, or is already being copied.
    package func copyingBody(to copy: any BodyCopy) -> Response? {
        guard let handle = stream as? BodyHandle else { return nil }
        var response = self
        response.stream = CopiedBody(handle, copy)
        return response
    }

    /// The number of bytes of a streamed body before it is decoded; `nil` if it is unknown.
    package var streamLength: Int64? { (stream as? BodyHandle)?.length }
}

/// The handle of a streamed body, and its copy.
final class CopiedBody: Sendable {
    let handle: BodyHandle
    let copy: any BodyCopy

    init(_ handle: BodyHandle, _ copy: any BodyCopy) { (self.handle, self.copy) = (handle, copy) }
}

extension SessionTask {
    /// Sends the request, and reads its streamed body only if an interceptor copies it.
    func copyBody() async {
        do {
            let body = try await stream().value.body
            guard body.isCopied else { return }
            for try await _ in body {}
        } catch {}  // the task has recorded the error
    }
}

extension Next {
    /// A closure that adds an event to the exchange's ``Timeline`` and does not retain its task.
    /// The closure has no effect if the body is not streamed.
    package var streamRecord: @Sendable (_ kind: Timeline.Kind, _ detail: String) -> Void {
        { [tail = task.tail] kind, detail in tail?.record(kind, detail) }
    }
}
