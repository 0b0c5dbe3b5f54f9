import Foundation

@testable import WebServiceCore
@testable import WebServiceDiagnostics

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    private static let canary = "cAnArY7"
    private static let pieces = [
        "//", "://", "@", "?", "&", "=", "#", ";", "access_token=", "password=", "code=", "\"", "<", ">",
        "https://u:p@h/", "[redacted]", "%5F", "\u{1E}",
        "{\"token\":", "\":", "\\\"", "[", "{", "%7B%22token%22%3A", "\\u0026", "\\/\\/", "state=", "<token>", "</",
        "%25", "<a b=", "<![CDATA[", "<!--", "-->", "]]>", "data:", "\n", "password: ", "query {", "eyJ", "-----BEGIN ",
        "PRIVATE KEY", "-----END", "tokens", "key", "\"name\":\"token\",\"value\":",
    ]

    static let secrets: [FuzzTarget] = [
        FuzzTarget(
            "redacted-header", share: 6,
            seeds: [
                "https://u:p@h/a?token=x&b=c", "a=b; c=d", "<https://h/?code=1>; rel=next", "no secret", "====",
                "a@b, c@d //",
            ], tokens: pieces,
            check: checkRedactedHeader),
        FuzzTarget(
            "redacted-url", share: 8, seeds: ["https://h/a?b=c&d#e", "//h?x", "a:b@c", "/path?a=b;c=d", "u:p@ss"],
            tokens: pieces, check: checkRedactedURL),
        FuzzTarget(
            "redacted-text", share: 8, runs: 6,
            seeds: [
                "{\"a\":{\"token\":\"x\",\"b\":[1,{\"password\":[\"y\"]}]}}", "a=b&password=c&d",
                "{\"to\\u006ben\": \"x\"", "[{\"key\":1},\"\\", "text: token=x",
            ],
            tokens: pieces, check: checkRedactedText),
        FuzzTarget(
            "escaped", share: 8, seeds: ["\u{1B}[31m\r\n\t\0", "é\u{202E}\u{2028}"], tokens: pieces, check: checkEscaped
        ),
        FuzzTarget(
            "redacted-json", share: 8, seeds: ["", "0123456789", "\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}"],
            check: checkRedactedJSON),
        FuzzTarget(
            "curl", share: 3, seeds: ["'; rm -rf /; '", "$(id)`id`", "@file", "\n\t\u{1B}[0m", "a b?c=d&e"],
            tokens: ["'", "\\", "!", "%"] + pieces, check: checkCurl),
    ]

    @Sendable private static func checkRedactedHeader(_ bytes: [UInt8]) throws {
        let redaction = Redaction.standard
        let value = text(bytes)
        for name in ["Authorization", "X-Key", "Set-Cookie", "x-amz-security-token"] {
            let isField = Redaction.secretFields.contains(name.asciiLowercased())
            let isNothing = !isField && SecretRules.isNothing(Array(value.utf8)[...])
            try require(
                isNothing || redaction.value(ofHeader: name, value) == redaction.placeholder, "\(name) is shown")
        }
        try require(
            !redaction.value(ofHeader: "Link", "\(value)&access_token=\(canary)&\(value)").contains(canary),
            "a parameter is shown")
        // Filters scalars, because a combining mark does not hide the end of a URL.
        let scalars = value.unicodeScalars.filter {
            !"/?#<>\"\\".unicodeScalars.contains($0) && !$0.properties.isWhitespace
        }
        let user = String(String.UnicodeScalarView(scalars))
        try require(
            !redaction.value(ofHeader: "Location", "https://\(user)\(canary)@h/\(value)").contains(canary),
            "user information is shown")
    }

    @Sendable private static func checkRedactedURL(_ bytes: [UInt8]) throws {
        let redaction = Redaction.standard
        let value = text(bytes)
        _ = redaction.url(value)
        try require(
            !redaction.url("\(value)?a&access_token=\(canary)&\(value)").contains(canary), "a parameter is shown")
        try require(!redaction.url("https://h/#\(value)\(canary)").contains(canary), "a fragment is shown")
        let user = String(String.UnicodeScalarView(value.unicodeScalars.filter { !"/?#".unicodeScalars.contains($0) }))
        try require(!redaction.url("https://\(user)\(canary)@h/\(value)").contains(canary), "user information is shown")
    }

    @Sendable private static func checkRedactedText(_ bytes: [UInt8]) throws {
        let data = Data(bytes)
        for type in [
            "application/json", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream", nil,
        ] {
            _ = Redaction.standard.body(data, contentType: type)
        }
        let form = Data("\(text(bytes))&password=\(canary)&\(text(bytes))".utf8)
        let line = Data("\(text(bytes))\ndata: password=\(canary)\n\(text(bytes))".utf8)
        for type in [
            "application/json", "application/xml", "application/yaml", "text/csv", "text/event-stream", "text/html",
            "text/plain",
        ] {
            let shown = Redaction.standard.body(line, contentType: type) ?? ""
            try require(!shown.contains(canary), "a line of \(type) is shown: \(shown)")
        }
        // Within a string of JSON and within an encoded parameter, after any text.
        let part = "\(text(bytes)) https://h/?access_token=\(canary)"
        let json = Data("{\"a\":\"".utf8) + JSONLiteral.escaped(part.utf8) + Data("\"}".utf8)
        let shown = Redaction.standard.body(json, contentType: "application/json") ?? ""
        try require(!shown.contains(canary), "a parameter in a string of JSON is shown: \(shown)")
        let encoded = part.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        try require(!Redaction.standard.pairs("a=\(encoded)").contains(canary), "an encoded parameter is shown")
        let first = form.first { !"\u{FEFF}\u{1E} \t\r\n".utf8.contains($0) }
        if first != UInt8(ascii: "{"), first != UInt8(ascii: "[") {
            let shown = Redaction.standard.body(form, contentType: "application/x-www-form-urlencoded")
            try require(shown.map { !$0.contains(canary) } ?? true, "a parameter of a form is shown")
        }
    }

    @Sendable private static func checkEscaped(_ bytes: [UInt8]) throws {
        let isPrintable = text(bytes).escapingControls.unicodeScalars.allSatisfy {
            $0.value >= 0x20 && $0.value != 0x7F
        }
        try require(isPrintable, "a control character is left")
    }

    /// Checks a JSON document whose structure and length are determined by the input.
    ///
    /// All its secrets are the canary.
    @Sendable private static func checkRedactedJSON(_ bytes: [UInt8]) throws {
        var choices = bytes[...]
        var json = ""
        appendJSON(&json, &choices, depth: 0, isSecret: false)
        let cut = json.utf8.count - (Int(choices.popFirst() ?? 0) & 15) * json.utf8.count / 64
        let body = Data(Array(json.utf8).prefix(cut))
        guard let shown = Redaction.standard.body(body, contentType: "application/json") else {
            throw Finding(text: "the redacted body is nil: \(json)")
        }
        try require(!shown.contains(canary), "a secret is shown: \(shown)")
        guard cut == json.utf8.count else { return }
        try require(
            (try? JSONSerialization.jsonObject(with: Data(shown.utf8), options: .fragmentsAllowed)) != nil,
            "the redacted body is not JSON: \(shown)")
    }

    private static func appendJSON(
        _ json: inout String, _ choices: inout ArraySlice<UInt8>, depth: Int, isSecret: Bool
    ) {
        let choice = choices.popFirst() ?? 0
        let blank = ["", " ", "\n\t", ""][Int(choice >> 6)]
        json += blank
        switch depth < 100 ? choice % 8 : choice % 4 {
        case 0: json += isSecret ? "\"\(canary)\"" : "\"\\\"}],:\\\\\""
        case 1: json += isSecret ? "\"\\\\\\\"\(canary)\\u0022]\"" : "-1.5e3"
        case 2: json += isSecret ? "[\"\(canary)\", {\"a\": \"\(canary)\"}]" : "null"
        case 3: json += isSecret ? "{\"}\": \"\(canary)\"}" : "true"
        case 4, 5:
            json += "["
            for index in 0...(choice >> 4 & 3) {
                if index > 0 { json += "," }
                appendJSON(&json, &choices, depth: depth + 1, isSecret: isSecret)
            }
            json += "]"
        default:
            json += "{"
            for index in 0...(choice >> 4 & 3) {
                if index > 0 { json += "," }
                let key = choices.popFirst() ?? 0
                let names = ["access_token", "to\\u006ben", "PASSWORD", "a", "b\\\"c", "api-key", "é", ""]
                json += "\(blank)\"\(names[Int(key % 8)])\"\(blank):"
                appendJSON(&json, &choices, depth: depth + 1, isSecret: isSecret || [0, 1, 2, 5].contains(key % 8))
            }
            json += "}"
        }
        json += blank
    }

    @Sendable private static func checkCurl(_ bytes: [UInt8]) throws {
        let value = text(bytes)
        var request = Request(.POST, url: "https://h/\(value)?a&access_token=\(canary)")
        request.headers["Authorization"] = canary
        request.headers["X-Text"] = value
        request.queryParameters = ["a": value, "password": canary]
        request.content = .data(Data(bytes), contentType: "text/plain")
        let command = request.curlDescription()
        try require(!command.contains(canary), "a secret is shown: \(command)")
        try require(command == command.escapingControls, "a control character is left: \(command)")
        try require(isInert(command), "a shell would run more than curl, printf and cat: \(command)")
        _ = request.curlDescription(redaction: nil)
    }

    /// Returns whether the only shell syntax outside single quotes is the pipe and `$(printf …)`.
    private static func isInert(_ command: String) -> Bool {
        var isQuoted = false
        var bare: [UInt8] = []
        var bytes = Array(command.utf8)[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "'") { isQuoted.toggle() } else if !isQuoted { bare.append(byte) }
            if byte == UInt8(ascii: "\\"), !isQuoted, bytes.popFirst() == nil { return false }
        }
        let rest = text(bare).replacingOccurrences(of: "\"$(printf -- )\"", with: "")
        return !isQuoted && (rest.hasPrefix("curl ") || rest.hasPrefix("printf -- ") || rest.hasPrefix("# "))
            && !rest.utf8.contains { ";&$`<>(){}*?![]\"".utf8.contains($0) } && rest.split(separator: "|").count <= 2
    }
}
