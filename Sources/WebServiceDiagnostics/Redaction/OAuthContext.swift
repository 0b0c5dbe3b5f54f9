import WebServiceCore

/// Rules that distinguish an OAuth authorization code from an error code with the same name.
enum OAuthContext {
    /// The parameters that accompany an authorization code (RFC 6749, sections 4.1.2 and 4.1.3, RFC
    /// 7636, section 4.5, and RFC 9207).
    static let names: Set<String> = [
        "client_id", "code_verifier", "grant_type", "iss", "redirect_uri", "session_state", "state",
    ]
    private static let pairs = names.filter { $0 != "session_state" }.map { "\($0)=" }
    /// The parameters that are recognized as JSON keys. The others, such as `state` and `iss`, are
    /// common in ordinary documents.
    static let keys: Set<String> = ["code_verifier", "grant_type", "redirect_uri"]

    /// Returns whether text contains one of the parameters in ``names``, except `session_state`.
    static func covers(_ bytes: ArraySlice<UInt8>) -> Bool {
        pairs.contains { bytes.holds($0.utf8) }
    }

    /// Returns whether text contains one of the parameters that accompany `state` (RFC 6749,
    /// sections 4.1.1 and 4.1.2, and RFC 9207).
    static func coversLogIn(_ bytes: ArraySlice<UInt8>) -> Bool {
        let names = ["client_id=", "code=", "error=", "iss=", "redirect_uri=", "session_state="]
        return names.contains { name in
            bytes.starts(with: name.utf8) || ["&", "?", "#"].contains { bytes.holds("\($0)\(name)".utf8) }
        }
    }

    /// Returns whether a value has the form of an error code: up to four digits, or words of one
    /// case that are joined by underscores, such as `missing_field`.
    ///
    /// Authorization codes are longer than a status code and contain digits or letters of both
    /// cases.
    static func isErrorCode(_ value: ArraySlice<UInt8>) -> Bool {
        func consists(of letters: ClosedRange<UInt8>) -> Bool {
            value.allSatisfy { letters.contains($0) || $0 == UInt8(ascii: "_") }
        }
        if value.count <= 4 { return value.allSatisfy { (0x30...0x39).contains($0) } }
        return value.count <= 64 && value.contains(UInt8(ascii: "_"))
            && (consists(of: 0x61...0x7A) || consists(of: 0x41...0x5A))
    }
}
