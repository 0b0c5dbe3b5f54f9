import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("Violations of the protocol", .permit)
struct ViolationTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let violation: WebSocketViolation
        let bytes: [UInt8]
        var role = WebSocketRole.client
        var closeCode: UInt16 = 1002

        init(_ violation: WebSocketViolation, _ bytes: String, _ role: WebSocketRole = .client, code: UInt16 = 1002) {
            self.violation = violation
            self.bytes = hex(bytes)
            self.role = role
            closeCode = code
        }

        var testDescription: String { "\(violation): \(bytes)" }
    }

    static let cases: [Case] =
        ["c100", "a100", "9100", "f100", "c900", "a900", "4000"].map { Case(.reservedBit, $0) }
        + ["83", "84", "85", "86", "87", "8b", "8c", "8d", "8e", "8f", "03", "0b"].map {
            Case(.reservedOpcode, $0 + "00")
        }
        + [
            Case(.maskedFrame, "8180"), Case(.maskedFrame, "8980"),
            Case(.unmaskedFrame, "8100", .server), Case(.unmaskedFrame, "8800", .server),
            Case(.nonMinimalLength, "827e007d"), Case(.nonMinimalLength, "827e0000"),
            Case(.nonMinimalLength, "827f000000000000ffff"), Case(.nonMinimalLength, "827f0000000000000001"),
            Case(.nonMinimalLength, "82fe007d", .server),
            Case(.invalidLength, "827f8000000000000000"), Case(.invalidLength, "827fffffffffffffffff"),
            Case(.fragmentedControlFrame, "0900"), Case(.fragmentedControlFrame, "0800"),
            Case(.fragmentedControlFrame, "0a00"),
            Case(.longControlFrame, "897e"), Case(.longControlFrame, "887e"), Case(.longControlFrame, "8a7f"),
            Case(.unexpectedContinuation, "8000"), Case(.unexpectedContinuation, "0000"),
            Case(.missingContinuation, "0100 8100"), Case(.missingContinuation, "0200 0100"),
            Case(.incompleteCloseCode, "880103"),
            Case(.invalidReason, "880303e8ff", code: 1007), Case(.invalidReason, "880403e8e282", code: 1007),
            Case(.invalidText, "8101ff", code: 1007), Case(.invalidText, "0101e2 8001ff", code: 1007),
            Case(.invalidText, "8102e282", code: 1007), Case(.invalidText, "8102eda0", code: 1007),
            Case(.frameTooLarge, "827f0000000001000001", code: 1009),
            Case(.frameTooLarge, "827f7fffffffffffffff", code: 1009),
        ]
        + [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map {
            Case(.invalidCloseCode, "8802" + String(format: "%04x", $0))
        }

    @Test("A violation ends the connection with the code of the specification", arguments: cases)
    func violation(_ test: Case) {
        let endpoint = Endpoint(test.role)
        #expect(endpoint.receive(test.bytes) == [.failed(test.violation)])
        #expect(endpoint.frames() == [.close(test.closeCode)])
        #expect(endpoint.phase == .failed)
    }

    @Test("A violation is found regardless of how the bytes are split", arguments: cases)
    func split(_ test: Case) {
        let endpoint = Endpoint(test.role)
        #expect(endpoint.receive(test.bytes, by: 1) == [.failed(test.violation)])
        #expect(endpoint.frames() == [.close(test.closeCode)])
    }

    @Test("A violation is found at its last byte, and not before", arguments: cases)
    func lastByte(_ test: Case) {
        let endpoint = Endpoint(test.role)
        #expect(endpoint.receive(Array(test.bytes.dropLast())) == [])
        #expect(endpoint.phase == .open)
    }

    @Test("Each violation has a test")
    func completeness() {
        let elsewhere: Set<WebSocketViolation> = [
            .invalidCompression, .outOfMemory, .missingClose, .messageTooLarge, .tooManyFragments,
        ]
        #expect(elsewhere.union(Self.cases.map(\.violation)) == Set(WebSocketViolation.allCases))
    }

    @Test("Each violation has a description of its own")
    func descriptions() {
        #expect(Set(WebSocketViolation.allCases.map(\.description)).count == WebSocketViolation.allCases.count)
    }

    @Test("After a violation, bytes are ignored and nothing can be sent")
    func afterViolation() {
        let endpoint = Endpoint(.client)
        let events = endpoint.receive(hex("8300 8100"))
        #expect(events == [.failed(.reservedOpcode)])
        #expect(endpoint.receive(hex("8100")) == [])
        #expect(throws: WebSocketSendError.closed) { try endpoint.send("a") }
        #expect(throws: WebSocketSendError.closed) { try endpoint.ping(Data()) }
        #expect(throws: Never.self) { try endpoint.close(.normalClosure) }
        #expect(endpoint.connectionEnded() == nil)
        #expect(endpoint.frames() == [.close(1002)])
    }

    @Test("A violation replaces the output that waits")
    func replacedOutput() throws {
        let endpoint = Endpoint(.server)
        try endpoint.send("a")
        _ = endpoint.receive(hex("8100"))
        #expect(endpoint.frames() == [.close(1002)])
    }

    @Test("A violation after a Close frame sends no second one")
    func violationWhileClosing() throws {
        let endpoint = Endpoint(.client)
        try endpoint.close(.normalClosure)
        #expect(endpoint.receive(hex("8300")) == [.failed(.reservedOpcode)])
        #expect(endpoint.frames() == [.close(1000)])
    }

    @Test("The messages before a violation are received")
    func messagesBefore() {
        #expect(Endpoint(.client).receive(hex("810161 8300")) == [.message(.text("a")), .failed(.reservedOpcode)])
    }

    @Test("A control frame of 125 bytes is valid, also between fragments")
    func controlBetweenFragments() {
        let ping = TestFrame(9, [UInt8](repeating: 1, count: 125))
        let frames = [TestFrame(1, [0x61], flags: 0), ping, TestFrame(0, [0x62])]
        let events = Endpoint(.client).receive(frames.flatMap { $0.bytes(from: .server) })
        #expect(events == [.ping(Data(ping.payload)), .message(.text("ab"))])
    }
}

@Suite("Limits", .permit)
struct LimitTests {
    @Test("A frame larger than the limit is refused at its header")
    func frame() {
        let options = WebSocketOptions.make(limits: .make(frame: 300))
        #expect(Endpoint(.client, options).receive(hex("827e012c")) == [])
        #expect(Endpoint(.client, options).receive(hex("827e012d")) == [.failed(.frameTooLarge)])
    }

    @Test("A message larger than the limit is refused at the header of the fragment that exceeds it")
    func message() {
        let endpoint = Endpoint(.client, .make(limits: .make(message: 5)))
        #expect(endpoint.receive(hex("0203010203 0002 0405 8000")) == [.message(.data(Data([1, 2, 3, 4, 5])))])
        #expect(endpoint.receive(hex("0203010203 8003")) == [.failed(.messageTooLarge)])
        #expect(endpoint.frames() == [.close(1009)])
    }

    @Test("A message with more fragments than the limit is refused")
    func fragments() {
        let endpoint = Endpoint(.client, .make(limits: .make(fragments: 3)))
        #expect(endpoint.receive(hex("0200 0000 8000")) == [.message(.data(Data()))])
        #expect(endpoint.receive(hex("0200 0000 0000 8000")) == [.failed(.tooManyFragments)])
        #expect(endpoint.frames() == [.close(1008)])
    }
}
