import Foundation
import Testing

@testable import WebServiceCore

/// Lists of hostile input from elsewhere. They are no part of the package: tests that read them are
/// skipped where `WEBSERVICE_CORPORA` does not name their folder, and the test report says so.
enum Corpora {
    static let folder = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }
    static let areThere = folder != nil
    static let comment: Comment = "WEBSERVICE_CORPORA has to name the folder of the corpora"

    static func data(_ path: String) throws -> Data {
        try Data(contentsOf: #require(folder).appendingPathComponent(path))
    }

    static func lines(_ path: String) throws -> [String] {
        String(decoding: try data(path), as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
    }

    static func naughtyStrings() throws -> [String] {
        try JSONDecoder().decode([String].self, from: data("blns/blns.json"))
    }
}

/// A decoder that knows nothing of the encoder: bytes back from `%XX`, and from `+` where it stands
/// for a space.
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

    /// Name and, behind an equals sign, value of each pair (WHATWG URL, section 5.1), as bytes.
    static func pairs(_ text: String) -> [[[UInt8]]] {
        text.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return parts.map { bytes(String(decoding: $0, as: UTF8.self), plusIsSpace: true) }
        }
    }
}

/// Everything an error or a request may print into a log.
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

/// Expects an error of one kind, whose message holds some texts and nothing of whose printed forms
/// holds the others.
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
        !error.message.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "a message is one line",
        sourceLocation: sourceLocation)
    return error
}

extension Request {
    /// A request that is right in everything.
    static func make(_ method: Method = .GET, _ url: String = "https://h/v1") -> Request {
        Request(method, url: url)
    }

    /// A request that is right in everything but for what the test changes.
    static func make(_ method: Method = .GET, _ url: String = "https://h/v1", _ change: (inout Request) throws -> Void)
        rethrows -> Request
    {
        var request = Request(method, url: url)
        try change(&request)
        return request
    }

    /// What stands behind the question mark, `nil` when there is none.
    func encodedQuery() throws -> String? {
        let url = try encode().url
        return url.firstIndex(of: "?").map { String(url[url.index(after: $0)...]) }
    }

    /// The body as text.
    func encodedBody() throws -> String? {
        try encode().body.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension Request {
    /// What is sent when the body provider, where there is one, gives this.
    func encode(provided data: Data) throws -> EncodedRequest {
        var request = self
        if case .provider(let contentType, _) = content { request.content = .data(data, contentType: contentType) }
        return try request.encode()
    }
}
