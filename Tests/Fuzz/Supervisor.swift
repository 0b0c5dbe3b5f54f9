import Foundation
import WebServiceMocking
import WebServiceServer

/// The parent process: runs each target in a child process and reports inputs that fail.
struct Supervisor: Sendable {
    let folder: URL
    let seed: UInt64

    /// Runs the targets, as many concurrently as there are processors.
    ///
    /// - Returns: Whether there was no finding.
    func run(_ runs: [(name: String, inputs: Int)]) -> Bool {
        let width = max(1, min(ProcessInfo.processInfo.activeProcessorCount, runs.count))
        let queue = WorkQueue(runs)
        DispatchQueue.concurrentPerform(iterations: width) { _ in
            while let run = queue.next() { queue.add(isClean: self.run(run.name, inputs: run.inputs)) }
        }
        return queue.isClean
    }

    private func run(_ name: String, inputs: Int) -> Bool {
        let path = folder.appendingPathComponent(name).path
        guard let ending = start(["--child", name, "--inputs", "\(inputs)", "--seed", "\(seed)", "--file", path], path)
        else { return true }
        guard let input = try? InputFile(path: path).input else {  // reported below
            tell("\(name): \(ending), and its input cannot be read")
            return false
        }
        let reduced = ending == Self.hang ? input : reduce(input, of: name)
        tell(
            """
            \(name): \(ending), seed \(seed)
              input    \(text(reduced.prefix(400)).debugDescription)
              again    fuzz --only \(name) --input \(Data(reduced).base64EncodedString())
            """)
        return false
    }

    private static let hang = "no result within 60 seconds"

    /// Runs a child process.
    ///
    /// - Returns: The reason for its failure; `nil` for the exit status 0.
    private func start(_ arguments: [String], _ path: String, isSilent: Bool = false) -> String? {
        guard let file = try? InputFile(path: path)  // reported by the caller
        else { return "\(path) cannot be mapped" }
        let stream = isSilent ? ChildProcess.Stream.null : .inherited
        let process = ChildProcess(
            CommandLine.arguments[0], arguments,
            environment: ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 },
            output: stream, errors: stream)
        do { try process.run() } catch { return "\(error)" }
        let end = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            process.waitUntilExit()
            end.signal()
        }
        var count = file.count
        while end.wait(timeout: .now() + 60) == .timedOut {
            if file.count == count {
                process.send(SIGKILL)
                end.wait()
                return Self.hang
            }
            count = file.count
        }
        switch process.waitUntilExit() {
        case 0: return nil
        case Runner.findingStatus: return "finding"
        case let status where status > 0: return "exit \(status)"
        case let signal: return "signal \(-signal)"
        }
    }

    /// Removes parts of a failing input as long as it fails: at most 200 attempts and 30 seconds.
    private func reduce(_ input: [UInt8], of name: String) -> [UInt8] {
        let path = folder.appendingPathComponent("\(name).reduced").path
        let end = ContinuousClock.now + .seconds(30)
        var (smallest, attempts) = (input, 0)
        var length = max(1, input.count / 2)
        while attempts < 200, ContinuousClock.now < end, !smallest.isEmpty {
            var place = 0
            while place < smallest.count, attempts < 200, ContinuousClock.now < end {
                var candidate = smallest
                candidate.removeSubrange(place..<min(place + length, candidate.count))
                attempts += 1
                let arguments = ["--child", name, "--file", path, "--input", Data(candidate).base64EncodedString()]
                if start(arguments, path, isSilent: true) != nil { smallest = candidate } else { place += length }
            }
            if length == 1 { break }
            length /= 2
        }
        return smallest
    }
}

/// The remaining runs and the result of the completed ones.
private final class WorkQueue: @unchecked Sendable {
    // Guards both `runs` and `hasFinding`.
    private let lock = NSLock()
    private var runs: [(name: String, inputs: Int)]
    private var hasFinding = false

    init(_ runs: [(name: String, inputs: Int)]) {
        self.runs = runs.reversed()
    }

    func next() -> (name: String, inputs: Int)? { lock.withLock { runs.popLast() } }
    func add(isClean: Bool) { lock.withLock { hasFinding = hasFinding || !isClean } }
    var isClean: Bool { lock.withLock { !hasFinding } }
}
