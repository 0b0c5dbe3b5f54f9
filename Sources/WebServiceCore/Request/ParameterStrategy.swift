public import Foundation

/// How the values of ``Parameters`` become the names and texts of a query or a form.
///
/// | value | default | the others |
/// | --- | --- | --- |
/// | `["tag": ["a", "b"]]` | `tag=a&tag=b` | `tag[]=a&tag[]=b`, `tag[0]=a&tag[1]=b`, `tag=a,b` |
/// | `["at": ["lat": 1]]` | `at[lat]=1` | `at.lat=1` |
/// | `["open": true]` | `open=true` | `open=1` |
/// | `["q": nil]` | left out | `q=`, `q` |
/// | `["since": date]` | `since=2026-11-20T08:00:00Z` | seconds or milliseconds since 1970, your own |
///
/// An empty list or object gives nothing. Whole numbers have no fraction, others the shortest text that reads back as the same
/// number. Names and texts are percent-encoded afterwards, brackets and commas as well.
public struct ParameterStrategy: Sendable {
    /// How a list is written.
    public var arrays: Arrays
    /// How the names of nested values are written.
    public var nesting: Nesting
    /// How truth values are written.
    public var booleans: Booleans
    /// How `nil` is written.
    public var nulls: Nulls
    /// How moments are written.
    public var dates: Dates

    /// Makes a strategy; what is left out is the default of the table above.
    public init(
        arrays: Arrays = .repeated,
        nesting: Nesting = .brackets,
        booleans: Booleans = .literal,
        nulls: Nulls = .omitted,
        dates: Dates = .iso8601
    ) {
        self.arrays = arrays
        self.nesting = nesting
        self.booleans = booleans
        self.nulls = nulls
        self.dates = dates
    }

    /// How a list is written.
    public enum Arrays: Sendable {
        /// The name again for each element: `tag=a&tag=b`.
        case repeated
        /// The name with empty brackets for each element: `tag[]=a&tag[]=b`.
        case brackets
        /// The name with the element's place: `tag[0]=a&tag[1]=b`.
        case indexed
        /// One pair with all elements: `tag=a,b`. Elements must be plain values.
        case commaSeparated
    }

    /// How the names of nested values are written.
    public enum Nesting: Sendable {
        /// `at[lat]=1`
        case brackets
        /// `at.lat=1`
        case dots
    }

    /// How truth values are written.
    public enum Booleans: Sendable {
        /// `true` and `false`
        case literal
        /// `1` and `0`
        case numeric
    }

    /// How `nil` is written.
    public enum Nulls: Sendable {
        /// The parameter is left out.
        case omitted
        /// `name=`
        case emptyValue
        /// `name`, without an equals sign.
        case nameOnly
    }

    /// How moments are written.
    public enum Dates: Sendable {
        /// UTC by RFC 3339, rounded to milliseconds and with them where there are any: `2026-11-20T08:00:00Z`. Years 1 to 9999.
        case iso8601
        /// Seconds since 1970, with a fraction where there is one.
        case secondsSince1970
        /// Whole milliseconds since 1970.
        case millisecondsSince1970
        /// Your own text.
        case custom(@Sendable (Date) -> String)

        /// `nil` for a moment that cannot be said, such as NaN.
        func text(of date: Date) -> String? {
            let seconds = date.timeIntervalSince1970
            let millis = (seconds * 1000).rounded()
            switch self {
            case .iso8601:
                guard seconds >= Date.distantPast.timeIntervalSince1970, millis < 253_402_300_800_000 else { return nil }
                // Foundation cuts milliseconds off instead of rounding, so it gets whole seconds only.
                let whole = (millis / 1000).rounded(.down)
                let text = Date(timeIntervalSince1970: whole).formatted(.iso8601)
                let fraction = Int(millis - whole * 1000)
                return fraction == 0 ? text : "\(text.dropLast()).\(String(1000 + fraction).dropFirst())Z"
            case .secondsSince1970: return seconds.isFinite ? ParameterValue.text(of: seconds) : nil
            case .millisecondsSince1970: return millis.isFinite ? ParameterValue.text(of: millis) : nil
            case .custom(let text): return text(date)
            }
        }
    }
}

extension ParameterStrategy {
    /// Nested deeper than this, a value is refused: no real API needs it, and it bounds the stack.
    static let maximumDepth = 32

    /// The bytes of a query or a form while it is written.
    struct Pairs: ~Copyable {
        var writer: ByteWriter
        let allowed: ByteSet
        /// What comes before the next pair: `?`, `&` or nothing.
        var separator: UInt8?

        mutating func add(_ name: String, _ text: String?) {
            if let separator { writer.write(byte: separator) }
            separator = UInt8(ascii: "&")
            writer.encode(name, allowed: allowed)
            guard let text else { return }
            writer.write(byte: UInt8(ascii: "="))
            writer.encode(text, allowed: allowed)
        }
    }

    /// Writes every parameter in order as `name=value&…`.
    func write(_ parameters: Parameters, into pairs: inout Pairs) throws(WebServiceError) {
        for item in parameters.items {
            try expand(item.key, item.value, depth: 0, &pairs)
        }
    }

    private func expand(_ name: String, _ value: ParameterValue, depth: Int, _ pairs: inout Pairs) throws(WebServiceError) {
        guard depth < Self.maximumDepth else {
            throw WebServiceError(.encoding, "parameter '\(name.cut(to: 80).escapingControls)' is nested deeper than \(Self.maximumDepth) levels")
        }
        switch value {
        case .string(let text):
            pairs.add(name, text)
        case .null:
            switch nulls {
            case .omitted: break
            case .emptyValue: pairs.add(name, "")
            case .nameOnly: pairs.add(name, nil)
            }
        case .array(let values):
            if arrays == .commaSeparated {
                if values.isEmpty { break }
                var texts: [String] = []
                for value in values { texts.append(try text(of: value, name: name)) }
                pairs.add(name, texts.joined(separator: ","))
            } else {
                for (index, value) in values.enumerated() {
                    try expand(elementName(name, index), value, depth: depth + 1, &pairs)
                }
            }
        case .object(let values):
            for (key, value) in values {
                try expand(nesting == .brackets ? "\(name)[\(key)]" : "\(name).\(key)", value, depth: depth + 1, &pairs)
            }
        default:
            pairs.add(name, try text(of: value, name: name))
        }
    }

    private func elementName(_ name: String, _ index: Int) -> String {
        switch arrays {
        case .brackets: name + "[]"
        case .indexed: "\(name)[\(index)]"
        case .repeated, .commaSeparated: name
        }
    }

    /// The text of a plain value.
    func text(of value: ParameterValue, name: String) throws(WebServiceError) -> String {
        var subject: String { "parameter '\(name.cut(to: 80).escapingControls)'" }
        switch value {
        case .string(let text): return text
        case .bool(let flag): return booleans == .literal ? (flag ? "true" : "false") : (flag ? "1" : "0")
        case .date(let date):
            if let text = dates.text(of: date) { return text }
            throw WebServiceError(.encoding, "\(subject) is a moment that cannot be written")
        case .double(let number) where !number.isFinite:
            throw WebServiceError(.encoding, "\(subject) is not a finite number")
        case .integer, .unsigned, .double, .null: return value.description
        case .array, .object: throw WebServiceError(.encoding, "\(subject) is nested where only plain values can stand")
        case .unsupported(let type): throw WebServiceError(.encoding, "\(subject) has the type \(type), which cannot be a parameter")
        }
    }
}
