import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

@Suite("Both roles", .permit)
struct RoundTripTests {
    private static func message(_ generator: inout SeededGenerator) -> WebSocketMessage {
        let scalars: [Unicode.Scalar] = ["a", "b", "é", "€", "😀"]
        let length = [0, 1, 5, 125, 126, 300, 5_000, 70_000].randomElement(using: &generator) ?? 0
        if Bool.random(using: &generator) {
            var text = String.UnicodeScalarView()
            for _ in 0..<length { text.append(scalars.randomElement(using: &generator) ?? "a") }
            return .text(String(text))
        }
        let isNoise = Bool.random(using: &generator)
        return .data(Data((0..<length).map { _ in isNoise ? UInt8.random(in: 0...255, using: &generator) : 7 }))
    }

    private static func options(_ generator: inout SeededGenerator) -> WebSocketOptions {
        let deflate = DeflateParameters.make(
            serverNoContext: .random(using: &generator), clientNoContext: .random(using: &generator),
            serverBits: .random(in: 8...15, using: &generator), clientBits: .random(in: 8...15, using: &generator))
        return .make(
            deflate: Int.random(in: 0..<4, using: &generator) == 0 ? nil : deflate,
            minimumCompressed: [0, 64].randomElement(using: &generator) ?? 0,
            sentFrame: [1 << 10, 128 << 10].randomElement(using: &generator) ?? 1)
    }

    @Test(
        "Random messages and pings arrive with random options and splits",
        arguments: 0..<UInt64(amount(8, thorough: 40)))
    func random(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let options = Self.options(&generator)
        for role in WebSocketRole.allCases {
            let (sender, receiver) = (Endpoint(role, options), Endpoint(role.peer, options))
            var expected: [WebSocketEvent] = []
            for number in UInt8(0)..<8 {
                let message = Self.message(&generator)
                try sender.send(message)
                try sender.ping(Data([number]))
                expected += [.message(message), .ping(Data([number]))]
            }
            try sender.close(.goingAway, reason: "end")
            let bytes = sender.output()
            let events = receiver.receive(bytes, by: .random(in: 1..<20_000, using: &generator))
            #expect(events == expected + [.closed(WebSocketClosure(.goingAway, reason: "end"))])
            let responses = sender.receive(receiver.output())
            #expect(responses == (UInt8(0)..<8).map { .pong(Data([$0])) } + [.closed(WebSocketClosure(.goingAway))])
            #expect(sender.phase == .closed)
        }
    }

    @Test("Messages of each fragment and read size arrive", arguments: WebSocketRole.allCases)
    func everySplit(role: WebSocketRole) throws {
        let text = "Aé€😀 and a longer part, a longer part"
        for frameSize in 1..<12 {
            let options = WebSocketOptions.make(deflate: frameSize % 2 == 0 ? .make() : nil, sentFrame: frameSize)
            let sender = Endpoint(role, options)
            try sender.send(text)
            let bytes = sender.output()
            for size in 1..<16 {
                #expect(Endpoint(role.peer, options).receive(bytes, by: size) == [.message(.text(text))])
            }
        }
    }
}
