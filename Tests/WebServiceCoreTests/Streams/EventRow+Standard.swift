import Foundation

@testable import WebServiceCore

private typealias Event = ExpectedEvent
private let longComment = ":" + String(repeating: "comment ", count: 256)

extension EventRow {
    /// The rules of WHATWG HTML, section 9.2.6, one by one.
    static let standard: [EventRow] = data + marks + fields + ends

    private static let data: [EventRow] = [
        EventRow("one event", "data: Hello\n\n", ["Hello"]),
        EventRow("data without a value", "data\n\ndata:\n\ndata\ndata\n\ndata: x\n\n", ["", "", "\n", "x"]),
        EventRow("CRLF, LF and CR", "data:test\r\ndata\ndata:test\r\n\r", ["test\n\ntest"]),
        EventRow("the same with a line after it", "data:a\r\ndata\ndata:b\r\n\rdata:c\n\n", ["a\n\nb", "c"]),
        EventRow("one leading space", "data:\ttest\rdata: \ndata:test\n\n", ["\ttest\n\ntest"]),
        EventRow("more spaces", "data:  a \ndata:\u{A0}b\n\n", [" a \n\u{A0}b"]),
        EventRow(
            "names are compared exactly",
            "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\n"
                + "data:4\n\n", ["\0\n 2\n1\n3\n\n4"]),
        EventRow(
            "comments",
            "data:1\r:\0\n:\r\ndata:2\n\(longComment)\rdata:3\n:data:no\r:\(longComment)\n: \n::\ndata:4\n\n",
            ["1\n2\n3\n4"]),
        EventRow("only comments", ":\n\n: a\n\n:data: b\n\n", []),
        EventRow("NUL in data", "data:\0\n\ndata: a\0b\0\n\n", ["\0", "a\0b\0"]),
        EventRow(
            "100 events", (0..<100).map { "data: \($0)\n\n" }.joined(), (0..<100).map { Event(data: "\($0)") }),
    ]

    private static let marks: [EventRow] = [
        EventRow("byte order mark", "\u{FEFF}data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n", ["1", "3"]),
        EventRow("two byte order marks", "\u{FEFF}\u{FEFF}data:1\n\ndata:2\n\n", ["2"]),
        EventRow(
            "byte order mark in a value", "data:\u{FEFF}a\n\ndata: \u{FEFF}\n\n", ["\u{FEFF}a", "\u{FEFF}"]),
        EventRow("byte order mark in a name", "data:1\nda\u{FEFF}ta:2\n\u{FEFF}data:3\n\n", ["1"]),
        EventRow("byte order mark before a comment", "\u{FEFF}:data:1\ndata:2\n\n", ["2"]),
        EventRow("byte order mark before a line break", "\u{FEFF}\r\ndata:2\n\n", ["2"]),
        EventRow("only a byte order mark", "\u{FEFF}", []),
        EventRow("byte order mark after a line break", "\n\u{FEFF}data:1\n\ndata:2\n\n", ["2"]),
        EventRow("one byte of a mark", bytes: [0xEF] + Array("data:1\n\ndata:2\n\n".utf8), ["2"]),
        EventRow("two bytes of a mark", bytes: [0xEF, 0xBB] + Array("data:1\n\ndata:2\n\n".utf8), ["2"]),
        EventRow("UTF-16 mark", bytes: [0xFE, 0xFF] + Array("data:1\n\ndata:2\n\n".utf8), ["2"]),
    ]

    private static let fields: [EventRow] = [
        EventRow(
            "id with NUL",
            "id: ok\ndata:0\n\nid:\0\ndata:1\n\nid: \0\ndata:2\n\nid:a\0\ndata:3\n\n"
                + "id:\0a\ndata:4\n\nid:a\0b\ndata:5\n\n",
            (0..<6).map { Event(data: "\($0)", id: "ok") }, lastEventID: "ok"),
        EventRow(
            "id persists and is reset",
            "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 2\nid: 3\ndata: d\n\nid:\n\n",
            [Event(data: "a", id: "1"), Event(data: "b", id: "1"), "c", Event(data: "d", id: "3")]),
        EventRow(
            "id with spaces", "id:  a b \ndata: x\n\n", [Event(data: "x", id: " a b ")], lastEventID: " a b "),
        EventRow(
            "unknown fields", "data:test\n data\ndata\nfoo:xxx\njust text\n:comment\ndata:test\ndataset: 1\n\n",
            ["test\n\ntest"]),
        EventRow("empty type", "event: \ndata: a\n\nevent\ndata: b\n\n", ["a", "b"]),
        EventRow(
            "type of one event", "event: x\nevent: y\ndata: a\n\ndata: b\n\nevent:message\ndata:c\n\n",
            [Event(type: "y", data: "a"), "b", "c"]),
        EventRow(
            "retry with other characters", "retry:1000x\nretry: -1\nretry: +1\nretry: 1.5\nretry:  1\n\n", []),
        EventRow("retry with other digits", "retry:\u{0661}\nretry:1e3\nretry:0x1\n\n", []),
        EventRow("retry without a value", "retry\n\nretry:\n\nretry: \n\n", []),
        EventRow("20 digits", "retry:99999999999999999999\n\n", [], reconnectionTime: .seconds(3_600)),
        EventRow("one hour", "retry:3600000\n\n", [], reconnectionTime: .seconds(3_600)),
        EventRow("more than one hour", "retry:3600001\n\n", [], reconnectionTime: .seconds(3_600)),
        EventRow("leading zeros", "retry: 00000000000000000000042\n\n", [], reconnectionTime: .milliseconds(42)),
        EventRow(
            "an invalid one after a valid one", "retry:5\nretry:x\n\n", [], reconnectionTime: .milliseconds(5)),
        EventRow(
            "block with retry only", "retry: 10000\n\ndata: a\n\nretry:0\ndata: b\n\n",
            ["a", Event(data: "b", retry: .zero)], reconnectionTime: .zero),
        EventRow(
            "empty data", "event: x\nid: 7\n\ndata: a\n\n", [Event(data: "a", id: "7")], lastEventID: "7"),
        EventRow("id only", "id: 7\n\n", [], lastEventID: "7"),
        EventRow(
            "reverse order", "retry: 3\ndata: a\nid: 1\nevent: t\n\n",
            [Event(type: "t", data: "a", id: "1", retry: .milliseconds(3))], lastEventID: "1",
            reconnectionTime: .milliseconds(3)),
        EventRow("two spaces", "data:  a\nevent:  t\n\n", [Event(type: " t", data: " a")]),
        EventRow("colons in a value", "data: a:b: c\ndata::d\ndata: :\n\n", ["a:b: c\n:d\n:"]),
    ]

    private static let ends: [EventRow] = [
        EventRow("no empty line at the end", "data: a\n\ndata: b\nid: 2\n", ["a"]),
        EventRow(
            "no line break at the end", "id: 1\ndata: a\n\nid: 2\ndata: b", [Event(data: "a", id: "1")],
            lastEventID: "1"),
        EventRow("retry of an unfinished event", "retry: 1\ndata: a\n", [], reconnectionTime: .milliseconds(1)),
        EventRow("retry without a line break", "retry: 1", []),
        EventRow("nothing", "", []),
        EventRow("only line breaks", "\n\n\r\r\n\r\n", []),
        EventRow("CR and LF are one line break", "data: a\r\ndata: b\r\n\r\n", ["a\nb"]),
        EventRow("LF and CR are two line breaks", "data: a\n\rdata: b\n\r", ["a", "b"]),
        EventRow("CR and CR", "data: a\r\rdata: b\r\r", ["a", "b"]),
    ]

    /// Two events with every pair of line breaks.
    static let lineBreaks: [EventRow] = {
        let breaks = ["CR": "\r", "LF": "\n", "CRLF": "\r\n"].sorted { $0.key < $1.key }
        return breaks.flatMap { first in
            breaks.flatMap { second in
                breaks.map { third in
                    let body = "data: a\(first.value)\(second.value)event: x\(third.value)data: b\(third.value)"
                    let isOneBreak = first.key == "CR" && second.key == "LF"
                    let events: [Event] =
                        isOneBreak ? [Event(type: "x", data: "a\nb")] : ["a", Event(type: "x", data: "b")]
                    return EventRow("\(first.key), \(second.key), \(third.key)", body + third.value, events)
                }
            }
        }
    }()

    /// Invalid UTF-8 and the number of U+FFFD that the WHATWG decoder replaces it with.
    private static let invalidBytes: [(name: String, bytes: [UInt8], count: Int)] = [
        ("lone continuation", [0x80], 1), ("invalid byte", [0xFF], 1), ("overlong, 2 bytes", [0xC0, 0xAF], 2),
        ("overlong, 3 bytes", [0xE0, 0x80, 0xAF], 3), ("overlong, 4 bytes", [0xF0, 0x80, 0x80, 0xAF], 4),
        ("surrogate", [0xED, 0xA0, 0x80], 3), ("above U+10FFFF", [0xF4, 0x90, 0x80, 0x80], 4),
        ("5 bytes", [0xF8, 0x88, 0x80, 0x80, 0x80], 5), ("truncated, 2 of 3", [0xE2, 0x82], 1),
        ("truncated, 3 of 4", [0xF0, 0x9F, 0x98], 1), ("truncated, 1 of 2", [0xC3], 1),
        ("two truncated", [0xF0, 0x9F, 0xE2, 0x82], 2), ("truncated twice", [0xF0, 0x9F, 0xF0, 0x9F, 0x98], 2),
    ]

    static let invalidText: [EventRow] = invalidBytes.map { row in
        let text = String(repeating: "\u{FFFD}", count: row.count)
        var body: [UInt8] = []
        for name in ["event:", "id:", "data:", "data: x"] { body += Array(name.utf8) + row.bytes + [0x0A] }
        let event = ExpectedEvent(type: text, data: "\(text)\nx\(text)", id: text)
        return EventRow("\(row.name)", bytes: body + [0x0A], [event], lastEventID: text)
    }
}
