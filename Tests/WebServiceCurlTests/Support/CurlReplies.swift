import Foundation

/// The replies of the servers in curl's own test cases: `curl/tests/data` in the folder that
/// `WEBSERVICE_CORPORA` names.
enum CurlReplies {
    struct Reply: Sendable {
        /// The name of the test case and the number of the reply in it.
        let name: String
        let bytes: [UInt8]
    }

    private static let folder = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0).appendingPathComponent("curl/tests/data")
    }

    static let all: [Reply] = {
        guard let folder, let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)  // no corpora
        else { return [] }
        return names.filter { $0.hasPrefix("test") }.sorted().flatMap { name in
            // A file that cannot be read has no replies.
            replies(in: [UInt8]((try? Data(contentsOf: folder.appendingPathComponent(name))) ?? Data()), name)
        }
    }()

    /// The replies of one test case: its elements `data…` and `connect…`, without those that
    /// describe what the client has to print.
    private static func replies(in file: [UInt8], _ name: String) -> [Reply] {
        var replies: [Reply] = []
        var open: (tag: String, attributes: String, bytes: [UInt8])?
        for line in file.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            let text = String(decoding: line, as: UTF8.self)
            if let (tag, attributes, bytes) = open {
                if text.hasPrefix("</\(tag)>") {
                    replies.append(Reply(name: "\(name)/\(replies.count)", bytes: content(bytes, attributes)))
                    open = nil
                } else if !text.hasPrefix("%if ") && text != "%else" && text != "%endif" {
                    open = (tag, attributes, bytes + line + [UInt8(ascii: "\n")])
                }
            } else if let match = text.wholeMatch(of: #/<((?:data|connect)[0-9]*)( [^>]*)?>\r?/#) {
                open = (String(match.1), String(match.2 ?? ""), [])
            }
        }
        return replies
    }

    private static func content(_ bytes: [UInt8], _ attributes: String) -> [UInt8] {
        var bytes = bytes
        if attributes.contains("base64=\"yes\"") {
            return [UInt8](Data(base64Encoded: Data(bytes), options: .ignoreUnknownCharacters) ?? Data())
        }
        if attributes.contains("hex=\"yes\"") { return hexadecimal(bytes) }
        if attributes.contains("nonewline=\"yes\"") { bytes.removeLast() }
        bytes = expanded(bytes, "%hex[", "]hex%") { hexadecimal($0.filter { $0 != UInt8(ascii: "%") }) }
        bytes = expanded(bytes, "%repeat[", "]%") { inner in
            let parts = inner.split(separator: UInt8(ascii: " "), maxSplits: 2)
            guard parts.count == 3, let count = Int(String(decoding: parts[0], as: UTF8.self)) else { return [] }
            return Array(repeating: parts[2], count: count).flatMap(\.self)
        }
        return attributes.contains("crlf=\"yes\"") ? normalized(bytes) : bytes
    }

    private static func expanded(
        _ bytes: [UInt8], _ start: String, _ end: String, _ expand: ([UInt8]) -> [UInt8]
    ) -> [UInt8] {
        var (rest, result) = (bytes[...], [UInt8]())
        while let from = rest.firstRange(of: Array(start.utf8)),
            let to = rest[from.upperBound...].firstRange(of: Array(end.utf8))
        {
            result += rest[..<from.lowerBound] + expand(Array(rest[from.upperBound..<to.lowerBound]))
            rest = rest[to.upperBound...]
        }
        return result + rest
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        let digits = bytes.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// The bytes with CR LF at the end of each line of a head.
    static func normalized(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes[...]
        var isHead = true
        while isHead, let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end].last == UInt8(ascii: "\r") ? rest[..<end].dropLast() : rest[..<end]
            rest = rest[(end + 1)...]
            result += line + [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
            // Another head follows an interim response.
            if line.isEmpty { isHead = rest.starts(with: "HTTP/".utf8) }
        }
        return result + rest
    }
}
