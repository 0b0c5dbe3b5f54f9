import WebServiceCore

/// 32 random bytes in hexadecimal form, for use in a URL.
struct SecretToken: Sendable {
    let text: String

    init() {
        text = Self.random(words: 4)
    }

    /// Returns random 64-bit words in hexadecimal form.
    static func random(words: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<words).map { _ in generator.next().hexadecimal }.joined()
    }

    /// Returns whether a string is the token. The duration depends only on the length of the
    /// string.
    func isEqual(to other: some StringProtocol) -> Bool {
        let (own, other) = (text.utf8, other.utf8)
        guard own.count == other.count else { return false }
        return zip(own, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
