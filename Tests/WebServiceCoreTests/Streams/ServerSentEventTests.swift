import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct ServerSentEventTests {
    @Test("The data of an event is decoded as JSON")
    func decoding() throws {
        #expect(try ServerSentEvent(data: "[1,\n2]").decode([Int].self) == [1, 2])
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        let date: Date = try ServerSentEvent(data: "5").decode(decoder: decoder)
        #expect(date == Date(timeIntervalSince1970: 5))
    }

    @Test("Data that cannot be decoded is a typed error that contains the data", arguments: ["", "[1", "[DONE]", "{}"])
    func malformedData(data: String) throws {
        let error = try #require(throws: WebServiceError.self) { try ServerSentEvent(data: data).decode([Int].self) }
        #expect(error.code == .decoding)
        #expect(error.body == Data(data.utf8))
        #expect(error.underlying is DecodingError)
        #expect(error.message.hasPrefix("Array<Int> cannot be decoded from the data of an event"))
    }

    @Test("The type of an event defaults to message")
    func defaults() {
        let event = ServerSentEvent(data: "a")
        #expect(event.type == "message")
        #expect(event.data == "a")
        #expect(event.id == "")
        #expect(event.retry == nil)
    }
}
