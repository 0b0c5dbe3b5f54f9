import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Request {
    /// Returns a curl command line that sends this request, for a terminal, a bug report or a log.
    ///
    /// The command requires curl 7.88 or newer.
    ///
    /// ```
    /// curl --disable --globoff --path-as-is --request 'POST' --header 'Authorization: [redacted]'
    ///     --header 'Content-Type: application/json' --data-binary '{"name":"Trashboat"}'
    ///     --url 'https://brewhapi.example.com/brewers'
    /// ```
    /// - The command is one line of printable characters for any POSIX shell (XCU, section 2).
    ///   Regardless of the request's content, it runs only `curl`, `printf` and, for the files of
    ///   the body, `cat`.
    /// - The method, the URL, the body and the header fields (sorted by name, repeated fields
    ///   joined) are exactly those of `urlRequest()`. Other fields, such as `User-Agent`, are those
    ///   of curl. The command sends one request: it does not follow redirects, and reads no files
    ///   except those of the body, not even `.curlrc`.
    /// - If a body is long, begins with `@` or contains unprintable characters, `printf` writes it
    ///   to a pipe.
    /// - A body from a provider or a stream is not known before the request is sent, so it is
    ///   replaced by `[body created when sent]`. Providers are not called.
    /// - A body that is compressed when it is sent is shown uncompressed.
    /// - If the request cannot be encoded, the result is a comment, `# '…'`, that contains the code
    ///   and the message of the error that `urlRequest()` throws.
    ///
    /// - Parameter redaction: The rules for the values that are replaced by placeholders. A body
    ///   that cannot be inspected, such as bytes that are not UTF-8 or the parts of a `multipart`
    ///   body, is replaced as a whole. If `nil`, all values are shown, including passwords.
    ///   Defaults to ``Redaction/standard``.
    public func curlDescription(redaction: Redaction? = .standard) -> String {
        do throws(WebServiceError) {
            var request = self
            request.options.compressesBody = false
            if hasBodyProvider, case .provider(let contentType, _) = content.content {
                request.content = .data(CurlDescription.unknownBody, contentType: contentType)
            }
            return CurlDescription.command(for: try request.encode(), self, redaction)
        } catch {
            // The text is quoted, because some shells do not recognize comments in interactive
            // mode.
            let text = "\(error.code): \(error.message)"
            return "# \(CurlDescription.quoted((redaction?.text(text) ?? text).escapingControls))"
        }
    }
}

/// Formats an encoded request for a shell.
private enum CurlDescription {
    /// The placeholder for a body that is not known yet.
    static let unknownBody = Data("[body created when sent]".utf8)

    /// The maximum length of a body that is passed as an argument. A longer body is piped, because
    /// Linux limits an argument to 128 KiB.
    private static let longestArgument = 65_536

    static func command(for encoded: EncodedRequest, _ request: Request, _ redaction: Redaction?) -> String {
        // `--disable` must be the first option. Otherwise, a `.curlrc` could add arbitrary options.
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
            // Removes the header fields that curl would add automatically: `Content-Type`, and
            // `Expect` for bodies of more than 1 MiB (1 KiB in older versions).
            if !headers.contains(where: { $0.key.equalsIgnoringASCIICase("Content-Type") }) {
                add("header", "Content-Type:")
            }
            if body.count > 1024 { add("header", "Expect:") }
            if let text = argument(body) {
                add("data-binary", text)
            } else {
                pipe = "\(output(body)) | "
                add("data-binary", "@-")
            }
        } else if hasEmptyBody(encoded) {
            add("header", "Content-Length: 0")
        }
        add("url", visible(redaction?.url(encoded.url) ?? encoded.url))
        return pipe + command
    }

    /// Returns whether the length of an empty body is sent. Methods that define a meaning for
    /// content require it (RFC 9110, section 8.6).
    private static func hasEmptyBody(_ encoded: EncodedRequest) -> Bool {
        switch encoded.method {
        case .POST, .PUT, .PATCH: true
        default: !encoded.method.forbidsBody && encoded.body != nil
        }
    }

    /// Returns the body to show, or `nil` if it is empty.
    private static func body(of encoded: EncodedRequest, _ request: Request, _ redaction: Redaction?) -> BodySource? {
        if request.template?.httpBodyStream != nil || encoded.stream != nil { return BodySource(unknownBody) }
        if let source = encoded.bodySource { return redaction.map { BodySource(Data($0.placeholder.utf8)) } ?? source }
        guard let body = encoded.body, !body.isEmpty else { return nil }
        if request.hasBodyProvider { return BodySource(body) }
        guard let redaction else { return BodySource(body) }
        // The whole body must be UTF-8, because a redaction accepts an incomplete character at the
        // end. The content of a multipart form is omitted, as in descriptions of the form.
        let isMultipart = bodyType(of: request).map { MediaType.matches($0, pattern: "multipart/*") } ?? false
        let isText = !isMultipart && String(validating: body, as: UTF8.self) != nil
        let text = isText ? redaction.body(body, contentType: bodyType(of: request)) : nil
        return BodySource(Data((text ?? redaction.placeholder).utf8))
    }

    /// Returns the body as an argument, or `nil` if it cannot be one. For example, curl expects a
    /// file name after `@`.
    private static func argument(_ body: BodySource) -> String? {
        guard let bytes = body.bytes, bytes.first != UInt8(ascii: "@"), bytes.count <= longestArgument,
            let text = String(validating: bytes, as: UTF8.self), isPrintable(text)
        else { return nil }
        return text
    }

    /// Returns the commands that write the body.
    private static func output(_ body: BodySource) -> String {
        let commands = body.pieces.map { piece in
            switch piece {
            case .bytes(let data): printf(data)
            case .file(let file): "cat \(quoted(file.path))"  // an absolute path cannot be parsed as an option
            }
        }
        return commands.count == 1 ? commands.joined() : "{ \(commands.joined(separator: "; ")); }"
    }

    /// Returns the media type of the body, which depends on how the body was created. A header
    /// field with a different type must not disable redaction.
    private static func bodyType(of request: Request) -> String? {
        if request.parametersBelongInBody { return request.parameterEncoding.contentType }
        return switch request.content.content {
        case .form: ContentType.formEncoded
        case .data(_, nil): request.parameterEncoding == .json ? ContentType.json : request.headers[.contentType]
        case .data(_, let type): type
        case .multipart(let form): form.contentType
        case .none, .file, .stream, .provider, .invalid: request.parameterEncoding.contentType
        }
    }
}

// MARK: - Shell quoting

extension CurlDescription {
    /// Returns text as one shell argument (POSIX.1-2024, XCU section 2.2.2). Within single quotes,
    /// only the quote itself is special. Unprintable characters are written by `printf`, because a
    /// terminal would interpret them before the shell does.
    static func quoted(_ text: String) -> String {
        guard isPrintable(text) else { return "\"$(\(printf(text.utf8)))\"" }
        let parts = text.utf8.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
        return "'\(parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: #"'\''"#))'"
    }

    /// Returns the command that writes the bytes. Every `printf` supports `\ooo` (POSIX.1-2024,
    /// XCU, printf). `!` is also escaped, because older versions of bash expand it inside `"$(…)"`.
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

    /// Percent-encodes spaces, which curl rejects in a URL. Only a placeholder can contain spaces.
    private static func visible(_ url: String) -> String {
        url.addingPercentEncoding(withAllowedCharacters: CharacterSet(charactersIn: "!"..."~")) ?? url
    }
}
