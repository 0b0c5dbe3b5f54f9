public import WebServiceCore

/// A media type, or a range of media types, that a resource accepts (RFC 9110, section 12.5.1).
public struct MediaRange: Hashable, Sendable {
    /// The type in lower case, such as `application`; `*` for any type.
    public let type: String
    /// The subtype in lower case, such as `json`; `*` for any subtype.
    public let subtype: String
    /// The parameters. Their names are in lower case.
    public let parameters: [String: String]

    /// Returns whether the range includes a media type, such as the value of a `Content-Type`
    /// field.
    ///
    /// Case is ignored in types, in the names of parameters, and in the value of `charset`. The
    /// media type must have all parameters of the range, and may have further ones.
    public func includes(_ mediaType: String) -> Bool {
        let essence = MediaType.essence(mediaType)
        guard type == "*" || (subtype == "*" ? essence.hasPrefix("\(type)/") : essence == "\(type)/\(subtype)") else {
            return false
        }
        return parameters.allSatisfy { name, value in
            guard let given = MediaType.parameter(name, of: mediaType, quotes: []) else { return false }
            return name == "charset" ? given.asciiLowercased() == value.asciiLowercased() : given == value
        }
    }

    /// - Returns: `nil` if the member is not a media range.
    init?(_ member: StructuredField.Member) {
        guard let item = member.item, let range = Self.text(item.value) else { return nil }
        let parts = range.asciiLowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let type = parts.first, let subtype = parts.last,
            ASCII.isToken(type.utf8), ASCII.isToken(subtype.utf8), type != "*" || subtype == "*"
        else { return nil }
        var parameters: [String: String] = [:]
        for (name, value) in item.parameters {
            guard let text = Self.text(value) else { return nil }
            parameters[name] = text
        }
        (self.type, self.subtype, self.parameters) = (String(type), String(subtype), parameters)
    }

    /// Returns the text of a string or a token. Both have the same meaning.
    private static func text(_ value: StructuredField.BareItem) -> String? { value.string ?? value.token }
}

extension Headers {
    /// The media types that a resource accepts for queries, from the `Accept-Query` field of a
    /// response (RFC 10008, section 3).
    ///
    /// ```swift
    /// let response = try await service.OPTIONS("/brewers").data().response
    /// let acceptsSQL = response.headers.acceptQuery?.contains { $0.includes("application/sql") }
    /// ```
    /// The value applies to all URLs with the same path. The order of the media types has no
    /// meaning. The value is `nil` if the field is malformed and must be ignored, and empty if the
    /// field is absent.
    public var acceptQuery: [MediaRange]? {
        guard let members = structuredList("Accept-Query") else { return nil }
        let ranges = members.compactMap { MediaRange($0) }
        return ranges.count == members.count ? ranges : nil
    }
}
