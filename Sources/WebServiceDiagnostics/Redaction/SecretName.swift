import WebServiceCore

/// The meaning of a name for its value, which results from the words of the name.
///
/// The last word is the head noun: `access_token` names a token, and `token_type` names a type.
enum SecretName {
    /// The value is not secret.
    case harmless
    /// The value is secret in a header field or a URL parameter, as for `key`.
    case parameter
    /// The parameter `code`, whose value is secret in OAuth.
    case code
    /// The parameter `state`, whose value is secret if other OAuth parameters accompany it.
    case state
    /// The value is secret, as for `ticket`; in JSON, only if it is a string of one word.
    case word
    /// The value is secret if it is a string, as for `cookie`.
    case text
    /// The value is secret if it is or contains a string, as for `tokens`. Otherwise, it is a
    /// count.
    case list
    /// All strings in the value are secret, at any depth.
    case secret

    /// Classifies a name by its last 96 bytes. A name whose last word is longer is not secret.
    init(_ name: String) {
        let words = Self.words(of: name)
        self = Self.meaning(of: words[...])
        if case .harmless = self, words.last.map({ Self.suffixes.contains($0) }) ?? false {
            // If a word such as `value` follows the noun, the name remains secret only if the noun
            // names nothing but secrets, or if it is a key and an encoding follows.
            var noun = words[...]
            while let last = noun.last, noun.count > 1, Self.suffixes.contains(last) { noun = noun.dropLast() }
            switch Self.meaning(of: noun) {
            case .secret: self = .secret
            case .list: self = .list
            case .harmless where ["key", "keys"].contains(noun.last) && !Self.isPublic(noun):
                self = words.last.map { Self.encodings.contains($0) } ?? false ? .secret : .harmless
            default: break
            }
        }
    }

    private static func isPublic(_ words: ArraySlice<String>) -> Bool { words.contains { harmlessKeys.contains($0) } }

    private static func meaning(of words: ArraySlice<String>) -> SecretName {
        guard let noun = words.last else { return .harmless }
        let qualifier = words.dropLast().last
        if noun == "token", let qualifier, harmlessTokens.contains(qualifier) { return .harmless }
        if nouns.contains(noun) { return .secret }
        if noun.hasSuffix("s"), qualifier == nil || !harmlessTokens.contains(qualifier ?? ""),
            nouns.contains(String(noun.dropLast()))
        {
            return .list
        }
        if texts.contains(noun) { return .text }
        if wordNouns.contains(noun) { return harmlessWords.contains(qualifier ?? "") ? .harmless : .word }
        guard let qualifier else {
            switch noun {
            case "key", "sid": return .parameter
            case "code": return .code
            case "state": return .state
            default: return .harmless
            }
        }
        if noun == "sid" { return ["connect", "session"].contains(qualifier) ? .text : .harmless }
        if noun == "id", qualifier == "key" { return words.dropLast(2).last == "access" ? .secret : .harmless }
        if ["hash", "digest"].contains(noun) { return nouns.contains(qualifier) ? .secret : .harmless }
        let isPlural = qualifiers[noun] == nil && noun.hasSuffix("s")
        guard let known = qualifiers[isPlural ? String(noun.dropLast()) : noun], known.contains(qualifier) else {
            return .harmless
        }
        return isPlural ? .list : .secret
    }

    /// Returns whether the name of a header field, such as `X-Station-Key`, is that of a key that
    /// does not identify data.
    static func isKeyField(_ name: String) -> Bool {
        guard name.utf8.first == UInt8(ascii: "x") || name.utf8.first == UInt8(ascii: "X") else { return false }
        let words = words(of: name)
        return words.last == "key" && !isPublic(words[...])
    }

    // MARK: Words

    private static let maximumLength = 96

    /// Returns the words of a name in lower case, without a leading `x`, and without the digits at
    /// the end of each word.
    ///
    /// Words end at all bytes other than ASCII letters and digits, and at changes of case. A name
    /// that contains a slash is a path and has no words.
    static func words(of name: String) -> [String] {
        let bytes = Array(name.utf8.suffix(maximumLength))
        guard !bytes.contains(UInt8(ascii: "/")) else { return [] }
        var words: [String] = []
        var word: [UInt8] = []
        func endWord() {
            while let last = word.last, ASCII.isDigit(last) { _ = word.popLast() }
            if !word.isEmpty { words += parts(of: ASCII.lowercased(word)) }
            word = []
        }
        for (index, byte) in bytes.enumerated() {
            if !ASCII.isAlphanumeric(byte) {
                endWord()
                continue
            }
            if isUpper(byte), let last = word.last,
                !isUpper(last) || index + 1 < bytes.count && isLower(bytes[index + 1])
            {
                endWord()
            }
            word.append(byte)
        }
        endWord()
        return words.count > 1 && words.first == "x" ? Array(words.dropFirst()) : words
    }

    private static func isUpper(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }
    private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }

    /// Returns the known words that a word such as `accesstoken` consists of, or only the word
    /// itself.
    private static func parts(of word: String) -> [String] {
        let bytes = Array(word.utf8)
        guard (5...32).contains(bytes.count), !vocabulary.contains(word) else { return [word] }
        // For each prefix that consists of known words: the start of its last word.
        var starts: [Int?] = [0] + Array(repeating: nil, count: bytes.count)
        for end in 1...bytes.count {
            starts[end] = (max(0, end - 14)..<end).first {
                ($0 == 0 || starts[$0] != nil) && vocabulary.contains(String(decoding: bytes[$0..<end], as: UTF8.self))
            }
        }
        var parts: [String] = []
        var end = bytes.count
        while end > 0 {
            guard let start = starts[end] else { return [word] }
            parts.append(String(decoding: bytes[start..<end], as: UTF8.self))
            end = start
        }
        return parts.reversed()
    }
}

extension SecretName {
    private static func set(_ words: String) -> Set<String> { Set(words.split(separator: " ").map(String.init)) }

    /// Words that name nothing but secrets.
    private static let nouns = set(
        """
        token secret password passwort passphrase passcode passwd pswd pwd pw credential credentials jwt cvv cvc ssn \
        totp psk hmac csrf xsrf mnemonic verifier dockerconfigjson
        """)
    /// Words that name a secret if the value is text.
    private static let texts = set("authorization cookie assertion wresult saml otp")
    /// Words that name a secret if the value is text of one word.
    private static let wordNouns = set("auth bearer mfa pass pin session sess sessid sig signature ticket")
    /// Nouns that name a secret only if one of certain words precedes them.
    private static let qualifiers: [String: Set<String>] = [
        "key": set(
            """
            api access secret private signing encryption decryption master function functions subscription auth \
            authorization authentication account shared preshared session client consumer application app admin \
            developer license activation write server service role webhook hmac aes tls ssl symmetric unseal recovery \
            root merchant wrapping signature instrumentation cookie token password credential customer integration \
            storageaccount sas security vault
            """),
        "code": set(
            """
            otp pin mfa auth authorization device verification verify security recovery backup sms totp login \
            confirmation activation factor time access user passcode 2fa reset
            """),
        "string": set("connection conn"), "str": set("connection conn"),
        "response": set("saml"), "request": set("saml"), "phrase": set("pass seed recovery secret"),
        "word": set("pass"), "data": set("string secret"), "hint": set("token"),
        "id": set("session sess secret"), "number": set("pin"),
    ]
    /// Words before `token` in names that refer to positions in a list or to parts of a text.
    private static let harmlessTokens = set(
        """
        page next continuation continue sync pagination previous prev start resume stop eos bos pad unk mask sep cls \
        special design prompt completion max min total input output cached reasoning audio num
        """)
    /// Words before nouns such as `pass`, `ticket` and `signature` in names that do not refer to
    /// credentials.
    private static let harmlessWords = set(
        "mountain ski lift boarding season day rail bus time method function type jira support")
    /// Words that indicate that a key is public or identifies data, so it is not secret.
    private static let harmlessKeys = set(
        """
        public publishable cache surrogate idempotency partition sort primary foreign object row routing dedup \
        deduplication message
        """)
    /// Words for the encodings of keys.
    private static let encodings = set("base b64 b base64 hex pem")
    /// Words that follow the noun without changing the meaning of the name.
    private static let suffixes = set(
        "value text string plaintext plain raw base b64 b base64 hex pem binary encoded data sha md new old current "
            + "confirm confirmation again repeat repeated verification")
    /// The words that can occur in a name without separators.
    private static let vocabulary = nouns.union(texts).union(wordNouns).union(qualifiers.keys).union(
        set(
            """
            access account admin api app auth bot client connection csrf middleware db device id identity j login \
            master my new old oauth php private refresh registry root secret security session shared signing \
            subscription tokens passwords secrets keys user webhook x xsrf saml encryption consumer master bearer \
            storage functions function signature pre asp net pincode
            """))
}
