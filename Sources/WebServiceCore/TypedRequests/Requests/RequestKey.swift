/// A key of any type, or a request used as its own key. Two keys are equal if their types are
/// identical and `==` returns `true`.
///
/// `==` and `hash(into:)` are custom code and run without a lock, so they may use the service.
package final class RequestKey: Sendable, Hashable {
    let base: any Hashable & Sendable

    package init(_ base: any Hashable & Sendable) {
        self.base = base
    }

    /// - Returns: `nil` if the request is not `Hashable`.
    convenience init?(request: any ServiceRequest) {
        guard let request = request as? any ServiceRequest & Hashable else { return nil }
        self.init(request)
    }

    package var type: ObjectIdentifier { ObjectIdentifier(Swift.type(of: base)) }

    package static func == (left: RequestKey, right: RequestKey) -> Bool {
        left.type == right.type && equals(left.base, right.base)
    }

    private static func equals<Key: Hashable>(_ left: Key, _ right: any Hashable) -> Bool {
        left == right as? Key
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        base.hash(into: &hasher)
    }
}
