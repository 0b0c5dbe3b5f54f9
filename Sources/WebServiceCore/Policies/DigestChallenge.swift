import Foundation

/// A challenge of Digest authentication (RFC 7616, section 3.3).
struct DigestChallenge: Sendable, Equatable {
    enum Algorithm: String, Sendable {
        case sha256 = "sha-256"
        case sha256Session = "sha-256-sess"
        case md5 = "md5"
        case md5Session = "md5-sess"

        var isSession: Bool { self == .sha256Session || self == .md5Session }

        fileprivate func hash(_ text: String) -> String {
            let hash =
                switch self {
                case .sha256, .sha256Session: SHA2.sha256.hash(Data(text.utf8))
                case .md5, .md5Session: MD5.hash(Array(text.utf8))
                }
            return ASCII.hexadecimal(hash)
        }
    }

    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: Algorithm
    /// The name of the algorithm as received; `nil` if the challenge names none.
    let algorithmName: String?
    /// Whether the credentials contain a counter (`qop=auth`).
    let hasCounter: Bool
    /// Whether the user name is sent as a hash.
    let hashesUser: Bool
    /// Whether the server rejected only the nonce of the last request.
    let isStale: Bool

    /// - Returns: `nil` if the algorithm or the protection is not supported, or if the realm or the
    ///   nonce is missing.
    private init?(_ parameters: [String: String]) {
        guard let realm = parameters["realm"], let nonce = parameters["nonce"],
            let algorithm = Algorithm(rawValue: parameters["algorithm"]?.asciiLowercased() ?? "md5")
        else { return nil }
        let protections = parameters["qop"]?.split(separator: ",").map {
            String(Substring(ASCII.trimmed($0.utf8))).asciiLowercased()
        }
        guard protections?.contains("auth") ?? !algorithm.isSession else { return nil }
        (self.realm, self.nonce, opaque) = (realm, nonce, parameters["opaque"])
        (self.algorithm, algorithmName) = (algorithm, parameters["algorithm"])
        hasCounter = protections != nil
        hashesUser = parameters["userhash"]?.asciiLowercased() == "true"
        isStale = parameters["stale"]?.asciiLowercased() == "true"
    }

    /// Returns the supported challenge with the strongest algorithm; `nil` if there is none.
    static func strongest(in fields: [String]) -> DigestChallenge? {
        let challenges = fields.flatMap(AuthenticationChallenge.all).filter { $0.scheme == "digest" }.compactMap {
            DigestChallenge($0.parameters)
        }
        let order: [Algorithm] = [.sha256, .sha256Session, .md5, .md5Session]
        return order.lazy.compactMap { algorithm in challenges.first { $0.algorithm == algorithm } }.first
    }

    // MARK: Credentials

    /// Returns the value of the `Authorization` field (RFC 7616, section 3.4).
    ///
    /// - Parameters:
    ///   - account: The user name and the password.
    ///   - request: The method and the target of the request.
    ///   - count: The number of requests with this nonce.
    ///   - clientNonce: A random string.
    func credentials(
        _ account: (user: String, password: String), _ request: (method: String, target: String), count: UInt32,
        clientNonce: String
    ) -> String {
        let hash = algorithm.hash
        let counter = String(repeating: "0", count: 8 - String(count, radix: 16).count) + String(count, radix: 16)
        var secret = hash("\(account.user):\(realm):\(account.password)")
        if algorithm.isSession { secret = hash("\(secret):\(nonce):\(clientNonce)") }
        let middle = hasCounter ? "\(nonce):\(counter):\(clientNonce):auth" : nonce
        let response = hash("\(secret):\(middle):\(hash("\(request.method):\(request.target)"))")
        var fields = ["realm=\(quoted(realm))", "nonce=\(quoted(nonce))", "uri=\(quoted(request.target))"]
        if hashesUser {
            fields = ["username=\(quoted(hash("\(account.user):\(realm)")))", "userhash=true"] + fields
        } else if account.user.utf8.allSatisfy({ $0 < 0x80 }) {
            fields.insert("username=\(quoted(account.user))", at: 0)
        } else {
            let encoded = account.user.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            fields.insert("username*=UTF-8''\(encoded)", at: 0)
        }
        if let algorithmName { fields.append("algorithm=\(algorithmName)") }
        fields.append("response=\(quoted(response))")
        if let opaque { fields.append("opaque=\(quoted(opaque))") }
        if hasCounter { fields += ["qop=auth", "nc=\(counter)", "cnonce=\(quoted(clientNonce))"] }
        return "Digest " + fields.joined(separator: ", ")
    }

    private func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
    }
}
