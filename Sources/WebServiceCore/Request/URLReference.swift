/// A URI reference (RFC 3986, section 4.1), split into its five components.
///
/// Components are combined byte by byte: nothing is decoded, encoded or changed in case. Parsing is
/// strict (section 5.4.2): `http:g` is an absolute URI without an authority, regardless of the
/// base.
package struct URLReference {
    private(set) var scheme: ArraySlice<UInt8>?
    private(set) var authority: ArraySlice<UInt8>?
    private(set) var path: ArraySlice<UInt8>
    private(set) var query: ArraySlice<UInt8>?
    private(set) var fragment: ArraySlice<UInt8>?

    /// Splits a string (RFC 3986, appendix B). Every string is a reference of some kind.
    init(_ text: String) {
        let bytes = Array(text.utf8)
        let parts = Reference(bytes[...])
        (query, fragment) = (parts.query, parts.fragment)
        var rest = parts.path
        if let name = BaseURL.scheme(of: bytes) {
            scheme = name
            rest = rest[(name.endIndex + 1)...]
        }
        if rest.starts(with: "//".utf8) {
            let behind = rest.dropFirst(2)
            rest = behind.drop { $0 != UInt8(ascii: "/") }
            authority = behind[..<rest.startIndex]
        }
        path = rest
    }

    /// Resolves a reference against an absolute URI (RFC 3986, section 5.2).
    ///
    /// The time is linear in the total length of both strings.
    ///
    /// - Returns: The target URI, or `nil` if the base has no scheme.
    package static func resolve(_ reference: String, against base: String) -> String? {
        let base = URLReference(base)
        guard base.scheme != nil else { return nil }
        var target = URLReference(reference)
        if target.scheme == nil {
            target.scheme = base.scheme
            if target.authority == nil {
                target.authority = base.authority
                if target.path.isEmpty {
                    target.path = base.path
                    target.query = target.query ?? base.query
                    return target.text
                }
                if target.path.first != UInt8(ascii: "/") { target.path = base.merged(with: target.path) }
            }
        }
        target.path = removingDotSegments(target.path)
        return target.text
    }

    /// Merges the base path with a relative path (RFC 3986, section 5.2.3).
    private func merged(with relative: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if authority != nil, path.isEmpty { return [UInt8(ascii: "/")] + relative }
        let folder = path.lastIndex(of: UInt8(ascii: "/")).map { path[...$0] } ?? []
        return folder + relative
    }

    /// Removes dot segments (RFC 3986, section 5.2.4).
    ///
    /// Each byte is written at most once and removed at most once.
    private static func removingDotSegments(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let slash = UInt8(ascii: "/")
        var output: [UInt8] = []
        output.reserveCapacity(path.count)
        var rest = path
        while let first = rest.first {
            let segment = (first == slash ? rest.dropFirst() : rest).prefix { $0 != slash }
            let behind = rest[segment.endIndex...]
            let climbs = segment.elementsEqual("..".utf8)
            guard climbs || segment.elementsEqual(".".utf8) else {
                output += rest[..<segment.endIndex]
                rest = behind
                continue
            }
            if first != slash {
                rest = behind.dropFirst()
                continue
            }
            if climbs { output.removeSubrange((output.lastIndex(of: slash) ?? 0)...) }
            if behind.isEmpty { output.append(slash) }
            rest = behind
        }
        return output[...]
    }

    /// The combined components (RFC 3986, section 5.3).
    ///
    /// A path that would be read as an authority is separated from the scheme by `/.`.
    private var text: String {
        var bytes: [UInt8] = []
        if let scheme { bytes += scheme + [UInt8(ascii: ":")] }
        if let authority {
            bytes += Array("//".utf8) + authority
        } else if path.starts(with: "//".utf8) {
            bytes += Array("/.".utf8)
        }
        bytes += path
        if let query { bytes += [UInt8(ascii: "?")] + query }
        if let fragment { bytes += [UInt8(ascii: "#")] + fragment }
        return String(decoding: bytes, as: UTF8.self)
    }
}
