import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Request {
    /// A command line for curl (7.88 or newer) that sends what the request says: for a terminal, a bug report, a log.
    ///
    /// ```
    /// curl --disable --globoff --path-as-is --request 'POST' --header 'Authorization: [redacted]' --header 'Content-Type: application/json'
    ///     --data-binary '{"name":"Trashboat"}' --url 'https://brewhapi.example.com/brewers'
    /// ```
    /// - The text is one line of printable characters for any POSIX shell (XCU, section 2). Whatever the request holds, only `curl`, `printf` and, for
    ///   the files of a ``multipart`` body, `cat` run.
    /// - Method, URL, header fields (by name, repeated ones joined) and body are those of ``urlRequest()``, byte for byte; other fields, such as
    ///   `User-Agent`, are curl's own. One message is sent: redirects are not followed, and neither a `.curlrc` nor any other file is read but
    ///   those of a ``multipart`` body.
    /// - A body that is long, begins with `@` or holds anything that cannot be printed is written by `printf` and piped.
    /// - A body from a provider or a stream is not known before the request is sent; `[body made when sent]` stands for it. Providers do not run.
    /// - A request that cannot be encoded gives a comment: `# '…'` with the error's description, whatever ``urlRequest()`` throws.
    ///
    /// - Parameter redaction: What must not be shown, so that placeholders are sent in its place. A body that it cannot look into, such as bytes
    ///   that are no UTF-8 or parts of a ``multipart`` one, is replaced as a whole. `nil` shows everything, passwords as well.
    public func curlDescription(redaction: Redaction? = .standard) -> String {
        do throws(WebServiceError) {
            var request = self
            if hasBodyProvider, case .provider(let contentType, _) = content {
                request.content = .data(CurlDescription.unknownBody, contentType: contentType)
            }
            return CurlDescription.command(for: try request.encode(), self, redaction)
        } catch {
            // Quoted, because not every shell knows comments where it is typed into.
            return "# \(CurlDescription.quoted(error.description.escapingControls))"
        }
    }
}

/// How an encoded request is written for a shell.
private enum CurlDescription {
    /// Stands for a body that is not known yet.
    static let unknownBody = Data("[body made when sent]".utf8)

    /// Longer bodies are piped: Linux takes no argument of 128 KiB.
    private static let longestArgument = 65_536

    static func command(for encoded: EncodedRequest, _ request: Request, _ redaction: Redaction?) -> String {
        // First of all: without it a `.curlrc` adds whatever it likes.
        var command = "curl --disable --globoff --path-as-is"
        var pipe = ""
        func add(_ option: String, _ argument: String) { command += " --\(option) \(quoted(argument))" }

        switch encoded.method {
        case .GET: break
        case .HEAD: command += " --head"
        default: add("request", encoded.method.rawValue)
        }
        let headers = (encoded.urlRequestValue.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        for (name, value) in headers {
            let value = redaction?.value(ofHeader: name, value) ?? value
            add("header", value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        if let body = body(of: encoded, request, redaction) {
            // What curl would add by itself; it asks before it sends more than 1 MiB, and older ones 1 KiB.
            if !headers.contains(where: { $0.key.equalsIgnoringASCIICase("Content-Type") }) { add("header", "Content-Type:") }
            if body.count > 1024 { add("header", "Expect:") }
            if let text = argument(body) {
                add("data-binary", text)
            } else {
                pipe = "\(output(body)) | "
                add("data-binary", "@-")
            }
        } else if !encoded.method.forbidsBody {
            add("header", "Content-Length: 0")
        }
        add("url", visible(redaction?.url(encoded.url) ?? encoded.url))
        return pipe + command
    }

    /// What is shown of the body; `nil` where it is empty.
    private static func body(of encoded: EncodedRequest, _ request: Request, _ redaction: Redaction?) -> BodySource? {
        if request.template?.httpBodyStream != nil { return BodySource(unknownBody) }
        if let source = encoded.bodySource { return redaction.map { BodySource(Data($0.placeholder.utf8)) } ?? source }
        guard let body = encoded.body, !body.isEmpty else { return nil }
        if request.hasBodyProvider { return BodySource(body) }
        guard let redaction else { return BodySource(body) }
        // The whole body has to be UTF-8: a redaction forgives a character that is cut off at the end.
        let isText = String(validating: body, as: UTF8.self) != nil
        let text = isText ? redaction.body(body, contentType: bodyType(of: request)) : nil
        return BodySource(Data((text ?? redaction.placeholder).utf8))
    }

    /// The body as an argument, where it can be one. What begins with `@` would name a file.
    private static func argument(_ body: BodySource) -> String? {
        guard let bytes = body.bytes, bytes.first != UInt8(ascii: "@"), bytes.count <= longestArgument,
            let text = String(validating: bytes, as: UTF8.self), isPrintable(text)
        else { return nil }
        return text
    }

    /// The commands that write the body.
    private static func output(_ body: BodySource) -> String {
        let commands = body.pieces.map { piece in
            switch piece {
            case .bytes(let data): printf(data)
            case .file(let file): "cat \(quoted(file.path))"  // the path is absolute, so it is no option
            }
        }
        return commands.count == 1 ? commands.joined() : "{ \(commands.joined(separator: "; ")); }"
    }

    /// What the body is by the way it was made; a header field that says something else must not keep secrets from being seen.
    private static func bodyType(of request: Request) -> String? {
        if request.parametersBelongInBody { return request.parameterEncoding.contentType }
        return switch request.content {
        case .form: ContentType.formEncoded
        case .data(_, nil): request.parameterEncoding == .json ? ContentType.json : request.headers[.contentType]
        case .data(_, let type): type
        case .multipart(let form): form.contentType
        case .none, .provider, .invalid: request.parameterEncoding.contentType
        }
    }
}

// MARK: - The shell

extension CurlDescription {
    /// One argument (POSIX.1-2024, XCU section 2.2.2): between single quotes nothing but the quote itself has a meaning. What cannot be printed is
    /// written by `printf`, because a terminal acts on it before the shell does.
    static func quoted(_ text: String) -> String {
        guard isPrintable(text) else { return "\"$(\(printf(text.utf8)))\"" }
        let parts = text.utf8.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
        return "'\(parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: #"'\''"#))'"
    }

    /// The command that writes the bytes: `\ooo` is what every `printf` understands (POSIX.1-2024, XCU, printf). `!` is escaped as well, because
    /// older versions of bash look for it inside `"$(…)"`.
    private static func printf(_ bytes: some Sequence<UInt8>) -> String {
        var format: [UInt8] = []
        for byte in bytes {
            if (0x20...0x7E).contains(byte), !#"!%\'"#.utf8.contains(byte) {
                format.append(byte)
            } else {
                format += [UInt8(ascii: "\\")] + [byte >> 6, byte >> 3 & 7, byte & 7].map { UInt8(ascii: "0") + $0 }
            }
        }
        return "printf -- '\(String(decoding: format, as: UTF8.self))'"
    }

    private static func isPrintable(_ text: String) -> Bool {
        text.escapingControls.utf8.count == text.utf8.count
    }

    /// curl refuses blanks in a URL; there are none but those of a placeholder.
    private static func visible(_ url: String) -> String {
        var writer = ByteWriter(reserving: url.utf8.count)
        writer.encode(url, allowed: ByteSet(0x21...0x7E))
        return writer.text
    }
}
