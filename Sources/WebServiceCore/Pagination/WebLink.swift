import Foundation

/// A link of the header field `Link` (RFC 8288).
public struct WebLink: Sendable, Hashable {
    /// One parameter of a link. The name is in lower case.
    public struct Parameter: Sendable, Hashable {
        /// The name, in lower case.
        public let name: String
        /// The value without quotes; empty where there is none. `title*` and its like stay encoded (RFC 8187).
        public let value: String
    }

    /// Where the link leads: absolute where the URL of the answer is known (RFC 3986, section 5), else as it came. What scheme it has is not checked.
    /// Resolved each time it is read, because a response may have tens of thousands of links.
    public var target: String { resolved(reference) }

    /// What the link leads from, where that is not the answer itself; absolute as ``target`` is.
    public var anchor: String? { anchorReference.map(resolved) }

    let reference: String
    let anchorReference: String?
    /// What relative references are resolved against.
    let base: String?

    /// What the target is to the answer, such as `next`; in lower case, because these types have none (RFC 8288, section 2.1).
    public let relations: [String]

    /// All parameters, in order, repeated ones as well.
    public let parameters: [Parameter]

    /// The value of a parameter, the first one where it is repeated (RFC 8288, section 3.4); `nil` when there is none. Names are compared without
    /// regard to ASCII case.
    public subscript(name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    private func resolved(_ reference: String) -> String {
        base.flatMap { URLReference.resolve(reference, against: $0) } ?? reference
    }

    /// Whether the target is of this type to the answer; compared without regard to ASCII case.
    public func isOf(_ relation: String) -> Bool {
        relations.contains { $0.equalsIgnoringASCIICase(relation) }
    }
}

extension Response {
    /// The links of the header field `Link` (RFC 8288), in order, relative ones resolved against ``url``. What stands behind a mistake in a field is
    /// left out.
    public var links: [WebLink] {
        let base = url?.absoluteString
        return head.values(for: "Link").flatMap { WebLink.parse($0, base: base) }
    }

    /// The first link of a type that leads from the answer itself; `nil` when there is none among the first 100 of that type.
    public func link(_ relation: String) -> WebLink? {
        let here = url?.absoluteString
        return links.lazy.filter { $0.isOf(relation) }.prefix(100).first { $0.anchorReference == nil || $0.anchor == here }
    }
}
