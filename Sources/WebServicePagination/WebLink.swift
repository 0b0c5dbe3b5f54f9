import Foundation
public import WebServiceCore

/// A link in the header field `Link` (RFC 8288).
public struct WebLink: Sendable, Hashable {
    /// A parameter of a link.
    struct Parameter: Sendable, Hashable {
        /// The name, in lower case.
        let name: String
        /// The value without quotation marks; empty if the parameter has no value.
        ///
        /// The values of `title*` and similar parameters remain encoded (RFC 8187).
        let value: String
    }

    /// The target of the link.
    ///
    /// If the URL of the response is known, the target is absolute (RFC 3986, section 5).
    /// Otherwise, it is the target as received. The scheme is not validated. The target is resolved
    /// on each access, because a response may contain tens of thousands of links.
    public var target: String { resolved(reference) }

    /// The context of the link, resolved like ``target``; `nil` if the context is the response
    /// itself.
    public var anchor: String? { anchorReference.map(resolved) }

    let reference: String
    let anchorReference: String?
    /// The URL against which relative references are resolved.
    let base: String?

    /// The relation types of the target, such as `next`, in lower case.
    ///
    /// Relation types are case-insensitive (RFC 8288, section 2.1).
    public let relations: [String]

    /// All parameters in order, including repeated ones.
    let parameters: [Parameter]

    /// Returns the value of a parameter, or `nil` if there is no such parameter.
    ///
    /// ASCII case in names is ignored. If the parameter is repeated, the first value is returned
    /// (RFC 8288, section 3.4).
    public subscript(name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    private func resolved(_ reference: String) -> String {
        base.flatMap { URLReference.resolve(reference, against: $0) } ?? reference
    }

    /// Returns whether the link has a relation type. ASCII case is ignored.
    public func isOf(_ relation: String) -> Bool {
        relations.contains { $0.equalsIgnoringASCIICase(relation) }
    }
}

extension WebLink {
    /// Returns the links in a field value (RFC 8288, appendix B.2), in linear time. If the value
    /// contains a syntax error, returns the links before the error.
    ///
    /// - Parameter base: The URL against which relative references are resolved.
    static func parse(_ field: String, base: String?) -> [WebLink] {
        var links: [WebLink] = []
        var scanner = FieldScanner(field)
        while true {
            scanner.skipToMember()
            guard scanner.take("<") else { return links }
            let target = scanner.take { $0 != UInt8(ascii: ">") }
            guard scanner.take(">") else { return links }
            links.append(WebLink(target: target, scanner.parameters(isInList: true), base: base))
            guard scanner.take(",") else { return links }
        }
    }

    private init(target: ArraySlice<UInt8>, _ parameters: [FieldScanner.Parameter], base: String?) {
        let parameters = parameters.map {
            Parameter(name: $0.name, value: String(decoding: $0.value, as: UTF8.self))
        }
        func first(_ name: String) -> String? {
            parameters.first { $0.name == name }?.value
        }
        reference = String(decoding: target, as: UTF8.self)
        self.base = base
        self.parameters = parameters
        anchorReference = first("anchor")
        relations = (first("rel") ?? "").utf8.split(whereSeparator: ASCII.isSpaceOrTab).map { ASCII.lowercased($0) }
    }
}

extension Response {
    /// The links in the header field `Link` (RFC 8288), in order.
    ///
    /// Relative targets are resolved against `url`. If a field contains a syntax error, the rest of
    /// the field is ignored.
    public var links: [WebLink] {
        let base = url?.absoluteString
        return (head?.values(for: "Link") ?? []).flatMap { WebLink.parse($0, base: base) }
    }

    /// Returns the first link with a relation type whose context is the response itself.
    ///
    /// - Returns: `nil` if there is no such link among the first 100 links of that type.
    public func link(_ relation: String) -> WebLink? {
        let here = url?.absoluteString
        return links.lazy.filter { $0.isOf(relation) }.prefix(100).first {
            $0.anchorReference == nil || $0.anchor == here
        }
    }
}
