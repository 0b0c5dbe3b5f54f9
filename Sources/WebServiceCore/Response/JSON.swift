package import Foundation

/// The single point of access to Foundation's JSON parsers.
///
/// `JSONDecoder` on Linux traps when the last byte of a JSON text opens the 513th level. The
/// nesting is checked before a parser runs. This check also bounds the recursion of all code that
/// traverses a parsed value.
package enum JSON {
    /// The maximum number of levels of arrays and objects, which is also Foundation's limit.
    static let maximumDepth = 512

    /// Parses a JSON text into Foundation objects. The text may be a single value.
    ///
    /// - Throws: The errors of ``JSONParser``.
    package static func object(from data: Data) throws -> Any {
        try JSONParser.value(from: data).foundationValue
    }

    /// Parses an I-JSON text (RFC 7493), which is in UTF-8 and has no repeated names and no final
    /// commas.
    ///
    /// - Throws: `DecodingError.dataCorrupted`.
    package static func strictValue(from data: Data) throws -> JSONValue {
        try JSONParser.value(from: data, isStrict: true)
    }

    /// Returns a value decoded from data, which is JSON unless the decoder is for another format.
    ///
    /// - Throws: The error of the decoder; for a `JSONDecoder`, also `DecodingError.dataCorrupted`,
    ///   for example for more than 512 levels.
    package static func decode<Value: Decodable>(
        _ type: Value.Type, from data: Data, using decoder: any BodyDecoder = JSONDecoder()
    ) throws -> Value {
        // JSON5 has a different string syntax and comments; its parser does not trap.
        if let decoder = decoder as? JSONDecoder, !decoder.allowsJSON5 {
            if type == JSONValue.self, Swift.type(of: decoder) == JSONDecoder.self, !decoder.assumesTopLevelDictionary,
                let value = try JSONParser.value(from: data) as? Value
            {
                return value
            }
            let text = try JSONParser.utf8(data)
            let maximum = decoder.assumesTopLevelDictionary ? maximumDepth - 1 : maximumDepth
            guard text.count <= maximum || !text.withUnsafeBytes({ exceeds(maximum, $0) }) else {
                throw JSONParser.error("The text is nested deeper than \(maximum) levels.")
            }
            return try decoder.decode(type, from: text)
        }
        return try decoder.decode(type, from: data)
    }

    /// Decodes a value from an element of a body.
    ///
    /// - Parameter element: The name of the element, for error messages.
    /// - Throws: ``WebServiceError/Code/decoding`` with the bytes of the element.
    static func decode<Value: Decodable>(
        _ type: Value.Type, from data: Data, of element: String, using decoder: any BodyDecoder
    ) throws(WebServiceError) -> Value {
        do {
            return try decode(type, from: data, using: decoder)
        } catch {
            let message = "\(type) cannot be decoded from \(element)\(Response.place(of: error))"
            throw WebServiceError(.decoding, message, body: data, underlying: error)
        }
    }

    /// Returns whether an object for `JSONSerialization` has more than 512 levels.
    ///
    /// Deeper levels are not traversed.
    static func isTooDeep(_ value: Any, levels: Int = maximumDepth) -> Bool {
        switch value {
        case let values as [Any]: levels == 0 || values.contains { isTooDeep($0, levels: levels - 1) }
        case let values as [String: Any]: levels == 0 || values.values.contains { isTooDeep($0, levels: levels - 1) }
        default: false
        }
    }

    /// Returns whether JSON can represent an object of at most ``maximumDepth`` levels.
    ///
    /// Only single values are passed to `JSONSerialization.isValidJSONObject`, each in the array
    /// that this method requires. On Linux, the method rejects 512 levels and takes 0.6 s for 511
    /// levels.
    static func isValid(_ value: Any) -> Bool {
        switch value {
        case is String: true
        case let values as [Any]: values.allSatisfy(isValid)
        case let values as [String: Any]: values.values.allSatisfy(isValid)
        default: JSONSerialization.isValidJSONObject([value])
        }
    }

    /// Returns whether a JSON text in UTF-8 has more than the given number of levels.
    private static func exceeds(_ maximum: Int, _ text: UnsafeRawBufferPointer) -> Bool {
        // Most texts have too few opening brackets to exceed the maximum. The compiler vectorizes
        // this loop.
        var opened = 0
        for byte in text { opened &+= byte | 0x20 == UInt8(ascii: "{") ? 1 : 0 }
        guard opened > maximum else { return false }
        var depth = 0
        var isInString = false
        var isEscaped = false
        for byte in text {
            if isInString {
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > maximum { return true }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return false
    }
}

/// A JSON parser (RFC 8259) that reads 64-bit integers exactly.
///
/// `JSONSerialization` on Linux reads integers beyond 64 bits, and numbers with more than 17
/// digits, as decimal numbers that convert to other values. Like Foundation's parsers, this parser
/// accepts UTF-16 and UTF-32, and a comma after the last element of an array or an object. If
/// members of an object have the same name, the first one counts, as with `JSONDecoder`.
struct JSONParser: ~Copyable {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let isStrict: Bool
    private var index = 0

    /// Parses a text, which may be a single value.
    ///
    /// - Parameter isStrict: Whether other encodings, final commas and repeated names are errors.
    ///   Defaults to `false`.
    /// - Throws: `DecodingError.dataCorrupted` for a text that is not JSON, has more than 512
    ///   levels, or contains a number beyond the range of `Double`.
    static func value(from data: Data, isStrict: Bool = false) throws(DecodingError) -> JSONValue {
        let text = isStrict ? data : try utf8(data)
        let result = text.withUnsafeBytes { bytes -> Result<JSONValue, DecodingError> in
            var parser = JSONParser(bytes: bytes.bindMemory(to: UInt8.self), isStrict: isStrict)
            do throws(DecodingError) { return .success(try parser.parse()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private init(bytes: UnsafeBufferPointer<UInt8>, isStrict: Bool) {
        self.bytes = bytes
        self.isStrict = isStrict
    }

    /// Returns a JSON text converted to UTF-8.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for a text that is not UTF-8, UTF-16 or UTF-32.
    static func utf8(_ data: Data) throws(DecodingError) -> Data {
        guard let encoding = encoding(of: data) else {
            guard !data.prefix(4).contains(0) else { throw error("The text is not UTF-8, UTF-16 or UTF-32.") }
            return data
        }
        guard let text = String(data: data, encoding: encoding) else {
            throw error("The text is not UTF-8, UTF-16 or UTF-32.")
        }
        return Data(text.utf8)
    }

    /// Returns the encoding that the byte order mark of a text or the zeros between its ASCII
    /// characters indicate (RFC 4627, section 3); `nil` for UTF-8.
    private static func encoding(of data: Data) -> String.Encoding? {
        let start = Array(data.prefix(4))
        if start == [0xFF, 0xFE, 0, 0] || start == [0, 0, 0xFE, 0xFF] { return .utf32 }
        if start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0xFE, 0xFF]) { return .utf16 }
        let isZero = start.map { $0 == 0 }
        if isZero == [true, true, true, false] { return .utf32BigEndian }
        if isZero == [false, true, true, true] { return .utf32LittleEndian }
        if isZero.starts(with: [true, false]) { return .utf16BigEndian }
        return isZero.starts(with: [false, true]) ? .utf16LittleEndian : nil
    }

    static func error(_ message: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: message))
    }

    private func invalid() -> DecodingError {
        Self.error(
            index < bytes.count ? "The text is not JSON: byte \(index) is unexpected." : "The text ends within a value."
        )
    }

    // MARK: - Values

    private mutating func parse() throws(DecodingError) -> JSONValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        let value = try value(levels: JSON.maximumDepth)
        guard next() == nil else { throw invalid() }
        return value
    }

    /// Returns the next byte that is not whitespace, without consuming it.
    private mutating func next() -> UInt8? {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x09, 0x0A, 0x0D: index += 1
            case let byte: return byte
            }
        }
        return nil
    }

    private mutating func value(levels: Int) throws(DecodingError) -> JSONValue {
        switch next() {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "["): return .array(try array(levels: levels - 1))
        case UInt8(ascii: "{"): return .object(try object(levels: levels - 1))
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return try number()
        }
    }

    private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(DecodingError) -> JSONValue {
        for place in 0..<text.utf8CodeUnitCount {
            guard index < bytes.count, bytes[index] == text.utf8Start[place] else { throw invalid() }
            index += 1
        }
        return value
    }

    private mutating func array(levels: Int) throws(DecodingError) -> [JSONValue] {
        try enter(levels)
        var values: [JSONValue] = []
        while next() != UInt8(ascii: "]") {
            values.append(try value(levels: levels))
            try separate(before: UInt8(ascii: "]"))
        }
        index += 1
        return values
    }

    private mutating func object(levels: Int) throws(DecodingError) -> [String: JSONValue] {
        try enter(levels)
        var values: [String: JSONValue] = [:]
        while next() != UInt8(ascii: "}") {
            guard next() == UInt8(ascii: "\"") else { throw invalid() }
            let name = try string()
            guard next() == UInt8(ascii: ":") else { throw invalid() }
            index += 1
            let value = try value(levels: levels)
            if values[name] == nil {
                values[name] = value
            } else if isStrict {
                throw Self.error("A name is repeated before byte \(index).")
            }
            try separate(before: UInt8(ascii: "}"))
        }
        index += 1
        return values
    }

    /// Reads the bracket that opens an array or an object.
    private mutating func enter(_ levels: Int) throws(DecodingError) {
        guard levels >= 0 else { throw Self.error("The text is nested deeper than \(JSON.maximumDepth) levels.") }
        index += 1
    }

    /// Reads a comma, which may be missing before the bracket that closes an array or an object.
    private mutating func separate(before end: UInt8) throws(DecodingError) {
        let byte = next()
        guard byte == UInt8(ascii: ",") else {
            if byte != end { throw invalid() }
            return
        }
        index += 1
        if isStrict, next() == end { throw invalid() }
    }

    // MARK: - Numbers

    private mutating func number() throws(DecodingError) -> JSONValue {
        let start = index
        skip(UInt8(ascii: "-"))
        let first = index
        guard digits(), bytes[first] != UInt8(ascii: "0") || index == first + 1 else { throw invalid() }
        var isInteger = true
        if skip(UInt8(ascii: ".")) {
            isInteger = false
            guard digits() else { throw invalid() }
        }
        if index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            index += 1
            if !skip(UInt8(ascii: "-")) { skip(UInt8(ascii: "+")) }
            guard digits() else { throw invalid() }
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if isInteger {
            if let value = Int64(text) { return .integer(value) }
            if let value = UInt64(text) { return .unsigned(value) }
        }
        // An underflow to zero would turn a number that is not zero into an integer.
        guard let value = Double(text), value.isFinite,
            value != 0 || text.utf8.prefix(while: { $0 | 0x20 != 0x65 }).allSatisfy({ $0 < 0x31 })
        else { throw Self.error("The number at byte \(start) does not fit in a Double.") }
        return .double(value)
    }

    @discardableResult
    private mutating func skip(_ byte: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }

    /// Reads digits and returns whether there are any.
    private mutating func digits() -> Bool {
        let start = index
        while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
        return index > start
    }

    // MARK: - Strings

    private mutating func string() throws(DecodingError) -> String {
        index += 1
        let start = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "\""), bytes[index] != UInt8(ascii: "\\"),
            bytes[index] >= 0x20
        {
            index += 1
        }
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return try escapedString(from: start) }
        index += 1
        return try text(bytes[start..<(index - 1)])
    }

    /// Reads the rest of a string, beginning with its first escape sequence.
    private mutating func escapedString(from start: Int) throws(DecodingError) -> String {
        var characters = Array(bytes[start..<index])
        while index < bytes.count, bytes[index] >= 0x20 {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                index += 1
                return try text(characters)
            }
            index += 1
            if byte == UInt8(ascii: "\\") {
                characters += String(Character(try escape())).utf8
            } else {
                characters.append(byte)
            }
        }
        throw invalid()
    }

    private func text(_ characters: some Collection<UInt8>) throws(DecodingError) -> String {
        guard let text = String(validating: characters, as: UTF8.self) else {
            throw Self.error("The string before byte \(index) is not UTF-8.")
        }
        return text
    }

    private mutating func escape() throws(DecodingError) -> Unicode.Scalar {
        guard index < bytes.count else { throw invalid() }
        index += 1
        switch bytes[index - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let unit = try codeUnit()
            if let scalar = Unicode.Scalar(unit) { return scalar }
            guard unit < 0xDC00, skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")) else { throw invalid() }
            let low = try codeUnit()
            guard (0xDC00...0xDFFF).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(low & 0x3FF)))
            else { throw invalid() }
            return scalar
        default:
            index -= 1
            throw invalid()
        }
    }

    private mutating func codeUnit() throws(DecodingError) -> UInt16 {
        guard bytes.count - index >= 4, bytes[index] != UInt8(ascii: "+"), bytes[index] != UInt8(ascii: "-"),
            let unit = UInt16(String(decoding: bytes[index..<(index + 4)], as: UTF8.self), radix: 16)
        else { throw invalid() }
        index += 4
        return unit
    }
}
