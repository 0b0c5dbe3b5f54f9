package import WebServiceCore

extension RequestMatcher {
    /// Matches requests that meet both conditions.
    public static func && (first: RequestMatcher, second: RequestMatcher) -> RequestMatcher {
        all([first, second])
    }

    /// Matches requests that meet at least one of the conditions.
    ///
    /// If a request meets both, the first condition determines the values of the placeholders.
    public static func || (first: RequestMatcher, second: RequestMatcher) -> RequestMatcher {
        RequestMatcher("(\(first) or \(second))") {
            first.match($0) ?? second.match($0)
        } mismatches: {
            let (one, other) = (first.mismatches($0), second.mismatches($0))
            guard one.count == 1, other.count == 1 else { return one.count <= other.count ? one : other }
            return ["\(one.joined()), or \(other.joined())"]
        }
    }

    /// Matches requests that do not meet the condition.
    public static prefix func ! (matcher: RequestMatcher) -> RequestMatcher {
        RequestMatcher("not \(matcher)") {
            matcher.match($0) == nil ? [:] : nil
        } mismatches: {
            matcher.match($0) == nil ? [] : ["expected a request that does not match: \(matcher)"]
        }
    }

    /// Returns a condition that requires all conditions.
    static func all(_ matchers: [RequestMatcher]) -> RequestMatcher {
        RequestMatcher(matchers.map(\.description).joined(separator: ", ")) { input in
            var values: [String: String] = [:]
            for matcher in matchers {
                guard let found = matcher.match(input) else { return nil }
                values.merge(found) { first, _ in first }
            }
            return values
        } mismatches: { input in
            matchers.flatMap { $0.mismatches(input) }
        }
    }

    /// Returns a condition for a method and a path.
    package static func route(_ method: Request.Method, _ path: String) -> RequestMatcher {
        let (method, path) = (RequestMatcher.method(method), RequestMatcher.path(path))
        let both = all([method, path])
        return RequestMatcher("\(method) \(path)", match: both.match, mismatches: both.mismatches)
    }
}
