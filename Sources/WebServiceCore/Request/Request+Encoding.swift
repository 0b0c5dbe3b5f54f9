public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension Request: URLRequestEncodable {
    /// The request as a `URLRequest`.
    ///
    /// If ``urlRequest()`` throws, this is a request for an unsupported URL, which no session
    /// sends.
    public var urlRequestValue: URLRequest {
        (try? urlRequest()) ?? EncodedRequest.unsendable  // `urlRequest()` reports the error
    }

    /// Returns the encoded request as a `URLRequest`.
    ///
    /// The result omits the body of a provider, because providers run only when a task is resumed.
    ///
    /// - Throws: ``WebServiceError`` with ``WebServiceError/Code/invalidURL``,
    ///   ``WebServiceError/Code/invalidMethod``, ``WebServiceError/Code/invalidHeader`` or
    ///   ``WebServiceError/Code/encoding``. Its message contains no value that may be secret.
    public func urlRequest() throws -> URLRequest {
        try encode().urlRequestValue
    }

    /// Returns the request's URL with ``queryParameters`` and `parameters` added to its query.
    ///
    /// The ``queryParameterEncoder`` adds them; if there is none, they are written as
    /// `name=value&…`.
    ///
    /// - Throws: ``WebServiceError/Code/invalidURL`` or ``WebServiceError/Code/encoding``.
    public func encodeURL(adding parameters: Parameters) throws -> URL {
        guard let url = URL(string: try encodeURL(queryParameters.map { $0 + parameters } ?? parameters)) else {
            throw WebServiceError(.invalidURL, "the URL is malformed; correct its path and query")
        }
        return url
    }

    /// Returns `parameters` encoded as a body: JSON if ``parameterEncoding`` is `json`, otherwise a
    /// form.
    ///
    /// - Throws: ``WebServiceError/Code/encoding``.
    public func encodeBody(_ parameters: Parameters) throws -> Data {
        switch parameterEncoding {
        case .percent, .query: try encodeForm(parameters)
        case .json: try parameters.jsonData()
        }
    }

    /// Checks and encodes the request. This is the only code that does so.
    ///
    /// A body provider is not called; ``providingBody()`` calls it beforehand.
    package consuming func encode() throws(WebServiceError) -> EncodedRequest {
        do throws(WebServiceError) {
            guard ASCII.isToken(method.rawValue.utf8) else {
                throw WebServiceError(
                    .invalidMethod, "the method must be a token of letters, digits and !#$%&'*+-.^_`|~")
            }
            guard options.hasPositiveDurations else {
                throw WebServiceError(
                    .encoding,
                    "timeout, attemptTimeout, connectTimeout, expectsContinue and deadline must be greater than zero")
            }
            let url = try encodeURL(urlParameters)
            let isCompressed = options.compressesBody && headers["Content-Encoding"] == nil
            let content = try encodeContent()
            let (data, source, stream) = isCompressed ? try Self.compress(content) : content
            let hasSource = source != nil || stream != nil
            if method.forbidsBody, data?.isEmpty == false || hasSource || template?.httpBodyStream != nil {
                throw WebServiceError(.encoding, "a \(method) request cannot have a body; remove the body or use POST")
            }
            var headers = try signing(try checkedHeaders(), url: url)
            if isCompressed, stream != nil || data?.isEmpty == false { headers.add("gzip", for: "Content-Encoding") }
            let isTyped = data == nil && !hasSource || !headers.isEmpty && headers[.contentType] != nil
            let type = isTyped ? nil : contentType
            return EncodedRequest(
                self, url: url, headers: headers, body: data, bodySource: source, stream: stream, contentType: type)
        } catch {
            var error = error
            error.request = self
            throw error
        }
    }

    private var urlParameters: Parameters? {
        guard let parameters, encodesParametersInURL else { return queryParameters }
        return queryParameters.map { $0 + parameters } ?? parameters
    }

    /// Returns the URL with its query, which consists of the unchanged query of the URL and then
    /// the parameters in order. Without a ``queryParameterEncoder``, names and values are
    /// percent-encoded except for the unreserved characters of RFC 3986; a space is `%20`.
    private func encodeURL(_ parameters: Parameters?) throws(WebServiceError) -> String {
        if parameters == nil, let text = location.plainText { return text }
        var writer = ByteWriter(reserving: 128 + 48 * (parameters?.count ?? 0))
        let hasQuery = try location.write(into: &writer)
        guard let parameters, !parameters.isEmpty else { return writer.text }
        if let queryParameterEncoder {
            guard let url = queryParameterEncoder(URL(string: writer.text), parameters) else {
                throw WebServiceError(.encoding, "the queryParameterEncoder returned nil; return a URL")
            }
            writer = ByteWriter(reserving: 128)
            _ = try Location.absolute(url.absoluteString).write(into: &writer)
            return writer.text
        }
        return try write(
            parameters, behind: writer, separator: UInt8(ascii: hasQuery ? "&" : "?"), allowed: .unreserved
        ).text
    }

    private func write(
        _ parameters: Parameters, behind writer: consuming ByteWriter, separator: UInt8?, allowed: ByteSet
    ) throws(WebServiceError) -> ByteWriter {
        var pairs = ParameterStrategy.Pairs(writer: writer, allowed: allowed, separator: separator)
        try parameterStrategy.write(parameters, into: &pairs)
        return pairs.writer
    }

    private typealias EncodedContent = (Data?, BodySource?, StreamedBody?)

    /// Returns the body as bytes, as a source that is read while it is sent, or as a stream.
    private func encodeContent() throws(WebServiceError) -> EncodedContent {
        if parametersBelongInBody, let parameters {
            guard template?.httpBodyStream == nil else {
                throw WebServiceError(
                    .encoding,
                    "the request has both an httpBodyStream and parameters that belong in the body; set "
                        + "parameterEncoding to .query")
            }
            return (parameterEncoding == .json ? try parameters.jsonData() : try encodeForm(parameters), nil, nil)
        }
        switch content.content {
        case .none, .provider: return (nil, nil, nil)
        case .data(let data, _): return (data, nil, nil)
        case .form(let parameters): return (try encodeForm(parameters), nil, nil)
        case .multipart(let form):
            let (source, stream) = try encode(form)
            return source?.bytes.map { ($0, nil, nil) } ?? (nil, source, stream)
        case .file(let url, _):
            let source = try BodySource(file: url)
            return source.count == 0 ? (Data(), nil, nil) : (nil, source, nil)
        case .stream(let stream, _): return stream.length == 0 ? (Data(), nil, nil) : (nil, nil, stream)
        case .invalid(let error): throw error
        }
    }

    private static func compress(_ content: EncodedContent) throws(WebServiceError) -> EncodedContent {
        let (data, source, stream) = content
        if let source { return (nil, nil, StreamedBody(compressing: source)) }
        guard let data, !data.isEmpty else { return (data, nil, stream?.compressed()) }
        return (try GzipEncoder().finish(with: data), nil, nil)
    }

    private func encode(_ form: MultipartFormData) throws(WebServiceError) -> (BodySource?, StreamedBody?) {
        if let given = headers[.contentType], !given.contains(form.boundary) {
            throw WebServiceError(
                .encoding,
                "the header field 'Content-Type' does not contain the boundary of the multipart body; remove the field")
        }
        return try form.encoded()
    }

    private func encodeForm(_ parameters: Parameters) throws(WebServiceError) -> Data {
        let writer = ByteWriter(reserving: 48 * parameters.count)
        return try write(parameters, behind: writer, separator: nil, allowed: formBytes).data
    }

    private var formBytes: ByteSet {
        guard let formParametersAllowedCharacters else { return .form }
        let reserved = Array("&=+%".utf8)
        let allowed = (UInt8(0)..<128).filter {
            formParametersAllowedCharacters.contains(Unicode.Scalar($0)) && !reserved.contains($0)
        }
        return ByteSet(allowed, spaceAsPlus: true)
    }
}

// MARK: - Header fields

extension Request {
    /// The maximum length of a header field value, in bytes.
    ///
    /// Longer values are rejected, because transports fail on them without reporting a reason.
    public static let maximumHeaderValueLength = 65_536

    /// Returns whether a header field can contain a value without changing it.
    static func isUnchangedFieldValue(_ value: String) -> Bool {
        let bytes = value.utf8
        return bytes.count <= maximumHeaderValueLength && ASCII.isFieldValue(bytes)
            && ASCII.trimmed(bytes).count == bytes.count
    }

    private func checkedHeaders() throws(WebServiceError) -> Headers {
        var needsTrimming = false
        for field in headers {
            guard ASCII.isToken(field.name.utf8) else {
                throw WebServiceError(
                    .invalidHeader,
                    "the header field name '\(Self.printable(field.name))' must be a token of letters, digits and "
                        + "!#$%&'*+-.^_`|~")
            }
            if Self.isFraming(field.name) {
                throw WebServiceError(
                    .invalidHeader, "the header field '\(field.name)' is reserved for the transport; remove it")
            }
            try Self.check(field.value, of: field.name)
            needsTrimming = needsTrimming || ASCII.trimmed(field.value.utf8).count < field.value.utf8.count
        }
        if !parametersBelongInBody, let contentType = content.givenContentType {
            try Self.check(contentType, of: "Content-Type")
        }
        guard needsTrimming else { return headers }
        return Headers(headers.map { ($0.name, String(Substring(ASCII.trimmed($0.value.utf8)))) })
    }

    private static func check(_ value: String, of name: String) throws(WebServiceError) {
        guard value.utf8.count <= maximumHeaderValueLength else {
            throw WebServiceError(
                .invalidHeader,
                "the value of the header field '\(name)' is longer than \(maximumHeaderValueLength) bytes; shorten it")
        }
        guard ASCII.isFieldValue(value.utf8) else {
            throw WebServiceError(
                .invalidHeader,
                "the value of the header field '\(name)' contains a line break or another control character; remove it")
        }
    }

    /// Returns whether a field frames or routes the request.
    ///
    /// A caller that could set such a field could make a server parse one request as two.
    private static func isFraming(_ name: String) -> Bool {
        switch name.utf8.count {
        case 2: name.equalsIgnoringASCIICase("TE")
        case 4: name.equalsIgnoringASCIICase("Host")
        case 6: name.equalsIgnoringASCIICase("Expect")
        case 7: name.equalsIgnoringASCIICase("Upgrade") || name.equalsIgnoringASCIICase("Trailer") || isProxy(name)
        case 10:
            name.equalsIgnoringASCIICase("Connection") || name.equalsIgnoringASCIICase("Keep-Alive") || isProxy(name)
        case 14: name.equalsIgnoringASCIICase("Content-Length") || isProxy(name)
        case 17: name.equalsIgnoringASCIICase("Transfer-Encoding") || isProxy(name)
        default: isProxy(name)
        }
    }

    private static func isProxy(_ name: String) -> Bool {
        name.utf8.count > 6 && name.prefix(6).equalsIgnoringASCIICase("Proxy-")
    }

    private static func printable(_ name: String) -> String {
        String(decoding: name.utf8.prefix(80).map { ASCII.isToken($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

// MARK: - JSON

extension Parameters {
    /// Returns the parameters as a JSON object.
    ///
    /// Repeated names have no meaning in an object and are rejected.
    func jsonData() throws(WebServiceError) -> Data {
        try Request.jsonData(try jsonObject(depth: 0))
    }

    private func jsonObject(depth: Int) throws(WebServiceError) -> [String: Any] {
        var object: [String: Any] = [:]
        for (name, value) in self {
            guard object.updateValue(try value.jsonValue(name: name, depth: depth), forKey: name) == nil else {
                throw WebServiceError(
                    .encoding,
                    "the parameter '\(name.cut(to: 80).escapingControls)' occurs twice in a JSON object; remove one")
            }
        }
        return object
    }

    fileprivate func nested(depth: Int) throws(WebServiceError) -> [String: Any] {
        try jsonObject(depth: depth)
    }
}

extension ParameterValue {
    fileprivate func jsonValue(name: String, depth: Int) throws(WebServiceError) -> Any {
        guard depth < ParameterStrategy.maximumDepth else {
            let name = name.cut(to: 80).escapingControls
            throw WebServiceError(
                .encoding,
                "the parameter '\(name)' is nested deeper than \(ParameterStrategy.maximumDepth) levels; flatten it")
        }
        switch self {
        case .null: return NSNull()
        case .bool(let value): return value
        case .integer(let value): return value
        case .unsigned(let value): return value
        case .double(let value) where value.isFinite: return value
        case .string(let value): return value
        case .object(let values): return try values.nested(depth: depth + 1)
        case .array(let values):
            var array: [Any] = []
            for value in values { array.append(try value.jsonValue(name: name, depth: depth + 1)) }
            return array
        case .date, .double, .unsupported: return try ParameterStrategy().text(of: self, name: name)
        }
    }
}

extension Request.Body {
    /// The length of the body in bytes.
    ///
    /// The value is `nil` for a form or a body from a provider, whose length depends on the
    /// request; for a stream without a length, including one that is a part; and for a body that
    /// cannot be encoded, such as a file that cannot be read. For files, this property reads their
    /// status.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .data(let data, _): Int64(data.count)
        case .multipart(let form):
            (try? form.encoded()).flatMap { $0.stream?.length ?? $0.source.map { Int64($0.count) } }  // encoding fails
        case .file(let url, _): (try? BodySource(file: url)).map { Int64($0.count) }  // encoding reports the error
        case .stream(let stream, _): stream.length
        case .form, .provider, .invalid: nil
        }
    }
}
