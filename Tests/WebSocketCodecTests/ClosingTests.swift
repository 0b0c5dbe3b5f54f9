import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("Closing", .permit)
struct ClosingTests {
    @Test("The Close frame of the peer is received, and the response has its code", arguments: WebSocketRole.allCases)
    func peerCloses(role: WebSocketRole) {
        let endpoint = Endpoint(role)
        let events = endpoint.receive(TestFrame.close(1001, "bye é").bytes(from: role.peer))
        #expect(events == [.closed(WebSocketClosure(.goingAway, reason: "bye é"))])
        #expect(endpoint.frames() == [.close(1001)])
        #expect(endpoint.phase == .closed)
    }

    @Test("An empty Close frame has an empty response")
    func emptyClose() {
        let endpoint = Endpoint(.client)
        #expect(endpoint.receive(hex("8800")) == [.closed(nil)])
        #expect(endpoint.frames() == [TestFrame(8)])
    }

    @Test(
        "The valid codes are received",
        arguments: [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
        ] as [UInt16])
    func validCodes(code: UInt16) {
        let closure = WebSocketClosure(WebSocketClosure.Code(rawValue: code))
        #expect(Endpoint(.client).receive(TestFrame.close(code).bytes(from: .server)) == [.closed(closure)])
    }

    @Test("A Close frame is sent once, and its response ends the connection")
    func close() throws {
        let endpoint = Endpoint(.client)
        try endpoint.close(.normalClosure, reason: "done")
        try endpoint.close(.goingAway)
        #expect(endpoint.phase == .closing)
        #expect(endpoint.frames() == [.close(1000, "done")])
        let events = endpoint.receive(TestFrame.close(1000).bytes(from: .server))
        #expect(events == [.closed(WebSocketClosure(.normalClosure))])
        #expect(endpoint.phase == .closed)
        #expect(endpoint.frames() == [])
    }

    @Test("After a Close frame was sent, nothing else is sent, and messages are received")
    func whileClosing() throws {
        let endpoint = Endpoint(.client)
        try endpoint.close(.normalClosure)
        #expect(throws: WebSocketSendError.closed) { try endpoint.send("a") }
        #expect(throws: WebSocketSendError.closed) { try endpoint.ping(Data()) }
        #expect(endpoint.receive(hex("8900 810161")) == [.ping(Data()), .message(.text("a"))])
        #expect(endpoint.frames() == [.close(1000)])
    }

    @Test("Bytes after the peer's Close frame are ignored")
    func afterClose() {
        let endpoint = Endpoint(.client)
        #expect(endpoint.receive(hex("8800 810161 8300")) == [.closed(nil)])
        #expect(endpoint.receive(hex("8900")) == [])
        #expect(endpoint.frames() == [TestFrame(8)])
    }

    @Test("Both endpoints can send a Close frame at the same time")
    func simultaneous() throws {
        let (client, server) = (Endpoint(.client), Endpoint(.server))
        try client.close(.normalClosure)
        try server.close(.goingAway)
        let (fromClient, fromServer) = (client.output(), server.output())
        #expect(client.receive(fromServer) == [.closed(WebSocketClosure(.goingAway))])
        #expect(server.receive(fromClient) == [.closed(WebSocketClosure(.normalClosure))])
        #expect(client.output() + server.output() == [])
    }

    @Test("The messages before a Close frame are sent before it")
    func messagesBefore() throws {
        let endpoint = Endpoint(.server)
        try endpoint.send("a")
        try endpoint.close(.normalClosure)
        #expect(endpoint.frames() == [.text("a"), .close(1000)])
    }

    @Test("Codes that cannot be sent are refused", arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000])
    func invalidCode(code: UInt16) {
        let endpoint = Endpoint(.client)
        #expect(throws: WebSocketSendError.invalidCloseCode) {
            try endpoint.close(WebSocketClosure.Code(rawValue: code))
        }
        #expect(endpoint.phase == .open)
    }

    @Test("A reason has at most 123 bytes of UTF-8")
    func reason() throws {
        let endpoint = Endpoint(.server)
        #expect(throws: WebSocketSendError.reasonTooLong) {
            try endpoint.close(.normalClosure, reason: String(repeating: "é", count: 62))
        }
        try endpoint.close(.normalClosure, reason: String(repeating: "x", count: 123))
        #expect(endpoint.output().count == 127)
    }

    @Test("A connection that ends without a Close frame has failed, once", arguments: [true, false])
    func endWithoutClose(isClosing: Bool) throws {
        let endpoint = Endpoint(.client)
        if isClosing { try endpoint.close(.normalClosure) }
        _ = endpoint.output()
        #expect(endpoint.connectionEnded() == .failed(.missingClose))
        #expect(endpoint.connectionEnded() == nil)
        #expect(endpoint.output() == [])
    }

    @Test("A connection that ends after the Close frames has not failed")
    func endAfterClose() {
        let endpoint = Endpoint(.client)
        _ = endpoint.receive(hex("8800"))
        #expect(endpoint.connectionEnded() == nil)
    }

    @Test("A Close frame between fragments ends the connection")
    func betweenFragments() {
        #expect(Endpoint(.client).receive(hex("010161 8800 800162")) == [.closed(nil)])
    }

    @Test("A ping has at most 125 bytes")
    func ping() throws {
        let endpoint = Endpoint(.server)
        #expect(throws: WebSocketSendError.payloadTooLong) { try endpoint.ping(Data(count: 126)) }
        try endpoint.ping(Data(count: 125))
        #expect(endpoint.frames() == [TestFrame(9, [UInt8](repeating: 0, count: 125))])
    }
}
