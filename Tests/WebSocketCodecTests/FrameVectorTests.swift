import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

/// The examples of RFC 6455, section 5.7.
@Suite("Frames", .permit)
struct FrameVectorTests {
    @Test("An unmasked text message is received")
    func unmaskedText() {
        #expect(Endpoint(.client).receive(hex("810548656c6c6f")) == [.message(.text("Hello"))])
    }

    @Test("A masked text message is received")
    func maskedText() {
        #expect(Endpoint(.server).receive(hex("818537fa213d7f9f4d5158")) == [.message(.text("Hello"))])
    }

    @Test("A fragmented text message is received")
    func fragments() {
        #expect(Endpoint(.client).receive(hex("010348656c 80026c6f")) == [.message(.text("Hello"))])
    }

    @Test("A ping is received, and its response has the same payload")
    func ping() {
        let endpoint = Endpoint(.client)
        #expect(endpoint.receive(hex("890548656c6c6f")) == [.ping(Data("Hello".utf8))])
        #expect(endpoint.frames() == [TestFrame(10, Array("Hello".utf8))])
    }

    @Test("A masked pong is received")
    func maskedPong() {
        #expect(Endpoint(.server).receive(hex("8a8537fa213d7f9f4d5158")) == [.pong(Data("Hello".utf8))])
    }

    @Test(
        "Data of 256 bytes has a length of 16 bits, and data of 64 KiB one of 64 bits",
        arguments: [
            ("827e0100", 256), ("827f0000000000010000", 65_536),
        ])
    func lengths(header: String, length: Int) throws {
        let data = Data(repeating: 7, count: length)
        #expect(Endpoint(.client).receive(hex(header) + data) == [.message(.data(data))])
        let server = Endpoint(.server)
        try server.send(.data(data))
        #expect(server.output() == hex(header) + data)
    }

    @Test("A server sends a text message without a mask")
    func serverText() throws {
        let server = Endpoint(.server)
        try server.send("Hello")
        #expect(server.output() == hex("810548656c6c6f"))
    }

    @Test("A client sends a header with the bytes of the key in order, and the masked payload")
    func clientText() {
        var output = Data()
        let header = FrameHeader(.text, maskingKey: MaskingKey(0x37FA_213D))
        FrameHeader.append(header, Array("Hello".utf8), to: &output)
        #expect([UInt8](output) == hex("818537fa213d7f9f4d5158"))
    }

    @Test("The masking keys of a client differ")
    func keys() throws {
        let client = Endpoint(.client)
        try client.send("a")
        try client.send("a")
        let output = client.output()
        #expect(output.count == 14)
        #expect(output.prefix(7) != output.suffix(7))
    }

    @Test(
        "The boundaries of the lengths are encoded with as few bytes as possible",
        arguments: [
            (0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10),
        ])
    func minimalLengths(length: Int, size: Int) throws {
        let server = Endpoint(.server)
        let message = WebSocketMessage.data(Data(repeating: 1, count: length))
        try server.send(message)
        let output = server.output()
        #expect(output.count == size + length)
        #expect(Endpoint(.client).receive(output) == [.message(message)])
    }

    @Test("A mask is applied to each byte at every offset and length")
    func masking() {
        let key = MaskingKey(0x0102_0408)
        let bytes: [UInt8] = [1, 2, 4, 8]
        for offset in 0..<9 {
            for length in 0..<40 {
                var masked = [UInt8](repeating: 0x40, count: length)
                masked.withUnsafeMutableBytes { key.apply(to: $0, at: offset) }
                #expect(masked == (0..<length).map { 0x40 ^ bytes[(offset + $0) % 4] }, "\(offset), \(length)")
            }
        }
    }

    @Test("A large message is sent in fragments, of which only the first has an opcode")
    func sentFragments() throws {
        let server = Endpoint(.server, .make(sentFrame: 4))
        try server.send("123456789")
        let expected = [
            TestFrame(1, Array("1234".utf8), flags: 0), TestFrame(0, Array("5678".utf8), flags: 0),
            TestFrame(0, Array("9".utf8)),
        ]
        #expect(server.frames() == expected)
    }

    @Test("The output is split between frames, and pongs are first")
    func outputOrder() throws {
        let server = Endpoint(.server, .make(sentFrame: 4))
        try server.send("12345678")
        #expect(server.takeOutput(minimumCount: 1).map { [UInt8]($0) } == hex("010431323334"))
        _ = server.receive(TestFrame(9).bytes(from: .client))
        #expect(server.outputCount == 8)
        #expect(server.takeOutput(minimumCount: 1).map { [UInt8]($0) } == hex("8a00"))
        #expect(server.takeOutput(minimumCount: 1).map { [UInt8]($0) } == hex("800435363738"))
        #expect(server.takeOutput(minimumCount: 1) == nil)
        #expect(server.outputCount == 0)
    }

    @Test("An event ends the bytes that are consumed")
    func oneEvent() {
        let (event, rest) = Endpoint(.client).receiveOne(hex("8900 8a00 8900"))
        #expect(event == .ping(Data()))
        #expect(rest == 4)
    }
}
