import Foundation

/// The cookie stage: each hop sends the cookies of its URL and stores those of its response.
extension Stages {
    /// Returns the cookies of the jar for the URL of a request; `nil` if there are none.
    func cookies(for request: EncodedRequest, _ clock: TaskClock) -> String? {
        guard let cookieJar, request.source.options.shouldHandleCookies, let url = URL(string: request.url) else {
            return nil
        }
        return cookieJar.header(for: url, clock)
    }

    func storeCookies(of response: Response, to request: EncodedRequest, _ clock: TaskClock) {
        guard let cookieJar, request.source.options.shouldHandleCookies, let url = URL(string: request.url),
            let head = response.head, head.isHTTP
        else { return }
        let cookies = head.values(for: .setCookie)
        if !cookies.isEmpty { cookieJar.store(cookies, joined: head.joinsFields, from: url, clock) }
    }
}
