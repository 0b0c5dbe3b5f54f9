package import Foundation

/// The only access to Foundation's JSON parsers.
///
/// `JSONDecoder` on Linux traps when the last byte of a JSON text opens the 513th level. The
/// nesting is checked before a parser runs, which also bounds the recursion of all code that
/// traverses a parsed value.
package enum JSON {
    /// The maximum number of levels of arrays and objects, which is also Foundation's limit.
    static let maximumDepth = 512

    /// Parses a JSON text to Foundation objects. The text may be a single value.
    ///
    /// - Throws: The errors of ``JSONParser``.
    package static func object(from data: Data) throws -> Any {
        try JSONParser.value(from: data).foundationValue
    }

    /// Returns a value decoded from data, which is JSON unless the decoder is for another format.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the decoder is a `JSONDecoder` and the JSON text
    ///   has more than 512 levels, otherwise the error of the decoder.
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
    /// that it requires: on Linux, it rejects 512 levels and takes 0.6 s for 511.
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
