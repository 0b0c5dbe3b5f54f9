public import Foundation

/// An event of an event stream (WHATWG HTML, section 9.2, "Server-sent events").
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event. Defaults to `message`.
    public var type: String

    /// The data of the event. Several `data` fields are joined with line feeds.
    public var data: String

    /// The last event ID of the stream when the event was dispatched; empty if there is none.
    ///
    /// An event without an `id` field has the ID of the event before it.
    public var id: String

    /// The reconnection time that the event sets; `nil` if it has no valid `retry` field.
    ///
    /// The time is at most one hour.
    public var retry: Duration?

    /// Creates an event with the given type, data, ID and reconnection time.
    public init(type: String = "message", data: String, id: String = "", retry: Duration? = nil) {
        self.type = type
        self.data = data
        self.id = id
        self.retry = retry
    }

    /// Returns the data decoded as JSON, or by another decoder.
    ///
    /// - Throws: ``WebServiceError/Code/decoding`` with the data as ``WebServiceError/body`` and
    ///   the decoder's error as ``WebServiceError/underlying``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: any BodyDecoder = JSONDecoder()
    ) throws -> Value {
        try JSON.decode(type, from: Data(data.utf8), of: "the data of an event", using: decoder)
    }
}

/// The fields of an event in an event stream, up to the empty line that ends it.
struct EventBlock: Sendable {
    private static let maximumReconnectionTime = 3_600_000
    /// The capacity of ``data`` that is retained for the next event.
    private static let maximumIdleCapacity = 4 << 10

    /// The lines of the data, each followed by a line feed.
    private(set) var data: [UInt8] = []
    /// The value of the last `id` field, which may belong to an earlier event.
    private(set) var id: String
    /// The value of the last `id` field that a header field can contain.
    private(set) var fieldID: String
    /// The value of the last valid `retry` field, which may belong to an earlier event.
    private(set) var reconnectionTime: Duration?
    /// The value of the last valid `retry` field of this event.
    private var retry: Duration?
    private var type = ""
    /// The closure that receives the comments; `nil` if there is none.
    var onComment: (@Sendable (String) -> Void)?

    init(id: String, fieldID: String) {
        self.id = id
        self.fieldID = fieldID
    }

    /// Processes a line without its line break. Empty lines and unknown fields have no effect.
    mutating func add(line: UnsafeRawBufferPointer) {
        let colon = line.firstIndex(of: UInt8(ascii: ":"), from: 0)
        let name = line.bytes(0..<(colon ?? line.count))
        var start = colon.map { $0 + 1 } ?? line.count
        if start < line.count, line[start] == UInt8(ascii: " ") { start += 1 }
        let value = line.bytes(start..<line.count)
        switch name.count {
        case 0 where colon == 0:
            onComment?(String(decoding: value, as: UTF8.self))
        case 4 where name.equals("data"):
            data.append(contentsOf: value)
            data.append(.lineFeed)
        case 5 where name.equals("event"):
            type = String(decoding: value, as: UTF8.self)
        case 2 where name.equals("id"):
            guard value.firstIndex(of: 0, from: 0) == nil else { return }
            id = String(decoding: value, as: UTF8.self)
            if Request.isUnchangedFieldValue(id) { fieldID = id }
        case 5 where name.equals("retry"):
            guard let time = Self.reconnectionTime(value) else { return }
            reconnectionTime = time
            retry = time
        default: break
        }
    }

    /// Returns the event, or `nil` if there is no data. The ID is retained for the next event.
    mutating func dispatch() -> ServerSentEvent? {
        defer {
            type = ""
            retry = nil
            data.removeAll(keepingCapacity: data.capacity <= Self.maximumIdleCapacity)
        }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: String(decoding: data.dropLast(), as: UTF8.self), id: id,
            retry: retry)
    }

    /// Returns the duration for a decimal number of milliseconds, limited to one hour; `nil` for
    /// any other value.
    private static func reconnectionTime(_ value: UnsafeRawBufferPointer) -> Duration? {
        ASCII.number(value).map { .milliseconds(min($0, maximumReconnectionTime)) }
    }
}

/// A parser of event streams (WHATWG HTML, section 9.2.6, "Interpreting an event stream").
///
/// Lines end with LF, CRLF or CR. A CR ends a line immediately: an LF that follows in later bytes
/// is ignored. An event that is not terminated by an empty line is discarded.
struct ServerSentEventParser: BodyParser {
    /// The ID of the last dispatched event, with or without data.
    private(set) var lastEventID: String
    /// The last ID of a dispatched event that a header field can contain.
    ///
    /// The next connection sends this ID as `Last-Event-ID`, unless the ID is empty.
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
    /// Whether an LF at the front belongs to the last line break.
    private var skipsLineFeed = false
    private var block: EventBlock

    /// - Parameters:
    ///   - lastEventID: The ID of the last event of the previous connection. The ID applies to
    ///     events before the first `id` field.
    ///   - fieldID: The last ID of the previous connection that a header field can contain.
    ///   - maximumSize: The maximum size of an event's data together with the current line, in
    ///     bytes.
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
