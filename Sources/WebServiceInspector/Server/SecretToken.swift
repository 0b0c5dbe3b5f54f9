import WebServiceCore

/// 32 random bytes in hexadecimal, as a part of a URL.
struct SecretToken: Sendable {
    let text: String

    init() {
        text = Self.random(words: 4)
    }

    /// Returns random words of 64 bits in hexadecimal.
    static func random(words: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<words).map { _ in generator.next().hexadecimal }.joined()
    }

    /// Returns whether a string is the token, in a time that depends only on the length of the
    /// string.
    func isEqual(to other: some StringProtocol) -> Bool {
        let (own, other) = (text.utf8, other.utf8)
        guard own.count == other.count else { return false }
        return zip(own, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
