import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebSocketCodec

/// Mutated sequences of frames. `Tests/Fuzz` runs more of them.
@Suite("Mutated frames", .permit(minutes: 10))
struct MutationTests {
    private static let seeds: [[UInt8]] = [
        "810548656c6c6f 890161 8a00", "010348656c 890161 80026c6f", "c107f248cdc9c90700 c105f200110000",
        "4103f248cd 8004c9c90700", "c10b000500faff48656c6c6f00", "c108f348cdc9c9070000", "827e0080", "880303e861 8100",
        "818537fa213d7f9f4d5158 890000000000", "c187 00000000 f248cdc9c90700 8180 01020304", "82fe0080 01020304",
        "827f0000000000010000 01", "8105e282ace282 0101f0 80039f9880",
    ].map(hex)

    private static func mutated(_ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = seeds.randomElement(using: &generator) ?? []
        if generator.next() % 4 == 0 { bytes += seeds.randomElement(using: &generator) ?? [] }
        for _ in 0...generator.next() % 4 {
            let index = Int(generator.next() % UInt64(bytes.count + 1))
            switch generator.next() % 5 {
            case 0 where index < bytes.count: bytes[index] ^= 1 << UInt8(generator.next() % 8)
            case 1 where index < bytes.count: bytes[index] = UInt8(truncatingIfNeeded: generator.next())
            case 2: bytes.insert(UInt8(truncatingIfNeeded: generator.next()), at: index)
            case 3 where index < bytes.count: bytes.remove(at: index)
            default: bytes.append(contentsOf: bytes.prefix(index))
            }
        }
        return bytes
    }

    private static func endpoint(_ role: WebSocketRole) -> Endpoint {
        Endpoint(role, .make(deflate: .make(), limits: .make(frame: 1 << 17, message: 1 << 16, fragments: 20)))
    }

    /// The size of the messages of an event, in bytes.
    private static func size(_ event: WebSocketEvent) -> Int {
        switch event {
        case .message(.text(let text)): text.utf8.count
        case .message(.data(let data)), .ping(let data), .pong(let data): data.count
        case .closed, .failed: 0
        }
    }

    @Test("No sequence traps, and its events do not depend on how it is split", arguments: 0..<10)
    func mutations(part: UInt64) {
        var generator = SeededGenerator(seed: part)
        var findings: [[UInt8]] = []
        for number in 0..<amount(5_000, thorough: 100_000) {
            let bytes = Self.mutated(&generator)
            let role: WebSocketRole = generator.next() % 2 == 0 ? .client : .server
            let endpoint = Self.endpoint(role)
            let events = endpoint.receive(bytes)
            let hasEnded = endpoint.phase == .failed || endpoint.phase == .closed
            let isEnd =
                events.last.map { event in
                    switch event {
                    case .failed, .closed: true
                    case .message, .ping, .pong: false
                    }
                } ?? false
            if isEnd != hasEnded || events.contains(where: { Self.size($0) > 1 << 16 }) { findings.append(bytes) }
            guard number % 8 == 0 else { continue }
            let split = Self.endpoint(role)
            let size = Int(generator.next() % 5) + 1
            if split.receive(bytes, by: size) != events || split.output() != endpoint.output() {
                findings.append(bytes)
            }
        }
        #expect(findings == [])
    }
}
