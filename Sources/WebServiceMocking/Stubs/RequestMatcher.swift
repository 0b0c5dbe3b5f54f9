public import Foundation
public import WebServiceCore

/// A condition that selects the requests to which a stub applies.
///
/// ```swift
/// session.on(.method(.POST) && .path("/users/*") && .json(["role": "brewer"]), .status(201))
/// ```
/// The operators `&&`, `||` and `!` combine conditions. For a request that does not meet a
/// condition, ``mismatches(in:)`` returns an explanation, without values that are secret according
/// to `Redaction.standard`.
public struct RequestMatcher: Sendable, CustomStringConvertible {
    /// The condition in words, such as `GET /users/{id}`.
    public let description: String

    /// A closure that returns the values of a path's placeholders, or `nil` if the request does not
    /// match.
    let match: @Sendable (MatchInput) -> [String: String]?
    /// A closure that returns one line for each part of the condition that the request does not
    /// meet.
    let mismatches: @Sendable (MatchInput) -> [String]

    init(
        _ description: String, match: @escaping @Sendable (MatchInput) -> [String: String]?,
        mismatches: @escaping @Sendable (MatchInput) -> [String]
    ) {
        self.description = description
        self.match = match
        self.mismatches = mismatches
    }

    /// Creates a condition without placeholders.
    init(
        _ description: String, holds: @escaping @Sendable (MatchInput) -> Bool,
        explain: @escaping @Sendable (MatchInput) -> String
    ) {
        self.init(description, match: { holds($0) ? [:] : nil }, mismatches: { holds($0) ? [] : [explain($0)] })
    }

    /// Returns whether a request meets the condition.
    public func matches(_ request: ReceivedRequest) -> Bool {
        match(MatchInput(request)) != nil
    }

    /// Returns one line for each part of the condition that a request does not meet.
    ///
    /// ```swift
    /// #expect(RequestMatcher.json(["name": "ale"]).mismatches(in: request) == [])
    /// ```
    public func mismatches(in request: ReceivedRequest) -> [String] {
        mismatches(MatchInput(request))
    }

    /// A matcher for every request.
    public static let any = RequestMatcher("any request", holds: { _ in true }, explain: { _ in "" })

    /// Returns a matcher for requests with the given method.
    public static func method(_ method: Request.Method) -> RequestMatcher {
        RequestMatcher("\(method)") {
            $0.request.method == method
        } explain: {
            "method: expected \(method), received \(Excerpt.text($0.request.method.rawValue))"
        }
    }

    /// Returns a matcher for requests whose path matches a pattern.
    ///
    /// - Parameter pattern: The whole path, with a leading slash and without a query. `{name}`
    ///   matches one segment and adds its value to ``ReceivedRequest/pathParameters``, `*` matches
    ///   one segment, and `**` at the end matches all remaining segments, or none. All other
    ///   segments are compared after percent-decoding.
    public static func path(_ pattern: String) -> RequestMatcher {
        let pattern = PathPattern(pattern)
        return RequestMatcher(pattern.text) {
            pattern.match($0.segments)
        } mismatches: {
            guard pattern.match($0.segments) == nil else { return [] }
            return ["path: expected \(pattern.text), received \(Excerpt.text($0.request.path))"]
        }
    }

    /// Returns a matcher for requests whose query contains the given name and value.
    ///
    /// - Parameters:
    ///   - name: The decoded name.
    ///   - value: The decoded value. Defaults to `nil`, which matches any value.
    public static func query(_ name: String, _ value: String? = nil) -> RequestMatcher {
        pair("query item", named: name, value: value) { $0.queryItems }
    }

    /// Returns a matcher for requests whose body is a form that contains all of these names with
    /// their values.
    public static func form(_ pairs: [String: String]) -> RequestMatcher {
        all(
            pairs.sorted { $0.key < $1.key }.map { name, value in
                pair("form field", named: name, value: value) { $0.formItems }
            })
    }

    private static func pair(
        _ kind: String, named name: String, value: String?,
        _ items: @escaping @Sendable (MatchInput) -> [ReceivedRequest.Item]
    ) -> RequestMatcher {
        let expected = value.map { Excerpt.parameter(name, $0) } ?? "any value"
        return RequestMatcher("\(kind) \(name): \(expected)") { input in
            items(input).contains { $0.name == name && (value == nil || $0.value == value) }
        } explain: { input in
            let received = items(input).filter { $0.name == name }.map { Excerpt.parameter(name, $0.value) }
            let text = received.isEmpty ? "none" : received.prefix(3).joined(separator: ", ")
            return "\(kind) \(name): expected \(expected), received \(text)"
        }
    }

    /// Returns a matcher for requests with the given header field.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value of one field, or the values of all fields with the name, joined with
    ///     `", "`. Defaults to `nil`, which matches any value.
    public static func header(_ name: Headers.Name, _ value: String? = nil) -> RequestMatcher {
        let expected = value.map { Excerpt.header(name.rawValue, $0) } ?? "any value"
        return RequestMatcher("header field \(name.rawValue): \(expected)") { input in
            guard let value else { return input.request.headers[name] != nil }
            return input.request.headers[name] == value || input.request.headers.values(for: name).contains(value)
        } explain: { input in
            let received = input.request.headers[name].map { Excerpt.header(name.rawValue, $0) } ?? "none"
            return "header field \(name.rawValue): expected \(expected), received \(received)"
        }
    }

    /// Returns a matcher for requests whose body is JSON that contains the given value.
    ///
    /// ```swift
    /// .json(["name": "ale", "tags": ["dark", "strong"], "price": 3.5])
    /// ```
    /// - Parameter value: The expected JSON. The objects in the body may have additional names. The
    ///   arrays must have the same number of elements.
    public static func json(_ value: JSONValue) -> RequestMatcher {
        RequestMatcher("JSON body \(Excerpt.json(value))") { input in
            guard case .success(let received) = input.json else { return false }
            return JSONDifference.first(value, received) == nil
        } explain: { input in
            guard case .success(let received) = input.json, let difference = JSONDifference.first(value, received)
            else { return "JSON body: expected JSON, received \(Excerpt.body(input.request.body))" }
            let place = difference.path.isEmpty ? "" : " at \(difference.path)"
            return "JSON body\(place): expected \(difference.expected), received \(difference.received)"
        }
    }

    /// Returns a matcher for requests whose body is a JSON object that contains the given members,
    /// whose values may be variables.
    ///
    /// A value that is not `Encodable` matches no request.
    @_disfavoredOverload
    public static func json(_ members: KeyValuePairs<String, Any?>) -> RequestMatcher {
        do { return json(try JSONValue(members: members)) } catch {
            let problem = "JSON body: the expected value cannot be encoded: \(error)"
            return RequestMatcher("JSON body", holds: { _ in false }, explain: { _ in problem })
        }
    }

    /// Returns a matcher for requests whose body consists of exactly these bytes.
    public static func body(_ data: Data) -> RequestMatcher {
        RequestMatcher("body of \(data.count) bytes") {
            $0.request.body == data
        } explain: {
            "body: expected \(Excerpt.body(data)), received \(Excerpt.body($0.request.body))"
        }
    }

    /// Returns a matcher for requests for which a closure returns `true`.
    ///
    /// - Parameters:
    ///   - description: The condition in words, for explanations.
    ///   - predicate: A closure that returns whether the request matches. A session or a server
    ///     calls it on a background thread, possibly several times for one request.
    public static func `where`(
        _ description: String, _ predicate: @escaping @Sendable (_ request: ReceivedRequest) -> Bool
    ) -> RequestMatcher {
        RequestMatcher(description) {
            predicate($0.request)
        } explain: { _ in
            "condition not met: \(description)"
        }
    }
}
