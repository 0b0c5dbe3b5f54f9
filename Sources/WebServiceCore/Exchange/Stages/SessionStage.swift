import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session stage: sends one request and returns its response in one form, regardless of the
/// protocol to which the session conforms.
struct SessionStage: Sendable {
    let session: any Session
    private let streamingSession: (any StreamingSession)?

    init(_ session: any Session) {
        self.session = session
        streamingSession = session as? any StreamingSession
    }

    /// A Boolean value that indicates whether the session sends a body while it is produced.
    var sendsStreams: Bool { session is any UploadingSession }

    /// Sends a request and waits for the reply of the session.
    ///
    /// - Returns: The reply; `nil` if it is abandoned first.
    func reply(
        to request: EncodedRequest, for receiver: ResponseReceiver, _ clock: TaskClock, _ scope: AccountScope?
    ) async -> ResponseReceiver.Reply? {
        var request = request
        if let stream = request.stream, !sendsStreams {
            do { request = request.collecting(try await stream.collected()) } catch {
                return ResponseReceiver.Reply(result: .failure(error))
            }
        }
        // The end of the account waits for this token, so no request reaches the session after it.
        let token = scope?.begin(over: session)
        if scope != nil, token == nil { return nil }
        defer { withExtendedLifetime(token) {} }
        return await receiver.reply(to: task(request, receiver, clock))
    }

    /// Returns the task of the session, regardless of the protocol to which it conforms.
    private func task(_ request: EncodedRequest, _ receiver: ResponseReceiver, _ clock: TaskClock) -> any DataTask {
        if let streamingSession { return streamingSession.streamTask(request: request, receiver: receiver) }
        guard receiver.mayPause else {
            return session.dataTask(request: request) { receiver.didComplete($0, $1, $2) }
        }
        return DeliveringTask(receiver, clock) { delivery in
            session.dataTask(request: request) { delivery.finish($0, $1, $2) }
        }
    }
}

extension Result where Success == Response, Failure == any Error {
    /// The result of a session that completes with three optional values. A result without any of
    /// them is an error, because it is not a response from a server.
    init(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?, source: Response.Source) {
        if let error {
            self = .failure(URLError(transport: error) ?? error)
        } else if data == nil, response == nil {
            self = .failure(URLError(.badServerResponse))
        } else {
            self = .success(Response(body: data, head: response.map(ResponseHead.init), source: source))
        }
    }
}
