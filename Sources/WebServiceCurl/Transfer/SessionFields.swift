import CCurl
import WebServiceCore

/// The header fields that a session adds to requests that do not have them, as values and as a list
/// for libcurl. A request without fields and without a body uses the list unchanged.
final class SessionFields {
    let values: [(name: Headers.Name, value: String)]
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// - Throws: `WebServiceError.Code.curl` if libcurl cannot allocate memory.
    init(_ configuration: CurlSession.Configuration) throws {
        let codings = ContentCodings.system
        let values: [(name: Headers.Name, value: String?)] = [
            (.userAgent, configuration.userAgent.flatMap { $0.isEmpty ? nil : $0 }),
            ("Accept-Encoding", codings.areLeftToLibrary ? nil : codings.names.joined(separator: ", ")),
            (.acceptLanguage, configuration.acceptLanguage),
        ]
        self.values = values.compactMap { field in field.value.map { (field.name, $0) } }
        for (name, value) in self.values { try Self.add(name.rawValue, value, to: &list) }
    }

    deinit { curl_slist_free_all(list) }

    /// Adds a field to a list.
    static func add(_ name: String, _ value: String, to list: inout UnsafeMutablePointer<curl_slist>?) throws {
        // A semicolon denotes an empty value.
        try add(line: value.isEmpty ? name + ";" : name + ": " + value, to: &list)
    }

    /// Adds a line to a list. libcurl copies the line.
    static func add(line: String, to list: inout UnsafeMutablePointer<curl_slist>?) throws {
        guard let longer = line.withCString({ curl_slist_append(list, $0) }) else {
            throw WebServiceError(.curl, "libcurl could not allocate memory for the header fields")
        }
        list = longer
    }
}
