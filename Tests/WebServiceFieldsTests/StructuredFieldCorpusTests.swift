import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields

/// The records of httpwg/structured-field-tests, which are not part of the package.
@Suite("Structured fields of the public test suite", .permit)
struct StructuredFieldCorpusTests {
    private static let folder = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0, isDirectory: true).appendingPathComponent("structured-field-tests")
    }

    /// A field value, or a value that cannot be serialized.
    private struct Record: Decodable {
        var name: String
        var header_type: String
        var raw: [String]?
        var expected: JSONValue?
        var canonical: [String]?
        var must_fail: Bool?
    }

    private enum Value: Hashable {
        case item(StructuredField.Item)
        case list(StructuredField.List)
        case dictionary(StructuredField.Dictionary)
    }

    private static func records(_ folder: String) throws -> [Record] {
        let folder = try #require(Self.folder).appendingPathComponent(folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
        return try names.sorted().flatMap { name in
            let json = try Data(contentsOf: folder.appendingPathComponent(name))
            return try JSONDecoder().decode([Record].self, from: Data(markingDecimals(Array(json))))
        }
    }

    // The fields of a record are parsed as `Example`, and its values are serialized to `Example`.

    private func parsed(_ record: Record) -> Value? {
        let headers = Headers((record.raw ?? []).map { ("Example", $0) })
        return switch record.header_type {
        case "item": headers.structuredItem("Example").map(Value.item)
        case "list": headers.structuredList("Example").map(Value.list)
        default: headers.structuredDictionary("Example").map(Value.dictionary)
        }
    }

    private func serialized(_ value: Value) throws -> [String] {
        var headers: Headers = ["Example": "another"]
        switch value {
        case .item(let item): try headers.setStructuredItem(item, for: "Example")
        case .list(let list): try headers.setStructuredList(list, for: "Example")
        case .dictionary(let dictionary): try headers.setStructuredDictionary(dictionary, for: "Example")
        }
        return headers.values(for: "Example")
    }

    @Test(
        "Each field is parsed to the expected value or refused, and the value has the canonical form",
        .enabled(if: folder != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"))
    func fields() throws {
        let records = try Self.records("")
        #expect(records.count == 1_591)
        for record in records {
            let value = parsed(record)
            if record.must_fail == true {
                #expect(value == nil, "\(record.name)")
            } else {
                let expected = try Self.value(record)
                #expect(value == expected, "\(record.name)")
                #expect(try serialized(expected) == record.canonical ?? record.raw, "\(record.name)")
            }
        }
    }

    @Test(
        "Each value has the canonical form, or an error if it cannot be serialized",
        .enabled(if: folder != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"))
    func values() throws {
        let records = try Self.records("serialisation-tests")
        #expect(records.count == 544)
        for record in records {
            let value = try Self.value(record)
            if record.must_fail == true {
                let error = #expect(throws: WebServiceError.self, "\(record.name)") { try serialized(value) }
                #expect(error?.code == .invalidHeader)
            } else {
                #expect(try serialized(value) == record.canonical, "\(record.name)")
            }
        }
    }

    // MARK: The expected values

    private static func value(_ record: Record) throws -> Value {
        let json = try #require(record.expected)
        return switch record.header_type {
        case "item": .item(try item(json))
        case "list": .list(try #require(json.array).map(member))
        default:
            .dictionary(
                StructuredField.Dictionary(
                    try #require(json.array).map { (try #require($0[0]?.string), try member(try #require($0[1]))) }))
        }
    }

    private static func member(_ json: JSONValue) throws -> StructuredField.Member {
        guard let items = json[0]?.array else { return .item(try item(json)) }
        return .innerList(try items.map(item), parameters: try parameters(json))
    }

    private static func item(_ json: JSONValue) throws -> StructuredField.Item {
        StructuredField.Item(try bareItem(try #require(json[0])), parameters: try parameters(json))
    }

    private static func parameters(_ json: JSONValue) throws -> StructuredField.Parameters {
        StructuredField.Parameters(
            try #require(json[1]?.array).map { (try #require($0[0]?.string), try bareItem(try #require($0[1]))) })
    }

    private static func bareItem(_ json: JSONValue) throws -> StructuredField.BareItem {
        switch json {
        case .integer(let number): return .integer(number)
        case .string(let string): return .string(string)
        case .bool(let boolean): return .boolean(boolean)
        default: break
        }
        let value = try #require(json["value"])
        switch json["__type"]?.string {
        case "decimal": return .decimal(try #require(value.string.flatMap(Double.init)))
        case "token": return .token(try #require(value.string))
        case "binary": return .byteSequence(base32(try #require(value.string)))
        case "date": return .date(Date(timeIntervalSince1970: TimeInterval(try #require(value.int))))
        default: return .displayString(try #require(value.string))
        }
    }

    private static func base32(_ text: String) -> Data {
        var (bytes, bits, count) = (Data(), 0, 0)
        for digit in text.utf8.compactMap(Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8).firstIndex) {
            bits = bits << 5 & 0xFFFF | digit
            count += 5
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(bits >> count & 0xFF))
            }
        }
        return bytes
    }

    /// Returns JSON with numbers such as `1.0` replaced by objects, because a decoder reads them as
    /// integers.
    private static func markingDecimals(_ json: [UInt8]) -> [UInt8] {
        var (output, rest) = ([UInt8](), json[...])
        while let byte = rest.first {
            var length = 1
            if byte == UInt8(ascii: "\"") {
                while rest[rest.startIndex + length] != UInt8(ascii: "\"") {
                    length += rest[rest.startIndex + length] == UInt8(ascii: "\\") ? 2 : 1
                }
                length += 1
            } else {
                length = max(rest.prefix { "-.0123456789".utf8.contains($0) }.count, 1)
            }
            let token = rest.prefix(length)
            let isDecimal = byte != UInt8(ascii: "\"") && token.contains(UInt8(ascii: "."))
            output +=
                isDecimal ? Array(#"{"__type": "decimal", "value": ""#.utf8) + token + Array("\"}".utf8) : Array(token)
            rest = rest.dropFirst(length)
        }
        return output
    }
}
