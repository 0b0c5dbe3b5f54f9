/// A type that prints only its description, because its properties may contain secrets.
package protocol RedactedReflectable: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension RedactedReflectable {
    /// The same as `description`.
    public var debugDescription: String { description }

    /// The mirror that `dump` prints. It contains only `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
