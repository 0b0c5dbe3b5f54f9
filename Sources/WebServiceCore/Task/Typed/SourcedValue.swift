public import Foundation

/// A value with its source, age and date.
public struct SourcedValue<Value: Sendable>: Sendable {
    /// The value.
    public let value: Value
    /// The source of the value, such as ``Response/Source/network`` or ``Response/Source/storage``.
    public let source: Response.Source
    /// The age of the value when it was read.
    ///
    /// `nil` for a new value, and if the date is unknown or, because of an incorrect clock, in the
    /// future.
    public let age: Duration?
    /// The date at which the value was stored or last validated; `nil` if ``age`` is `nil`.
    public let date: Date?

    /// A Boolean value that indicates whether the value comes from a storage or a cache.
    public var isStored: Bool { source == .storage || source == .cache || source == .revalidated }

    package init(_ value: Value, source: Response.Source, age: Duration?, date: Date?) {
        self.value = value
        self.source = source
        self.age = age
        self.date = age == nil ? nil : date
    }
}
