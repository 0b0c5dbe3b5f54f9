import Foundation

/// The child process: runs the inputs of one target until the first finding.
struct Runner {
    /// The exit status for a finding.
    static let findingStatus: Int32 = 3

    #if DEBUG
    private static let slowness = 10.0
    #else
    private static let slowness = 1.0
    #endif

    let target: FuzzTarget
    let file: InputFile
    private var slowest = (seconds: 0.0, length: 0)

    init(target: FuzzTarget, file: InputFile) {
        self.target = target
        self.file = file
    }

    mutating func run(inputs: Int, seed: UInt64) -> Int32 {
        var mutator = Mutator(target, seed: seed)
        let start = processorTime()
        for number in 0..<inputs {
            let input = number < target.seeds.count ? target.seeds[number] : mutator.next()
            if let finding = run(input) {
                tell("\(target.name): \(finding), input \(number)")
                return Self.findingStatus
            }
        }
        let seconds = processorTime() - start
        let name = target.name.padding(toLength: 18, withPad: " ", startingAt: 0)
        let numbers = String(
            format: "%9d inputs %7.1f s %9.0f/s  slowest %6.2f ms of %d bytes", inputs, seconds,
            Double(inputs) / max(seconds, 1e-9),
            slowest.seconds * 1_000, slowest.length)
        tell(name + numbers)
        return 0
    }

    /// Checks one input and its processor time: at most 10 ms per KB, and 20 ms for small inputs.
    ///
    /// - Returns: The finding; `nil` if all properties hold.
    mutating func run(_ input: [UInt8]) -> String? {
        file.begin(input)
        let bound = max(0.020, Double(input.count) / 1_024 * 0.010) * Self.slowness * Double(target.runs)
        do {
            var seconds = try seconds(of: input)
            if seconds > bound { seconds = min(seconds, try self.seconds(of: input)) }
            if seconds > slowest.seconds { slowest = (seconds, input.count) }
            return seconds > bound ? "\(Int(seconds * 1_000)) ms for \(input.count) bytes" : nil
        } catch let finding as Finding {
            return finding.text
        } catch {
            return "an unexpected error: \(error)"
        }
    }

    /// Returns the processor time of one check.
    private func seconds(of input: [UInt8]) throws -> Double {
        let start = processorTime()
        try target.check(input)
        return processorTime() - start
    }
}

/// Writes a line without buffering.
func tell(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
