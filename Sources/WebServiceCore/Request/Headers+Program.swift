import Foundation

extension Headers {
    /// The header fields that describe the program: `User-Agent`, and `Accept-Language` if the
    /// user's languages are known.
    ///
    /// ```
    /// User-Agent: BrewApp/2.1 (com.example.brew; build 7; iOS 26.1) WebService
    /// Accept-Language: de-DE, en-GB;q=0.9
    /// ```
    /// ``FoundationSession/defaultConfiguration`` and `CurlSession` add each of these fields to
    /// every request that does not set the field itself. Name, version, identifier and build are
    /// those of the main bundle; without one, the name is that of the process, and the other parts
    /// are omitted. Each character that the field does not allow is sent as `-`. There are at most
    /// six languages.
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
