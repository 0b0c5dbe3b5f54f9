/// A challenge of a `WWW-Authenticate` field (RFC 9110, section 11.6.1).
package struct AuthenticationChallenge: Sendable, Equatable {
    /// The name of the scheme, in lower case.
    package let scheme: String
    /// The parameters by their names in lower case. If a name is repeated, the first value counts.
    package fileprivate(set) var parameters: [String: String] = [:]

    /// Returns the challenges of one field.
    ///
    /// The members of an unquoted list, such as `qop=auth,auth-int`, have the same syntax as names
    /// of schemes. After an unquoted `qop`, a token that begins with `auth` is a member of its
    /// list.
    package static func all(in field: String) -> [AuthenticationChallenge] {
        var scanner = FieldScanner(field)
        var challenges: [AuthenticationChallenge] = []
        var isProtection = false
        while true {
            scanner.skipToMember()
            let name = ASCII.lowercased(scanner.take { !" \t,=\"".utf8.contains($0) })
            scanner.take(while: ASCII.isSpaceOrTab)
            guard scanner.take("=") else {
                if isProtection, name.hasPrefix("auth"), let last = challenges.indices.last {
                    challenges[last].parameters["qop"]? += ",\(name)"
                } else if !name.isEmpty {
                    challenges.append(AuthenticationChallenge(scheme: name))
                    isProtection = false
                } else if scanner.take() == nil {
                    return challenges
                }
                continue
            }
            scanner.take(while: ASCII.isSpaceOrTab)
            let isQuoted = scanner.take("\"")
            let value =
                isQuoted ? scanner.quotedString().content : Array(scanner.take { !" \t,".utf8.contains($0) })
            isProtection = name == "qop" && !isQuoted
            guard let last = challenges.indices.last, challenges[last].parameters[name] == nil else { continue }
            challenges[last].parameters[name] = String(decoding: value, as: UTF8.self)
        }
    }
}
