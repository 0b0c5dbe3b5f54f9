import WebServiceCore

extension RequestMatcher {
    /// Matches requests to the given host, such as `api.example.com`.
    ///
    /// - Parameter host: The host without a port; an IPv6 address is in brackets. Case is ignored.
    ///   For a `MockServer`, it is compared with the `Host` field.
    public static func host(_ host: String) -> RequestMatcher {
        let expected = host.asciiLowercased()
        return RequestMatcher("host \(Excerpt.text(host))") {
            $0.origin?.host == expected
        } explain: {
            "host: expected \(Excerpt.text(host)), received \($0.origin.map { Excerpt.text($0.host) } ?? "none")"
        }
    }

    /// Matches requests to the given URL.
    ///
    /// ```swift
    /// session.on(.url("https://api.example.com/users/{id}?page=2"), .json(user))
    /// ```
    /// A request matches if the scheme, host and port are equal, the path matches as in
    /// ``path(_:)``, and the query contains at least the specified names and values. For a
    /// `MockServer`, the scheme is `https` with TLS and otherwise `http`, and the host and port
    /// are those of the `Host` field.
    ///
    /// - Parameter url: An absolute http or https URL. Any other string matches no request.
    public static func url(_ url: String) -> RequestMatcher {
        let target = url.originAndTarget.target
        let path = RequestMatcher.path(target)
        let query = target.firstIndex(of: "?").map { target[target.index(after: $0)...] } ?? ""
        let items = ReceivedRequest.Item.decode(query.utf8).map { RequestMatcher.query($0.name, $0.value) }
        guard let expected = Origin(url) else {
            let problem = "URL: the expected URL, whose path is \(path), is not an absolute http or https URL"
            return RequestMatcher("URL \(path)", holds: { _ in false }, explain: { _ in problem })
        }
        let origin = RequestMatcher("\(expected)") {
            $0.origin == expected
        } explain: {
            "origin: expected \(expected), received \($0.origin.map { Excerpt.text("\($0)") } ?? "none")"
        }
        let whole = all([origin, path] + items)
        let description = (["\(expected)\(path)"] + items.map(\.description)).joined(separator: ", ")
        return RequestMatcher(description, match: whole.match, mismatches: whole.mismatches)
    }
}
