import Foundation

/// A parser of event streams (WHATWG HTML, section 9.2.6, "Interpreting an event stream").
///
/// Lines end with LF, CRLF or CR. A CR ends a line immediately: an LF that follows in later bytes
/// is ignored. An event that is not terminated by an empty line is discarded.
struct ServerSentEventParser: BodyParser {
    /// The ID of the last dispatched event, with or without data.
    private(set) var lastEventID: String
    /// The last ID of a dispatched event that a header field can contain.
    ///
    /// The next connection sends it as `Last-Event-ID`, unless it is empty.
    private(set) var fieldID: String
    /// The value of the last valid `retry` field; `nil` if there was none. The time is at most one
    /// hour.
    var reconnectionTime: Duration? { block.reconnectionTime }

    /// The closure that receives the comments; `nil` if there is none.
    var onComment: (@Sendable (String) -> Void)? {
        get { block.onComment }
        set { block.onComment = newValue }
    }

    private let maximumSize: Int
    private var bytes = UnparsedBytes()
    /// The number of leading bytes without a line break.
    private var searched = 0
    private var isAtStart = true
    /// A Boolean value that indicates whether an LF at the front belongs to the last line break.
    private var skipsLineFeed = false
    private var block: EventBlock

    /// - Parameters:
    ///   - lastEventID: The ID of the last event of the previous connection. It applies to events
    ///     before the first `id` field.
    ///   - fieldID: The last ID of the previous connection that a header field can contain.
    ///   - maximumSize: The maximum size of the data of an event, and of any other line, in bytes.
    init(lastEventID: String = "", fieldID: String = "", maximumSize: Int = 16 << 20) {
        self.lastEventID = lastEventID
        self.fieldID = fieldID
        self.maximumSize = maximumSize
        block = EventBlock(id: lastEventID, fieldID: fieldID)
    }

    /// Returns the parser for the next connection of the stream.
    func continued() -> ServerSentEventParser {
        ServerSentEventParser(lastEventID: lastEventID, fieldID: fieldID, maximumSize: maximumSize)
    }

    mutating func append(_ bytes: Data) {
        self.bytes.append(bytes)
    }

    mutating func finish() {}

    mutating func next() throws(WebServiceError) -> ServerSentEvent? {
        if isAtStart {
            guard bytes.removeByteOrderMark() else { return nil }
            isAtStart = false
        }
        while bytes.count > 0 {
            if skipsLineFeed {
                skipsLineFeed = false
                if bytes.withBytes({ $0.first == .lineFeed }) {
                    bytes.consume(1)
                    continue
                }
            }
            let end = bytes.withBytes { Self.lineBreak(in: $0, from: searched) }
            searched = end ?? bytes.count
            guard block.data.count + searched <= maximumSize else {
                throw .tooLarge("an event", maximum: maximumSize, option: "maximumSize")
            }
            guard let end else { return nil }
            searched = 0
            skipsLineFeed = bytes.withBytes { line in
                block.add(line: line.bytes(0..<end))
                return line[end] == .carriageReturn
            }
            bytes.consume(end + 1)
            guard end == 0 else { continue }
            (lastEventID, fieldID) = (block.id, block.fieldID)
            if let event = block.dispatch() { return event }
        }
        return nil
    }

    /// Returns the index of the first CR or LF.
    ///
    /// The search advances in windows. A search for the first LF in all bytes would take quadratic
    /// time for a stream with CR line breaks.
    @inline(__always)
    private static func lineBreak(in bytes: UnsafeRawBufferPointer, from index: Int) -> Int? {
        var start = index
        while start < bytes.count {
            let window = bytes.bytes(start..<min(start + 256, bytes.count))
            let lineFeed = window.firstIndex(of: .lineFeed, from: 0)
            let line = window.bytes(0..<(lineFeed ?? window.count))
            if let end = line.firstIndex(of: .carriageReturn, from: 0) ?? lineFeed { return start + end }
            start += window.count
        }
        return nil
    }
}
