import Foundation

/// A sequence of elements that are parsed from a streamed body as it arrives.
///
/// Methods such as ``ResponseBody/lines(maximumLength:)`` return such a sequence. It can be
/// iterated over only once; leaving the loop closes the connection. Elements that precede an error
/// are delivered before the error is thrown.
public struct BodySequence<Element: Sendable>: AsyncSequence, Sendable {
    private let makeReader: @Sendable () -> any ElementReader<Element>

    init(_ makeReader: @escaping @Sendable () -> any ElementReader<Element>) {
        self.makeReader = makeReader
    }

    /// Returns an iterator over the elements.
    ///
    /// The iterator throws the errors of the exchange if the sequence sends the request, the errors
    /// of ``ResponseBody``, and the errors that the sequence documents. After an error, it returns
    /// `nil`.
    public func makeAsyncIterator() -> some AsyncIteratorProtocol<Element, any Error> & Sendable {
        Iterator(reader: makeReader())
    }

    private struct Iterator: AsyncIteratorProtocol, Sendable {
        var reader: (any ElementReader<Element>)?

        mutating func next() async throws -> Element? {
            do {
                if let element = try await reader?.next() { return element }
            } catch {
                reader = nil
                throw error
            }
            reader = nil
            return nil
        }
    }
}

/// The state of an iteration over elements.
protocol ElementReader<Element>: Sendable {
    associatedtype Element: Sendable

    /// Returns the next element; `nil` at the end.
    mutating func next() async throws -> Element?
}

/// The iteration over the elements that a parser extracts from one body.
struct ParsedBody<Parser: BodyParser>: ElementReader {
    private let open: @Sendable () async throws -> (ResponseBody, Parser)
    private var reading: (bytes: ResponseBody.AsyncIterator, parser: Parser)?
    private var isAtEnd = false

    /// - Parameter open: A closure that returns the body and its parser. The first ``next()`` calls
    ///   the closure.
    init(_ open: @escaping @Sendable () async throws -> (ResponseBody, Parser)) {
        self.open = open
    }

    mutating func next() async throws -> Parser.Element? {
        if reading == nil {
            let (body, parser) = try await open()
            reading = (body.makeAsyncIterator(), parser)
        }
        while true {
            if let element = try reading?.parser.next() { return element }
            if isAtEnd { return nil }
            if let bytes = try await reading?.bytes.next() {
                reading?.parser.append(bytes)
            } else {
                isAtEnd = true
                reading?.parser.finish()
            }
        }
    }
}

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
    ///   limit, after all earlier elements were returned; ``WebServiceError/Code/decoding`` for a
    ///   malformed element. The body must then be abandoned, unless the parser specifies otherwise.
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
