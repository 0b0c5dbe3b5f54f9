import Foundation
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

/// A request in the form in which it is compared with those of a cassette, without secrets.
struct CassetteRequest {
    /// The compared parts of a request, except the body. Parts that are not compared are empty.
    struct Target: Hashable {
        var method = ""
        /// The URL without its query, or only the path.
        var address = ""
        /// The items of the query.
        var items: [String] = []
        /// The header fields, each as `name: value`.
        var fields: [String] = []
        /// The protocol of a handshake; `nil` for HTTP. It is always compared.
        var upgrade: String?
    }

    private(set) var target = Target()
    /// The request without secrets, for custom criteria.
    let request: ReceivedRequest
    /// The method and the URL without its query.
    let summary: String
    private let json: JSONValue?
    private let body: Data
    private var comparesBody = false

    /// - Parameters:
    ///   - message: The request. Its secrets may already be redacted.
    ///   - redaction: The rules for secrets. Its placeholder replaces all of them.
    ///   - values: Further values that are secret.
    ///   - criteria: The parts of a request that are compared.
    init(
        _ message: Cassette.Message, _ redaction: Redaction, values: [String],
        criteria: [CassetteSession.Criterion] = [.method, .url, .query, .body]
    ) {
        let plain = { (text: String) in Self.withoutNumbers(text, redaction.placeholder, values) }
        let url = plain(redaction.url(message.url ?? ""))
        let address = String(url.prefix { $0 != "?" })
        let contentType = message.fields[.contentType]
        var body = message.body
        let coding = message.fields["Content-Encoding"]
        if case .text(let text) = redaction.search(body, contentType: contentType, contentEncoding: coding) {
            body = text
        }
        if let boundary = contentType.flatMap(Self.boundary) { body = body.replacing(Data(boundary.utf8), with: "-") }
        if let text = String(validating: body, as: UTF8.self) { body = Data(plain(text).utf8) }
        self.body = body
        let (origin, path) = url.originAndTarget
        let fields = Headers(message.fields.map { ($0.name, plain(redaction.value(ofHeader: $0.name, $0.value))) })
        let method = Request.Method(rawValue: message.method ?? "")
        summary = "\(method.rawValue) \(Excerpt.text(address))"
        request = ReceivedRequest(
            head: RequestHead(method: method, target: path, headers: fields), body: body, origin: origin)
        target.upgrade = message.upgrade
        for criterion in criteria {
            switch criterion {
            case .method: target.method = method.rawValue
            case .url: target.address = address
            case .path: if target.address.isEmpty { target.address = request.path }
            case .query: target.items = request.queryItems.map { "\($0.name)=\($0.value)" }
            case .body: comparesBody = true
            case .header(let name): target.fields += fields.values(for: name).map { "\(name.rawValue): \($0)" }
            case .custom: break
            }
        }
        json = try? JSON.decode(JSONValue.self, from: body)  // a body that is not JSON is compared as bytes
    }

    /// Returns whether the bodies are equal or are not compared.
    func hasBody(of received: CassetteRequest) -> Bool { bodyDifference(from: received) == nil }

    /// Returns one line for each part that differs from that of a received request.
    func differences(from received: CassetteRequest) -> [String] {
        var lines: [String] = []
        let (method, address, items) = (target.method, target.address, target.items)
        let other = received.target
        if target.upgrade != other.upgrade {
            lines.append("upgrade: expected \(target.upgrade ?? "none"), received \(other.upgrade ?? "none")")
        }
        if method != other.method { lines.append("method: expected \(method), received \(other.method)") }
        if address != other.address {
            lines.append("URL: expected \(Excerpt.text(address)), received \(Excerpt.text(other.address))")
        }
        if let place = (0..<max(items.count, other.items.count)).first(where: {
            Self.item($0, items) != Self.item($0, other.items)
        }) {
            lines.append(
                "query: expected \(Excerpt.text(Self.item(place, items))), "
                    + "received \(Excerpt.text(Self.item(place, other.items)))")
        }
        if target.fields != other.fields {
            lines.append(
                "header fields: expected \(Excerpt.text(target.fields.joined(separator: ", "))), "
                    + "received \(Excerpt.text(other.fields.joined(separator: ", ")))")
        }
        if let difference = bodyDifference(from: received) { lines.append(difference) }
        return lines
    }

    private static func item(_ place: Int, _ items: [String]) -> String {
        items.indices.contains(place) ? items[place] : "no further item"
    }

    private func bodyDifference(from received: CassetteRequest) -> String? {
        guard comparesBody, body != received.body else { return nil }
        guard let json, let other = received.json else {
            return "body: expected \(Excerpt.body(body)), received \(Excerpt.body(received.body))"
        }
        if let difference = JSONDifference.first(json, other) {
            return "\(Self.place(difference)): expected \(difference.expected), received \(difference.received)"
        }
        // The comparison in the other direction finds additional names.
        return JSONDifference.first(other, json).map {
            "\(Self.place($0)): expected \($0.received), received \($0.expected)"
        }
    }

    private static func place(_ difference: JSONDifference) -> String {
        difference.path.isEmpty ? "JSON body" : "JSON body at \(difference.path)"
    }

    static func boundary(_ contentType: String) -> String? {
        guard MediaType.matches(contentType, pattern: "multipart/*") else { return nil }
        let boundary = MediaType.parameter("boundary", of: contentType, quotes: ["\""])
        return boundary?.isEmpty == true ? nil : boundary
    }

    /// Replaces numbered placeholders and secret values with the placeholder.
    private static func withoutNumbers(_ text: String, _ placeholder: String, _ values: [String]) -> String {
        var text = values.reduce(text) { $1.isEmpty ? $0 : $0.replacingOccurrences(of: $1, with: placeholder) }
        guard text.contains(CassetteRedactor.prefix) else { return text }
        text.replace(#/redacted-[0-9]+/#, with: placeholder)
        return text
    }
}

extension Data {
    /// Returns the bytes with each occurrence of a sequence replaced.
    fileprivate func replacing(_ bytes: Data, with replacement: String) -> Data {
        var result = Data()
        var rest = self[...]
        while let range = rest.firstRange(of: bytes) {
            result += rest[..<range.lowerBound] + Data(replacement.utf8)
            rest = rest[range.upperBound...]
        }
        return result + rest
    }
}
