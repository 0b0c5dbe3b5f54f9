package import WebServiceCore
import WebServiceDiagnostics

/// The first difference between an expected JSON value and a received one.
///
/// Received objects may have additional names. Arrays must have the same number of elements.
package struct JSONDifference {
    /// The location of the difference, such as `brewers[0].name`; empty for the whole value.
    package private(set) var path: String
    package private(set) var expected: String
    package private(set) var received: String

    /// Returns the first difference, in the order of the names, or `nil` if there is none.
    package static func first(_ expected: JSONValue, _ received: JSONValue, isSecret: Bool = false) -> JSONDifference? {
        switch (expected, received) {
        case (.object(let expected), .object(let received)):
            for name in expected.keys.sorted() {
                guard let value = expected[name] else { continue }
                let isSecret = isSecret || Redaction.standard.isSecret(key: name)
                let difference =
                    if let other = received[name] { first(value, other, isSecret: isSecret) } else {
                        JSONDifference(value, nil, isSecret)
                    }
                if let difference { return difference.within(Excerpt.text(name)) }
            }
            return nil
        case (.array(let expected), .array(let received)) where expected.count == received.count:
            for (place, (value, other)) in zip(expected, received).enumerated() {
                if let difference = first(value, other, isSecret: isSecret) { return difference.within("[\(place)]") }
            }
            return nil
        default: return expected == received ? nil : JSONDifference(expected, received, isSecret)
        }
    }

    private init(_ expected: JSONValue, _ received: JSONValue?, _ isSecret: Bool) {
        path = ""
        self.expected = isSecret ? Redaction.standard.placeholder : Excerpt.json(expected)
        self.received =
            received.map { isSecret ? Redaction.standard.placeholder : Excerpt.json($0) } ?? "none"
    }

    private func within(_ step: String) -> JSONDifference {
        var difference = self
        difference.path = step + (path.isEmpty || path.hasPrefix("[") ? path : ".\(path)")
        return difference
    }
}
