import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct ServerSentEventParserTests {
    private func check(_ row: EventRow) {
        for chunks in Chunks.standard(row.body) {
            var parser = ServerSentEventParser()
            let result = parser.parse(chunks)
            #expect(result.elements == row.events, "\(chunks.map(\.count))")
            #expect(result.error == nil, "\(chunks.map(\.count))")
            #expect(parser.lastEventID == row.lastEventID, "\(chunks.map(\.count))")
            #expect(parser.reconnectionTime == row.reconnectionTime, "\(chunks.map(\.count))")
        }
    }

    @Test("The rules of the standard apply, however the stream is divided", arguments: EventRow.standard)
    func standard(row: EventRow) { check(row) }

    @Test(
        "Every pair of line breaks is recognized, however the stream is divided",
        arguments: EventRow.lineBreaks)
    func lineBreaks(row: EventRow) { check(row) }

    @Test("Invalid UTF-8 is replaced as the standard specifies", arguments: EventRow.invalidText)
    func invalidText(row: EventRow) { check(row) }

    @Test("A CRLF that is divided between two chunks is one line break")
    func dividedLineBreak() throws {
        var parser = ServerSentEventParser()
        for chunk in ["data: a\r", "", "\ndata: b\r", "\n", "\r", "\ndata: c\r\n", "\r"] {
            parser.append(Data(chunk.utf8))
        }
        #expect(try parser.next()?.data == "a\nb")
        #expect(try parser.next()?.data == "c")
        #expect(try parser.next() == nil)
    }

    @Test("A CR at the end of the bytes dispatches the event immediately")
    func promptness() throws {
        for body in ["data: a\r\r", "data: a\n\r", "data: a\r\n\r", "data: a\n\n", "data: a\r\n\r\n"] {
            var parser = ServerSentEventParser()
            parser.append(Data(body.utf8))
            #expect(try parser.next()?.data == "a", "\(body.debugDescription)")
            parser.append(Data("\ndata: b\n\n".utf8))
            #expect(try parser.next()?.data == "b", "\(body.debugDescription)")
        }
    }

    @Test("The last event ID of an earlier connection applies until the stream sets one")
    func earlierID() {
        var parser = ServerSentEventParser(lastEventID: "5")
        #expect(parser.lastEventID == "5")
        #expect(parser.parse([Data("data: a\n\n".utf8)]).elements == [ServerSentEvent(data: "a", id: "5")])
        #expect(parser.parse([Data("id\ndata: a\n\n".utf8)]).elements == [ServerSentEvent(data: "a")])
        #expect(parser.lastEventID == "")
    }

    @Test("The ID of an event becomes the last event ID only when the event is dispatched")
    func uncommittedID() {
        var parser = ServerSentEventParser()
        #expect(parser.parse([Data("id: 1\ndata: a\n\nid: 2\ndata: b\n".utf8)]).elements.count == 1)
        #expect(parser.lastEventID == "1")
        #expect(parser.parse([Data("\n".utf8)]).elements == [ServerSentEvent(data: "b", id: "2")])
        #expect(parser.lastEventID == "2")
    }

    @Test("An event, line or comment that exceeds the limit is an error, after the events before it")
    func limit() {
        let limit = 8
        for body in ["data:1234567\n\n", "data:12\ndata\n\n", ":1234567\n\n", "id:12345\n\ndata:a\n\n"] {
            for chunks in Chunks.standard(Data(body.utf8)) {
                let result = ServerSentEventParser(maximumSize: 12).result(of: chunks)
                #expect(result.error == nil, "\(body.debugDescription)")
            }
        }
        for body in ["data:1234", "data:12\ndata:12\n\n", ":12345678", "event:123\n"] {
            for chunks in Chunks.standard(Data("data:a\n\n\(body)".utf8)) {
                let result = ServerSentEventParser(maximumSize: limit).result(of: chunks)
                #expect(
                    result.elements.map(\.data) == ["a"],
                    "\(body.debugDescription)")
                #expect(
                    result.error?.code == .elementTooLarge,
                    "\(body.debugDescription)")
            }
        }
    }

    @Test("Parsing one line in small chunks, or lines that end with CR, takes linear time")
    func linear() {
        func time(_ body: (Int) -> Data, _ size: Int) -> Double {
            let chunks = Chunks.of(1_460, body(size))
            let times = (0..<3).map { _ in
                processorTime { #expect(ServerSentEventParser().result(of: chunks).elements.count == 1) }
            }
            return times.min() ?? 0
        }
        let line: (Int) -> Data = { Data("data: ".utf8) + Data(repeating: 0x61, count: $0) + Data("\n\n".utf8) }
        // Quadratic time would be 256 times as long.
        let small = time(line, 512 << 10)
        let large = time(line, 8 << 20)
        #expect(large <= small * 64, "\(small) s, \(large) s")
        #expect(large <= 0.5, "\(small) s, \(large) s")
        let lines: (Int) -> Data = {
            Data(String(repeating: "data:aaaaaaaaaa\r", count: $0 / 16).utf8) + Data("\r".utf8)
        }
        let few = time(lines, 32 << 10)
        let many = time(lines, 512 << 10)
        #expect(many <= few * 64, "\(few) s, \(many) s")
    }

    @Test("Random streams result in the same events, however they are divided")
    func mutations() {
        var generator = SeededGenerator(seed: 9_206)
        let seeds = (EventRow.standard + EventRow.lineBreaks + EventRow.invalidText).map(\.body).filter {
            $0.count < 200
        }
        let tokens = ["\r", "\n", "\r\n", "data", "data: ", "id:", "event:", "retry:9", ":", " ", "\0", "\u{FEFF}"]
            .map { Data($0.utf8) }
        var events = 0
        let count = amount(4_000, thorough: 20_000)
        for _ in 0..<count {
            let body = Mutation.of(seeds.randomElement(using: &generator) ?? Data(), tokens: tokens, &generator)
            let chunks = Chunks.random(body, &generator)
            var whole = ServerSentEventParser(maximumSize: 64)
            var divided = whole
            let expected = whole.parse([body])
            let result = divided.parse(chunks)
            events += expected.elements.count
            guard
                result != expected || whole.lastEventID != divided.lastEventID
                    || whole.reconnectionTime != divided.reconnectionTime
            else { continue }
            Issue.record("\(body.base64EncodedString()) in chunks of \(chunks.map(\.count))")
            return
        }
        #expect(events > count / 2, "\(events) events are too few to compare")
    }
}
