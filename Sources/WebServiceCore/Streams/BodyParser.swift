import Foundation

/// A parser that splits the bytes of a response body into elements. It performs no I/O.
///
/// Elements do not depend on how the bytes are divided into chunks. Parsing takes time linear in
/// the size of the body. The memory use is bounded by the limit of one element plus the size of the
/// last chunk, provided that ``next()`` returns `nil` before more bytes are appended.
protocol BodyParser<Element>: Sendable {
    associatedtype Element: Sendable

    /// Appends bytes of the body.
    mutating func append(_ bytes: Data)

    /// Returns the next complete element, or `nil` if there is none in the bytes so far.
    ///
    /// - Throws: ``WebServiceError/Code/elementTooLarge`` as soon as the next element exceeds its
    ///   limit, after all elements before it; ``WebServiceError/Code/decoding`` for a malformed
    ///   element. The body must then be abandoned, unless the parser specifies otherwise.
    mutating func next() throws(WebServiceError) -> Element?

    /// Marks the orderly end of the body.
    ///
    /// ``next()`` then returns the elements that the end completes, followed by `nil`.
    mutating func finish()
}

extension WebServiceError {
    /// Returns the error for an element of a body that is larger than its limit.
    ///
    /// - Parameter option: The parameter that sets the limit; `nil` if the limit is fixed.
    static func tooLarge(_ element: String, maximum: Int, option: String?) -> WebServiceError {
        let advice = option.map { "increase \($0) or read the bytes" } ?? "read the bytes instead"
        return WebServiceError(
            .elementTooLarge,
            "\(element) of the response body is larger than \(maximum) bytes; \(advice)")
    }
}
