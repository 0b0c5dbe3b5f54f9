/// A parser of bytes from a peer, with seed inputs and the properties that hold for every input.
struct FuzzTarget: Sendable {
    let name: String
    /// The number of inputs relative to that of the other targets.
    var share = 10
    /// The number of runs of the code under test per check. Multiplies the limit of processor time.
    var runs = 1
    let seeds: [[UInt8]]
    /// Byte sequences that mutations insert.
    var tokens: [[UInt8]] = []
    /// Throws a ``Finding`` if a property does not hold for the input.
    let check: @Sendable ([UInt8]) throws -> Void

    init(
        _ name: String, share: Int = 10, runs: Int = 1, seeds: [String], tokens: [String] = [],
        check: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.init(name, share: share, runs: runs, seeds: seeds.map { Array($0.utf8) }, tokens: tokens, check: check)
    }

    init(
        _ name: String, share: Int = 10, runs: Int = 1, seeds: [[UInt8]], tokens: [String] = [],
        check: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.name = name
        self.share = share
        self.runs = runs
        self.seeds = seeds
        self.tokens = tokens.map { Array($0.utf8) }
        self.check = check
    }

    static let all: [FuzzTarget] =
        heads + locations + fields + cookies + stored + json + secrets + requests + bodies + sockets
}

/// A property that does not hold for an input.
struct Finding: Error {
    let text: String
}

/// Throws a ``Finding`` unless the condition holds.
func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw Finding(text: text()) }
}

/// Returns the bytes as a string. Invalid UTF-8 is replaced, as in the framework.
func text(_ bytes: some Collection<UInt8>) -> String {
    String(decoding: bytes, as: UTF8.self)
}
