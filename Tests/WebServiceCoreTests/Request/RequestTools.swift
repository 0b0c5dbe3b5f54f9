import Foundation
import Testing

@testable import WebServiceCore

/// A decoder that is independent of the encoder. Decodes `%XX` and, optionally, `+` as a space.
enum Decoded {
    static func bytes(_ text: some StringProtocol, plusIsSpace: Bool = false) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
            if byte == UInt8(ascii: "%"), digits.count == 2 {
                bytes.append(UInt8(16 * digits[0] + digits[1]))
                rest = rest.dropFirst(2)
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return bytes
    }

    /// The name and, after an equals sign, the value of each pair as bytes (WHATWG URL, section
    /// 5.1).
    static func pairs(_ text: String) -> [[[UInt8]]] {
        text.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return parts.map { bytes(String(decoding: $0, as: UTF8.self), plusIsSpace: true) }
        }
    }
}

/// Returns every printable form of a value, such as an error or a request.
func printed(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    var texts = ["\(value)", String(reflecting: value), "\([value])", "\(Optional(value) as Any)", dumped]
    if let error = value as? any Error {
        texts += [error.localizedDescription, "\(error as NSError)", String(reflecting: error as NSError)]
    }
    if let error = value as? WebServiceError { texts.append(error.message) }
    return texts.joined(separator: "\n")
}

/// Expects an error with the given code whose message contains every name and whose printable forms
/// contain no secret.
@discardableResult
func expectFailure<Value>(
    _ code: WebServiceError.Code, naming names: [String] = [], hiding secrets: [String] = [], _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ step: () throws -> Value
) -> WebServiceError? {
    let thrown = #expect(throws: WebServiceError.self, comment, sourceLocation: sourceLocation) { _ = try step() }
    guard let error = thrown else { return nil }
    #expect(error.code == code, comment, sourceLocation: sourceLocation)
    for name in names { #expect(error.message.contains(name), comment, sourceLocation: sourceLocation) }
    let log = printed(error)
    for secret in secrets { #expect(!log.contains(secret), comment, sourceLocation: sourceLocation) }
    #expect(
        !error.message.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "an error message must be one line",
        sourceLocation: sourceLocation)
    return error
}

extension Request {
    /// Returns the query without the question mark, or `nil` if the URL has no query.
    func encodedQuery() throws -> String? {
        let url = try encode().url
        return url.firstIndex(of: "?").map { String(url[url.index(after: $0)...]) }
    }

    /// Returns the body as a string.
    func encodedBody() throws -> String? {
        try encode().body.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension Request {
    /// Encodes the request with the given data as the result of its body provider, if it has one.
    func encode(provided data: Data) throws -> EncodedRequest {
        var request = self
        if case .provider(let contentType, _) = content.content {
            request.content = .data(data, contentType: contentType)
        }
        return try request.encode()
    }
}
