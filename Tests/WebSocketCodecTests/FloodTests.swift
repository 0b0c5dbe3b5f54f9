import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

/// A peer controls the number of frames: memory is bounded, and time is linear.
@Suite("Floods of frames", .exclusive)
struct FloodTests {
    /// Returns the ratio of the processor times per frame for many and for few frames.
    private func growth(_ frames: (Int) -> [UInt8]) -> Double {
        func time(_ count: Int) -> Double {
            let bytes = frames(count)
            return (0..<3).map { _ in
                let endpoint = Endpoint(.client)
                return processorTime { _ = endpoint.receive(bytes, by: 16 << 10) } / Double(count)
            }.min() ?? 0
        }
        let few = time(4_000)
        return time(64_000) / few
    }

    @Test("A flood of pings has a few pongs, the last of which is for the latest ping")
    func pings() {
        let endpoint = Endpoint(.client)
        let count = 10_000
        for number in 0..<count {
            _ = endpoint.receive(TestFrame(9, Array("\(number)".utf8)).bytes(from: .server))
        }
        #expect(endpoint.outputCount < 16 * 20)
        let frames = endpoint.frames()
        #expect(frames == (count - 16..<count).map { TestFrame(10, Array("\($0)".utf8)) })
    }

    @Test("A ping that is received while its predecessor waits has a pong of its own")
    func fewPings() {
        let endpoint = Endpoint(.server)
        let pings = (0..<10).map { TestFrame(9, [$0]) }
        _ = endpoint.receive(pings.flatMap { $0.bytes(from: .client) })
        #expect(endpoint.frames() == (0..<10).map { TestFrame(10, [$0]) })
    }

    @Test("Pings in any number are received in linear time")
    func pingTime() {
        #expect(growth { Array(repeatElement(hex("890161"), count: $0).joined()) } < 3)
    }

    @Test("Empty fragments in any number are received in linear time")
    func emptyFragments() {
        #expect(growth { hex("0100") + Array(repeatElement(hex("0000"), count: $0).joined()) } < 3)
    }

    @Test("Fragments of one byte in any number are received in linear time")
    func tinyFragments() {
        #expect(growth { hex("0100") + Array(repeatElement(hex("000161"), count: $0).joined()) } < 3)
    }

    @Test("Tiny messages in any number are received in linear time")
    func tinyMessages() {
        #expect(growth { Array(repeatElement(hex("810161"), count: $0).joined()) } < 3)
    }

    @Test("A message that arrives in single bytes is received in linear time")
    func singleBytes() {
        func time(_ count: Int) -> Double {
            let bytes = TestFrame(2, [UInt8](repeating: 1, count: count)).bytes(from: .server)
            return (0..<3).map { _ in
                let endpoint = Endpoint(.client)
                return processorTime { _ = endpoint.receive(bytes, by: 1) } / Double(count)
            }.min() ?? 0
        }
        #expect(time(320_000) / time(20_000) < 3)
    }

    @Test("The length of a header allocates no memory")
    func announcedLength() {
        let endpoints = (0..<10_000).map { _ in Endpoint(.client) }
        let header = hex("827f0000000001000000")
        #expect(endpoints.allSatisfy { $0.receive(header).isEmpty })
        #expect(endpoints.allSatisfy { $0.phase == .open })
    }
}
