import WebServiceCore

/// The rules that determine whether a value is secret, based on its name, its type and its place.
/// An instance is confined to one redaction.
final class SecretRules {
    enum Place {
        case header
        case query
        case form
        /// Text in which values have no types.
        case text
        /// A string in JSON.
        case json
    }

    let redaction: Redaction
    private var meanings: [String: SecretName] = [:]
    private static let maximumNames = 4096

    init(_ redaction: Redaction) {
        self.redaction = redaction
    }

    func meaning(of name: String) -> SecretName {
        if let meaning = meanings[name] { return meaning }
        let meaning = redaction.meaning(of: name)
        if meanings.count < Self.maximumNames { meanings[name] = meaning }
        return meaning
    }

    /// Returns whether a value is secret.
    ///
    /// If a name has brackets, such as `user[pin]`, its value is secret if any part of the name is
    /// secret.
    ///
    /// - Parameters:
    ///   - isAuthorization: Returns whether OAuth parameters accompany the value.
    ///   - isLogIn: Returns whether OAuth parameters other than `state` accompany the value.
    func isSecret(
        _ name: String, _ value: ArraySlice<UInt8>, _ place: Place, isAuthorization: () -> Bool = { false },
        isLogIn: () -> Bool = { false }
    ) -> Bool {
        let meaning = meaning(of: name)
        if isSecret(meaning, value, place) { return true }
        switch meaning {
        case .parameter:
            // In `key=size`, the value is the name of a data field.
            if value.count <= 5, value.allSatisfy(ASCII.isAlpha) { return false }
            return place == .query || place == .header || place != .json && !name.equalsIgnoringASCIICase("key")
        case .code: return place != .json && !OAuthContext.isErrorCode(value) || isAuthorization()
        case .state: return isLogIn()
        case .harmless where name.utf8.contains(UInt8(ascii: "[")):
            return name.utf8.split(separator: UInt8(ascii: "[")).contains { part in
                if case .secret = self.meaning(of: String(decoding: part, as: UTF8.self)) { return true }
                return false
            }
        default: return false
        }
    }

    /// Returns whether text is secret. Outside JSON, numbers are also text.
    func isSecret(_ meaning: SecretName, _ value: ArraySlice<UInt8>, _ place: Place) -> Bool {
        switch meaning {
        case .harmless, .parameter, .code, .state: return false
        case .secret, .text: return !Self.isNothing(value)
        case .list: return !Self.isNothing(value) && (place == .json || !Self.isNumber(value))
        case .word:
            if Self.isNothing(value) { return false }
            guard place == .json else { return true }
            if value.count < 4 { return false }
            if value.count <= 10, Self.schemes.contains(ASCII.lowercased(value)) { return false }
            return !value.contains(0x20) || value.allSatisfy { ASCII.isDigit($0) || $0 == 0x20 }
        }
    }

    /// Returns whether text with a meaning is secret in a format without types.
    static func isSecret(_ meaning: SecretName) -> Bool {
        switch meaning {
        case .harmless, .parameter, .code, .state: false
        case .word, .text, .list, .secret: true
        }
    }

    /// Values that are not secret in JSON under a name such as `auth`, because they specify a
    /// scheme or whether authentication is required.
    private static let schemes: Set<String> = ["basic", "bearer", "digest", "oauth", "oauth2", "required", "optional"]

    /// Returns whether a value is empty, a literal for a missing value or a Boolean, or consists
    /// only of asterisks and spaces.
    static func isNothing(_ value: ArraySlice<UInt8>) -> Bool {
        if value.count <= 9,
            ["", "null", "nil", "none", "true", "false", "undefined"].contains(ASCII.lowercased(value))
        {
            return true
        }
        return value.allSatisfy { $0 == UInt8(ascii: "*") || $0 == 0x20 || $0 == 0x09 }
    }

    static func isNumber(_ value: ArraySlice<UInt8>) -> Bool {
        !value.isEmpty && value.allSatisfy { ASCII.isDigit($0) || "-+.,eE \r".utf8.contains($0) }
    }

    // MARK: Forms of tokens

    private static let prefixes: [[UInt8]] = [
        "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk_live_", "sk_test_", "rk_live_", "rk_test_",
        "whsec_", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-", "shpat_", "shpss_", "npm_", "pypi-", "hvs.", "hvb.",
        "SG.",
        "AIza", "dckr_pat_", "sk-ant-", "sk-proj-", "xoxe-", "xoxr-", "glsa_", "glc_", "gldt-", "glrt-",
        "glptt-",
        "lin_api_", "dop_v1_", "ya29.", "AGE-SECRET-KEY-", "base64url.bearer.authorization.k8s.io.",
    ].map { Array($0.utf8) }

    /// Returns whether a word is a token of a known form, which is secret under any name.
    ///
    /// A token is a JSON Web Token, or a well-known prefix followed by at least 12 bytes that
    /// include a digit.
    static func isToken(_ word: ArraySlice<UInt8>) -> Bool {
        guard word.count >= 16, let first = word.first else { return false }
        if first == UInt8(ascii: "e"), word.starts(with: "eyJ".utf8) {
            return word.count { $0 == UInt8(ascii: ".") } >= 2
        }
        guard let prefix = prefixes.first(where: { $0.first == first && word.starts(with: $0) }) else { return false }
        let rest = word.dropFirst(prefix.count)
        return rest.count >= 12 && rest.contains(where: ASCII.isDigit)
    }

    /// The beginnings of webhook URLs. The rest of such a URL is secret.
    static let webhooks = [
        "hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
        "webhook.office.com/webhookb2/", "outlook.office.com/webhook/", "hooks.zapier.com/hooks/catch/",
    ].map { text in
        let host = text.prefix { $0 != "/" }
        return (host: Array(host.utf8), path: Array(text.dropFirst(host.count).utf8))
    }
}
