import Foundation

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
