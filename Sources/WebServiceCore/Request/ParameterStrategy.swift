public import Foundation

/// A strategy that converts ``Parameters`` to the names and values of a query or a form.
///
/// | value | default | alternatives |
/// | --- | --- | --- |
/// | `["tag": ["a", "b"]]` | `tag=a&tag=b` | `tag[]=a&tag[]=b`, `tag[0]=a&tag[1]=b`, `tag=a,b` |
/// | `["at": ["lat": 1]]` | `at[lat]=1` | `at.lat=1` |
/// | `["open": true]` | `open=true` | `open=1` |
/// | `["q": nil]` | omitted | `q=`, `q` |
/// | `["since": date]` | `since=2026-11-20T08:00:00Z` | seconds or milliseconds, custom |
///
/// An empty array or object produces nothing. Integers, and whole numbers up to 2⁵⁴, are written
/// without a fraction, and other numbers as the shortest string that parses to the same number.
/// Names and values are then percent-encoded, by default including brackets and commas.
public struct ParameterStrategy: Sendable {
    /// The format of arrays.
    public var arrays: Arrays
    /// The format of the names of nested values.
    public var nesting: Nesting
    /// The format of Boolean values.
    public var booleans: Booleans
    /// The encoding of parameters whose value is `nil`.
    public var nulls: Nulls
    /// The format of dates.
    public var dates: Dates

    /// Creates a strategy. The formats default to those in the table of ``ParameterStrategy``.
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

    /// A format of arrays.
    public enum Arrays: Sendable {
        /// The name is repeated for each element: `tag=a&tag=b`.
        case repeated
        /// The name is repeated with empty brackets for each element: `tag[]=a&tag[]=b`.
        case brackets
        /// The name is repeated with the index of each element: `tag[0]=a&tag[1]=b`.
        case indexed
        /// One pair contains all elements: `tag=a,b`. Elements cannot be arrays or objects.
        case commaSeparated
    }

    /// A format of the names of nested values.
    public enum Nesting: Sendable {
        /// Brackets around the nested name: `at[lat]=1`.
        case brackets
        /// A dot before the nested name: `at.lat=1`.
        case dots
    }

    /// A format of Boolean values.
    public enum Booleans: Sendable {
        /// The words `true` and `false`.
        case literal
        /// The digits `1` and `0`.
        case numeric
    }

    /// The encoding of a parameter whose value is `nil`.
    public enum Nulls: Sendable {
        /// The parameter is omitted.
        case omitted
        /// The parameter has an empty value: `name=`.
        case emptyValue
        /// The parameter consists only of its name, without an equals sign: `name`.
        case nameOnly
    }

    /// A format of dates.
    public enum Dates: Sendable {
        /// UTC in the format of RFC 3339, rounded to milliseconds: `2026-11-20T08:00:00Z`.
        ///
        /// Milliseconds are written unless they are zero. Years from 1 to 9999 are supported.
        case iso8601
        /// Seconds since 1970, with a fraction unless it is zero.
        case secondsSince1970
        /// Whole milliseconds since 1970.
        case millisecondsSince1970
        /// The string that a closure returns.
        case custom(@Sendable (Date) -> String)

        /// Returns the string for a date, or `nil` for a date without a representation, such as
        /// NaN.
        func text(of date: Date) -> String? {
            let seconds = date.timeIntervalSince1970
            let millis = (seconds * 1000).rounded()
            switch self {
            case .iso8601:
                guard seconds >= Date.distantPast.timeIntervalSince1970, millis < 253_402_300_800_000 else {
                    return nil
                }
                // Foundation truncates milliseconds instead of rounding, so it receives whole
                // seconds only.
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
    /// The maximum depth of nested values, which bounds the recursion.
    static let maximumDepth = 32

    /// A query or a form while it is being written.
    struct Pairs: ~Copyable {
        var writer: ByteWriter
        let allowed: ByteSet
        /// The byte before the next pair: `?`, `&` or none.
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

    /// Writes all parameters in order, as `name=value&…`.
    func write(_ parameters: Parameters, into pairs: inout Pairs) throws(WebServiceError) {
        for item in parameters.items {
            try expand(item.key, item.value, depth: 0, &pairs)
        }
    }

    private func expand(
        _ name: String, _ value: ParameterValue, depth: Int, _ pairs: inout Pairs
    ) throws(WebServiceError) {
        guard depth < Self.maximumDepth else {
            let name = name.cut(to: 80).escapingControls
            throw WebServiceError(
                .encoding, "the parameter '\(name)' is nested deeper than \(Self.maximumDepth) levels; flatten it")
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

    /// Returns the string for a value that is not an array or an object.
    func text(of value: ParameterValue, name: String) throws(WebServiceError) -> String {
        var subject: String { "the parameter '\(name.cut(to: 80).escapingControls)'" }
        switch value {
        case .string(let text): return text
        case .bool(let flag): return booleans == .literal ? (flag ? "true" : "false") : (flag ? "1" : "0")
        case .date(let date):
            if let text = dates.text(of: date) { return text }
            throw WebServiceError(
                .encoding, "\(subject) is a date that cannot be represented; use a date in the years 1 to 9999")
        case .double(let number) where !number.isFinite:
            throw WebServiceError(.encoding, "\(subject) is not a finite number; pass a finite number or a string")
        case .integer, .unsigned, .double, .null: return value.description
        case .array, .object:
            throw WebServiceError(
                .encoding, "\(subject) is an array or an object where only a single value is allowed; pass one value")
        case .unsupported(let type):
            throw WebServiceError(
                .encoding,
                "\(subject) has the type \(type), which cannot be a parameter; conform it to ParameterConvertible")
        }
    }
}
