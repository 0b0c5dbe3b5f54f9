/// Code that parses bytes from a peer, with the inputs that mutation begins with and the properties
/// that hold for every input.
struct FuzzTarget: Sendable {
    let name: String
    /// The relative number of inputs.
    var share = 10
    /// How often a check runs the code under test on the whole input, for the bound of its time.
    var runs = 1
    let seeds: [[UInt8]]
    /// Byte sequences that mutation inserts.
    var tokens: [[UInt8]] = []
    /// Throws a ``Finding`` for an input for which a property does not hold.
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

    static let all: [FuzzTarget] = heads + locations + fields + cookies + stored + json + secrets + requests
}

/// A property that does not hold for an input.
struct Finding: Error {
    let text: String
}

/// Throws a ``Finding`` unless the condition holds.
func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw Finding(text: text()) }
}

/// Bytes as text, as lossy as the framework reads them.
func text(_ bytes: some Collection<UInt8>) -> String {
    String(decoding: bytes, as: UTF8.self)
}
