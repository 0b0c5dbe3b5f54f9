import Foundation

/// The redirect stage: ``RedirectPolicy`` decides, and ``Exchange`` sends the next hop.
extension Stages {
    /// The request that follows a redirect.
    struct Redirect {
        let request: Request
        /// The URL that redirected to it.
        let origin: URL?
        /// The detail of the event in the timeline.
        let detail: String
    }

    /// - Returns: The next hop; `nil` if the response is not a redirect to follow.
    /// - Throws: The error of a redirect that must not be followed.
    func redirect(after response: Response, of request: EncodedRequest) throws -> Redirect? {
        guard response.isHTTP, (300..<400).contains(response.status) else { return nil }
        let decision = request.source.options.redirectPolicy.decision(
            for: request.source, at: request.url, status: response.status,
            locations: response.head?.values(for: .location) ?? [],
            followed: response.redirects.count)
        switch decision {
        case .deliver: return nil
        case .fail(var error):
            error.response = response
            throw error
        case .follow(let next, let droppedCredentials):
            return Redirect(
                request: next, origin: URL(string: request.url),
                detail: droppedCredentials ? "to another origin, without credentials" : "")
        }
    }
}
