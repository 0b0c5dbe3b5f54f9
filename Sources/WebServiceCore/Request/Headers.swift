import Foundation

/// HTTP header fields (RFC 9110, section 5): ordered, with repeated fields preserved.
///
/// ```swift
/// request.headers["custom-header-name"] = "foo"
/// request.headers[.accept] = "application/json"
/// request.headers.add("no-cache", for: .cacheControl)
/// ```
/// Names are compared without regard to ASCII case. Names and values are not validated here:
/// ``Request/urlRequest()`` checks each name and value and throws
/// ``WebServiceError/Code/invalidHeader`` if one is invalid.
public struct Headers: Sendable, Hashable {
    /// A header field: a name and a value.
    public struct Field: Sendable, Hashable {
        /// The name as given. Names that differ only in ASCII case identify the same field.
        public var name: String
        /// The value of the field, as it is sent.
        public var value: String

        /// Creates a field with a name and a value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// All fields, in the order in which they were added.
    public private(set) var fields: [Field]

    /// Creates a collection without fields.
    public init() {
        fields = []
    }

    /// Creates fields in the given order. Repeated names are preserved.
    public init(_ fields: some Sequence<(String, String)>) {
        self.fields = fields.map { Field(name: $0.0, value: $0.1) }
    }

    /// The values of a field, joined with `", "` (RFC 9110, section 5.3); `nil` if there are none.
    ///
    /// Setting a value replaces the first field with that name and removes the others. Setting
    /// `nil` removes all of them.
    public subscript(name: String) -> String? {
        get {
            Self.joined(fields.filter { $0.name.equalsIgnoringASCIICase(name) }.map(\.value))
        }
        set {
            let place = fields.firstIndex { $0.name.equalsIgnoringASCIICase(name) }
            guard let newValue else {
                fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
                return
            }
            guard let place else {
                fields.append(Field(name: name, value: newValue))
                return
            }
            fields[place] = Field(name: name, value: newValue)
            var index = 0
            fields.removeAll { field in
                defer { index += 1 }
                return index > place && field.name.equalsIgnoringASCIICase(name)
            }
        }
    }

    /// The values of a field, joined with `", "`; see ``subscript(_:)-(String)``.
    public subscript(name: Name) -> String? {
        get { self[name.rawValue] }
        set { self[name.rawValue] = newValue }
    }

    /// Appends a field, even if there already is a field with the same name.
    public mutating func add(_ value: String, for name: Name) {
        fields.append(Field(name: name.rawValue, value: value))
    }

    /// Returns these fields, followed by the fields of `others` that have other names.
    package func adding(_ others: Headers) -> Headers {
        guard !isEmpty else { return others }
        let names = Set(fields.lazy.map { Name($0.name) })
        var all = self
        all.fields += others.fields.filter { !names.contains(Name($0.name)) }
        return all
    }

    /// Returns the fields that satisfy a condition.
    package func filtered(_ isIncluded: (Field) -> Bool) -> Headers {
        var filtered = self
        filtered.fields.removeAll { !isIncluded($0) }
        return filtered
    }

    /// Returns all values of a field, in order and not joined.
    public func values(for name: Name) -> [String] {
        fields.filter { $0.name.equalsIgnoringASCIICase(name.rawValue) }.map(\.value)
    }

    /// Returns the values of a repeated field as one value (RFC 9110, section 5.3); `nil` if there
    /// are none.
    static func joined(_ values: [String]) -> String? {
        values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the fields with one value per name, as Foundation requires.
    ///
    /// Each name is spelled as in its first field. Repeated fields are joined with a comma (RFC
    /// 9110, section 5.3), and `Cookie` fields with a semicolon (RFC 6265, section 5.4).
    package func combined() -> [String: String] {
        var names = Set<Name>(minimumCapacity: fields.count)
        var combined = [String: String](minimumCapacity: fields.count)
        for field in fields {
            let (isFirst, name) = names.insert(Name(field.name))
            if isFirst {
                combined[field.name] = field.value
            } else {
                combined[name.rawValue, default: ""] += (name == .cookie ? "; " : ", ") + field.value
            }
        }
        return combined
    }

    /// Whether there are no fields.
    public var isEmpty: Bool { fields.isEmpty }
}

extension Headers: ExpressibleByDictionaryLiteral {
    /// Creates fields from a literal. Order and repeated names are preserved.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements)
    }
}

extension Headers: Sequence {
    /// Returns an iterator over the fields, in order.
    public func makeIterator() -> IndexingIterator<[Field]> {
        fields.makeIterator()
    }
}

extension Headers {
    /// The name of a header field.
    ///
    /// Common names are constants. Any other name is written as a literal or as `Name("X-Thing")`.
    public struct Name: Sendable, Hashable, RawRepresentable, ExpressibleByStringLiteral {
        /// The name as it is sent.
        public let rawValue: String

        /// Creates a name. It is validated when the request is encoded.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Creates a name. It is validated when the request is encoded.
        public init(_ name: String) {
            rawValue = name
        }

        /// Creates a name from a literal. It is validated when the request is encoded.
        public init(stringLiteral value: String) {
            rawValue = value
        }

        /// The header field `Accept`.
        public static let accept = Name("Accept")
        /// The header field `Accept-Language`.
        public static let acceptLanguage = Name("Accept-Language")
        /// The header field `Authorization`.
        public static let authorization = Name("Authorization")
        /// The header field `Cache-Control`.
        public static let cacheControl = Name("Cache-Control")
        /// The header field `Content-Length`, which only the transport may set on a request.
        public static let contentLength = Name("Content-Length")
        /// The header field `Content-Type`.
        public static let contentType = Name("Content-Type")
        /// The header field `Cookie`.
        public static let cookie = Name("Cookie")
        /// The header field `ETag`.
        public static let eTag = Name("ETag")
        /// The header field `If-None-Match`.
        public static let ifNoneMatch = Name("If-None-Match")
        /// The header field `Location`.
        public static let location = Name("Location")
        /// The header field `Retry-After`.
        public static let retryAfter = Name("Retry-After")
        /// The header field `Set-Cookie`.
        public static let setCookie = Name("Set-Cookie")
        /// The header field `User-Agent`.
        public static let userAgent = Name("User-Agent")
    }
}

extension Headers.Name {
    /// Returns whether two names are equal without regard to ASCII case.
    public static func == (first: Headers.Name, second: Headers.Name) -> Bool {
        first.rawValue.equalsIgnoringASCIICase(second.rawValue)
    }

    /// Hashes the name without regard to ASCII case.
    public func hash(into hasher: inout Hasher) {
        for byte in rawValue.utf8 { hasher.combine(ASCII.lowercased(byte)) }
        hasher.combine(UInt8.max)  // separates the name from what is hashed next
    }
}

extension Headers: RedactedReflectable {
    /// A description that is safe to log: the fields, without values that may be or contain a
    /// secret.
    public var description: String {
        fields.map { "\($0.name): \(Secrets.shown($0.value, of: $0.name))".escapingControls }.joined(separator: ", ")
    }
}

extension Headers {
    /// Creates fields from a dictionary, sorted by name.
    public init(_ dictionary: [String: String]) {
        self.init(dictionary.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// The number of fields. A repeated field counts each time.
    public var count: Int { fields.count }

    /// Removes all fields with the given name.
    ///
    /// - Returns: The values of the removed fields, in order.
    @discardableResult
    public mutating func remove(_ name: Name) -> [String] {
        let values = values(for: name)
        self[name] = nil
        return values
    }
}

extension Headers {
    /// The header fields that describe the program: `User-Agent`, and `Accept-Language` if the
    /// user's languages are known.
    ///
    /// ```
    /// User-Agent: BrewApp/2.1 (com.example.brew; build 7; iOS 26.1) WebService
    /// Accept-Language: de-DE, en-GB;q=0.9
    /// ```
    /// ``FoundationSession/defaultConfiguration`` and `CurlSession` add each of these fields to
    /// every request that does not set the field itself. The name, version, identifier and build
    /// are those of the main bundle. If the bundle does not specify them, the name is that of the
    /// process, and the other three are omitted. Each character that is not allowed in the field is
    /// sent as `-`. `Accept-Language` contains at most six languages.
    ///
    /// The values are computed once per process.
    public static let program = Headers(
        info: Bundle.main.infoDictionary ?? [:], process: ProcessInfo.processInfo.processName,
        system: ProcessInfo.processInfo.operatingSystemVersion, languages: Locale.preferredLanguages)

    init(info: [String: Any], process: String, system: OperatingSystemVersion, languages: [String]) {
        func value(_ key: String, _ isAllowed: (UInt8) -> Bool) -> String? {
            (info[key] as? String).flatMap { Self.part($0, isAllowed) }
        }
        var agent: [String] = []
        if let name = value("CFBundleExecutable", ASCII.isToken) ?? Self.part(process, ASCII.isToken) {
            agent = [value("CFBundleShortVersionString", ASCII.isToken).map { "\(name)/\($0)" } ?? name]
        }
        let comments = [
            value("CFBundleIdentifier", Self.isComment), value("CFBundleVersion", Self.isComment).map { "build \($0)" },
            "\(Self.system) \(system.majorVersion).\(system.minorVersion)",
        ]
        agent += ["(\(comments.compactMap(\.self).joined(separator: "; ")))", "WebService"]
        self.init([("User-Agent", agent.joined(separator: " "))])
        let accepted = languages.lazy.filter(Self.isLanguage).prefix(6).enumerated()
            .map { index, language in index == 0 ? language : "\(language);q=0.\(10 - index)" }
        if !accepted.isEmpty { add(accepted.joined(separator: ", "), for: .acceptLanguage) }
    }

    #if os(macOS)
    private static let system = "macOS"
    #elseif os(iOS)
    private static let system = "iOS"
    #elseif os(tvOS)
    private static let system = "tvOS"
    #elseif os(watchOS)
    private static let system = "watchOS"
    #elseif os(visionOS)
    private static let system = "visionOS"
    #else
    private static let system = "Linux"
    #endif

    /// Returns at most 64 characters, with `-` in place of those that are not allowed; `nil` if
    /// none of them is allowed.
    private static func part(_ text: String, _ isAllowed: (UInt8) -> Bool) -> String? {
        let bytes = text.unicodeScalars.prefix(64).map { scalar in
            UInt8(exactly: scalar.value).flatMap { isAllowed($0) ? $0 : nil } ?? UInt8(ascii: "-")
        }
        return bytes.allSatisfy { $0 == UInt8(ascii: "-") } ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Returns whether a byte can be in a part of a comment (RFC 9110, section 5.6.5).
    private static func isComment(_ byte: UInt8) -> Bool {
        (0x20..<0x7F).contains(byte) && !"();\\".utf8.contains(byte)
    }

    /// Returns whether a string is a language tag (RFC 5646), such as `en-GB`.
    private static func isLanguage(_ tag: String) -> Bool {
        let subtags = tag.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return tag.utf8.count <= 64 && (2...3).contains(subtags.first?.count ?? 0)
            && subtags.allSatisfy { (1...8).contains($0.count) && $0.allSatisfy(ASCII.isAlphanumeric) }
            && subtags.first?.allSatisfy(ASCII.isAlpha) == true
    }
}
