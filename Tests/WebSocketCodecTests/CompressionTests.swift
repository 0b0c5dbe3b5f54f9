import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("permessage-deflate", .permit)
struct CompressionTests {
    private static let hello = hex("f248cdc9c90700")

    private func client(_ deflate: DeflateParameters = .make(), limits: WebSocketLimits = .make()) -> Endpoint {
        Endpoint(.client, .make(deflate: deflate, limits: limits))
    }

    @Test(
        "The examples of RFC 7692, section 7.2.3, are received",
        arguments: [
            "c107 f248cdc9c90700",  // one block
            "4103 f248cd 8004 c9c90700",  // two fragments
            "c10b 000500faff48656c6c6f00",  // no compression
            "c108 f348cdc9c9070000",  // BFINAL
            "c10d f24805000000ffffcac9c90700",  // two blocks
        ])
    func examples(frames: String) {
        for size in [1, 3, 100] {
            #expect(client().receive(hex(frames), by: size) == [.message(.text("Hello"))])
        }
    }

    @Test("The second message of the example refers to the first one")
    func contextTakeover() {
        let endpoint = client()
        #expect(endpoint.receive(hex("c107 f248cdc9c90700")) == [.message(.text("Hello"))])
        #expect(endpoint.receive(hex("c105 f200110000")) == [.message(.text("Hello"))])
    }

    @Test("Without context takeover, a message cannot refer to the one before it")
    func noContextTakeover() {
        let endpoint = client(.make(serverNoContext: true))
        #expect(endpoint.receive(hex("c107 f248cdc9c90700")) == [.message(.text("Hello"))])
        #expect(endpoint.receive(hex("c105 f200110000")) == [.failed(.invalidCompression)])
        #expect(endpoint.frames() == [.close(1007)])
    }

    @Test(
        "A sender produces the examples, with and without context takeover",
        arguments: [
            (false, "f200110000"), (true, "f248cdc9c90700"),
        ])
    func sender(isIndependent: Bool, second: String) throws {
        let endpoint = Endpoint(.server, .make(deflate: .make(serverNoContext: isIndependent)))
        try endpoint.send("Hello")
        try endpoint.send("Hello")
        let expected = [Self.hello, hex(second)].map { TestFrame(1, $0, flags: 0b1100) }
        #expect(endpoint.frames() == expected)
    }

    @Test("An empty message is sent as one byte, and received in each form", arguments: ["c10100", "c1020200", "c100"])
    func empty(frame: String) throws {
        let endpoint = Endpoint(.server, .make(deflate: .make()))
        try endpoint.send("")
        try endpoint.send("")
        #expect(endpoint.output() == hex("c10100 c10100"))
        let receiver = client()
        #expect(receiver.receive(hex(frame)) == [.message(.text(""))])
        #expect(receiver.receive(hex("c107 f248cdc9c90700")) == [.message(.text("Hello"))])
    }

    @Test("A block with BFINAL can be the last bytes of a message, and others follow")
    func finalBlock() {
        let endpoint = client()
        #expect(endpoint.receive(hex("c107 f348cdc9c90700")) == [.message(.text("Hello"))])
        #expect(endpoint.receive(hex("c107 f248cdc9c90700")) == [.message(.text("Hello"))])
    }

    @Test("Messages that are not compressed can be between those that are")
    func mixed() {
        let events = client().receive(hex("c107f248cdc9c90700 810161 c105f200110000"))
        #expect(events == [.message(.text("Hello")), .message(.text("a")), .message(.text("Hello"))])
    }

    @Test("Small messages are sent uncompressed")
    func smallMessages() throws {
        let endpoint = Endpoint(.server, .make(deflate: .make(), minimumCompressed: 6))
        try endpoint.send("Hello")
        try endpoint.send("Hello!")
        #expect(endpoint.frames().map(\.first) == [0x81, 0xC1])
    }

    @Test(
        "RSV1 is reserved in continuations and control frames", arguments: ["4100 4000", "4100 c000", "c900", "c800"])
    func reservedBit(frames: String) {
        #expect(client().receive(hex(frames)) == [.failed(.reservedBit)])
    }

    @Test(
        "Bytes that are not compressed end the connection",
        arguments: [
            "c102ffff",  // reserved block type
            "c10607000000ffff",  // BFINAL and reserved block type
            "c103f24800",  // the message ends within a block
            "c106f248cdc9c907",  // without the header of the empty block
            "c105f200118000",  // a distance beyond the start
        ])
    func invalidBytes(frame: String) {
        let endpoint = client()
        let events = endpoint.receive(hex(frame))
        #expect(events == [.failed(.invalidCompression)])
        #expect(endpoint.frames() == [.close(1007)])
    }

    @Test("Compressed text fails at the first byte that is not UTF-8, before the end of the message")
    func invalidText() throws {
        let sender = Endpoint(.server, .make(deflate: .make()))
        let text = String(repeating: "a", count: 100_000)
        try sender.send(.data(Data(text.utf8) + [0xFF] + Data(text.utf8)))
        let frames = sender.frames().map { TestFrame(1, $0.payload, flags: 0b1100) }
        let bytes = frames.flatMap { $0.bytes(from: .server) }
        let receiver = client()
        #expect(receiver.receive(Array(bytes.dropLast(4))) == [.failed(.invalidText)])
    }

    @Test("Text before bytes that are not compressed is validated first, however they are split", arguments: 1...16)
    func invalidTextAndBytes(size: Int) {
        let bytes = hex("c10b 000500faff48ff656c6c06")
        #expect(client().receive(bytes, by: size) == [.failed(.invalidText)])
    }

    @Test("A message that is larger than the limit after decompression is refused", arguments: WebSocketRole.allCases)
    func bomb(role: WebSocketRole) throws {
        let sender = Endpoint(role.peer, .make(deflate: .make()))
        try sender.send(.data(Data(count: 8 << 20)))
        let bytes = sender.output()
        #expect(bytes.count < 10_000)
        let receiver = Endpoint(role, .make(deflate: .make(), limits: .make(message: (8 << 20) - 1)))
        #expect(receiver.receive(bytes) == [.failed(.messageTooLarge)])
        #expect(receiver.frames() == [.close(1009)])
        let other = Endpoint(role, .make(deflate: .make(), limits: .make(message: 8 << 20)))
        #expect(other.receive(bytes) == [.message(.data(Data(count: 8 << 20)))])
    }

    @Test("Each window size is applied by the sender", arguments: 9...15)
    func windows(bits: Int) throws {
        var generator = SeededGenerator(seed: 3)
        let noise = Data((0..<(1 << bits)).map { _ in UInt8.random(in: 0...255, using: &generator) })
        let message = WebSocketMessage.data(noise + noise)
        let sender = Endpoint(.server, .make(deflate: .make(serverBits: bits)))
        try sender.send(message)
        let bytes = sender.output()
        #expect(bytes.count > noise.count * 2 - 400)
        #expect(client(.make(serverBits: bits)).receive(bytes) == [.message(message)])
    }

    @Test("With the smallest window, which zlib does not support, messages are sent uncompressed, and received")
    func smallestWindow() throws {
        let sender = Endpoint(.server, .make(deflate: .make(serverBits: 8)))
        try sender.send("Hello")
        #expect(sender.output() == hex("810548656c6c6f"))
        let receiver = client(.make(serverBits: 8))
        #expect(receiver.receive(hex("c107f248cdc9c90700")) == [.message(.text("Hello"))])
    }

    @Test("Without zlib, messages are sent uncompressed, and a compressed one ends the connection")
    func withoutZlib() throws {
        let endpoint = Endpoint(.server, .make(deflate: .make()), zlib: nil)
        try endpoint.send("Hello")
        #expect(endpoint.output() == hex("810548656c6c6f"))
        let events = endpoint.receive(TestFrame(1, Self.hello, flags: 0b1100).bytes(from: .client))
        #expect(events == [.failed(.outOfMemory)])
        #expect(endpoint.frames() == [.close(1011)])
    }

    @Test("Masked messages larger than the buffer are decompressed")
    func largeMaskedMessage() throws {
        var generator = SeededGenerator(seed: 5)
        let data = Data((0..<100_001).map { _ in UInt8.random(in: 0...255, using: &generator) })
        let sender = Endpoint(.client, .make(deflate: .make()))
        try sender.send(.data(data))
        let bytes = sender.output()
        #expect(Endpoint(.server, .make(deflate: .make())).receive(bytes, by: 40_000) == [.message(.data(data))])
    }
}
