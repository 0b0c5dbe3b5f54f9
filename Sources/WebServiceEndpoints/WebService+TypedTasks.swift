import Foundation
public import WebServiceCore

extension WebService {
    /// Creates a task for the `Request` of a typed request, to receive the response in a form other
    /// than its output: as a stream, as events or as a file.
    ///
    /// ```swift
    /// let log = try await service.sessionTask(request: LogRequest(day: 7)).stream().value
    /// let file = try await service.sessionTask(request: LogRequest(day: 7)).download(to: url).value
    /// ```
    /// The task has the URL, header fields, options and tags of the request, and the session of the
    /// ``HTTPEndpoint`` that supports it. The interceptors (such as the authentication), cookies
    /// and observers are those of the service. The request's `validate` and `decode` methods are
    /// not called, its responses are not stored, and it is not compared with typed requests.
    ///
    /// The method `request(for:)` is called on the calling thread. If it throws a
    /// `WebServiceError`, the task fails with this error. Any other error becomes the
    /// `WebServiceError.underlying` error of an error with the code
    /// `WebServiceError.Code.encoding`. The task fails with `WebServiceError.Code.noEndpoint` if no
    /// endpoint supports the request, or if the first endpoint that supports it is not an
    /// `HTTPEndpoint`.
    public func sessionTask<Typed: HTTPServiceRequest>(request: Typed) -> SessionTask {
        do {
            let endpoint = typed.endpoints.first { $0.supports(request) }
            guard let endpoint = endpoint as? HTTPEndpoint else {
                let reason = endpoint.map {
                    "the first endpoint that supports \(Typed.self) is \(type(of: $0)); add an HTTPEndpoint before it"
                }
                throw WebServiceError(
                    .noEndpoint, reason ?? "no endpoint supports \(Typed.self); add one to 'endpoints'")
            }
            return SessionTask(
                core, try request.request(for: self), type: Typed.self,
                over: endpoint.session)
        } catch {
            let error =
                error as? WebServiceError
                ?? WebServiceError(
                    .encoding, "request(for:) of \(Typed.self) failed; see the underlying error", underlying: error)
            return SessionTask(core, Request(failing: error), type: Typed.self, over: nil)
        }
    }
}
