/// A sequence of pseudorandom numbers that is determined by its seed (SplitMix64).
struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `bound` - 1, or 0 for a bound of 0.
    mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next() >> 33) % bound
    }
}

/// Creates inputs from seeds. Short inputs enter a pool, so that mutations accumulate.
struct Mutator {
    /// The maximum length of an input in bytes. Few inputs reach it.
    static let maximumLength = 64 << 10
    private static let interesting: [UInt8] = [0, 9, 10, 13, 32, 34, 37, 44, 47, 58, 59, 61, 92, 127, 128, 255]
    private static let common = [
        "\r\n", "\r\n ", "\n", "\0", "\u{FEFF}", "é", "\u{1F600}", "%00", "%2F", "%", "//", "..", "@", "\\", "\"", "'",
        "\\u0000", "-1", "0x10",
        "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e400", "[", "]", "{", "}",
        "<", ">", ";", ",", "=",
    ].map { Array($0.utf8) }

    private var random: Random
    private var pool: [[UInt8]]
    private let seedCount: Int
    private let tokens: [[UInt8]]

    init(_ target: FuzzTarget, seed: UInt64) {
        random = Random(state: target.name.utf8.reduce(seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
        pool = target.seeds + [[]]
        seedCount = pool.count
        tokens = target.tokens + Self.common
    }

    mutating func next() -> [UInt8] {
        var input = pool[random.below(pool.count)]
        for _ in 0...random.below(4) { mutate(&input) }
        if input.count > 4 << 10 { input.removeLast(input.count - 4 << 10) }
        if random.below(16) == 0, input.count <= 512 {
            if pool.count < seedCount + 64 { pool.append(input) } else { pool[seedCount + random.below(64)] = input }
        }
        switch random.below(16_384) {
        case 0: swell(&input, to: Self.maximumLength)
        case 1...16: swell(&input, to: 1 << (8 + random.below(6)))
        default: break
        }
        return input
    }

    private mutating func mutate(_ input: inout [UInt8]) {
        switch random.below(11) {
        case 0 where !input.isEmpty: input[random.below(input.count)] ^= 1 << UInt8(random.below(8))
        case 1 where !input.isEmpty:
            input[random.below(input.count)] = Self.interesting[random.below(Self.interesting.count)]
        case 2: input.removeSubrange(range(in: input))
        case 3: insert(Array(input[range(in: input)]), into: &input)
        case 4: input.removeLast(random.below(input.count + 1))
        case 5:
            let other = pool[random.below(pool.count)]
            insert(Array(other[range(in: other)]), into: &input)
        case 6:
            let other = pool[random.below(pool.count)]
            input = Array(input.prefix(random.below(input.count + 1)) + other.suffix(random.below(other.count + 1)))
        case 7:
            let piece = Array(input[range(in: input).prefix(8)])
            insert(Array(repeatElement(piece, count: 1 + random.below(64)).joined()), into: &input)
        case 8 where !input.isEmpty: input[random.below(input.count)] = UInt8(truncatingIfNeeded: random.next())
        case 9 where !input.isEmpty: input[random.below(input.count)] ^= 0x20
        default: insert(tokens[random.below(tokens.count)], into: &input)
        }
    }

    private mutating func range(in input: [UInt8]) -> Range<Int> {
        let start = random.below(input.count + 1)
        return start..<(start + random.below(min(input.count - start, 64) + 1))
    }

    private mutating func insert(_ bytes: [UInt8], into input: inout [UInt8]) {
        input.insert(contentsOf: bytes, at: random.below(input.count + 1))
    }

    /// Repeats a short part of the input up to a length: deep nesting, many fields, long values.
    private mutating func swell(_ input: inout [UInt8], to length: Int) {
        var piece = random.below(2) == 0 ? tokens[random.below(tokens.count)] : Array(input[range(in: input)])
        if piece.isEmpty { piece = [UInt8(truncatingIfNeeded: random.next())] }
        let count = (length - min(length, input.count)) / piece.count
        let place = random.below(input.count + 1)
        input.insert(contentsOf: repeatElement(piece, count: count).joined(), at: place)
    }
}
