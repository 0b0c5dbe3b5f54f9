import Foundation
import WebServiceCore

/// Shows the progress of a download: a bar on a terminal, and otherwise a line for every second.
final class ProgressDisplay: Sendable {
    private struct State {
        var next = ContinuousClock.now
        var hasBar = false
    }

    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private let state = Mutex(State())

    /// Shows the progress unless it was shown a short time ago.
    func show(_ progress: TransferProgress) {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            guard now >= state.next || progress.bytesReceived == progress.bytesToReceive else { return false }
            // A short download needs no line: the first one is due after a second.
            let isFirst = !isTerminal && !state.hasBar
            state.next = now + (isTerminal ? .milliseconds(100) : .seconds(1))
            state.hasBar = true
            return !isFirst
        }
        guard isDue else { return }
        if isTerminal { write("\r" + Self.bar(progress) + "\u{1B}[K") } else { output(Self.line(progress)) }
    }

    /// Ends the line of the bar.
    func end() {
        if isTerminal, state.withLock({ $0.hasBar }) { write("\n") }
    }

    private func write(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))  // the result is written to the same file
    }

    /// Returns a bar such as `[#####...............]  25 %  1.0 of 4.0 MB, 2.5 MB/s, 2 s left`.
    static func bar(_ progress: TransferProgress) -> String {
        guard let fraction = progress.fractionReceived else { return line(progress) }
        let marks = Int(fraction * 20)
        return "[\(String(repeating: "#", count: marks))\(String(repeating: ".", count: 20 - marks))] \(line(progress))"
    }

    static func line(_ progress: TransferProgress) -> String {
        var parts: [String] = []
        if let total = progress.bytesToReceive, let fraction = progress.fractionReceived {
            parts.append("\(Int(fraction * 100)) %, \(size(progress.bytesReceived)) of \(size(total))")
        } else {
            parts.append(size(progress.bytesReceived))
        }
        if let rate = progress.bytesPerSecond, rate < 1e15 { parts.append("\(size(Int64(max(0, rate))))/s") }
        if let seconds = progress.secondsRemaining, seconds < 1e6 {
            parts.append("\(Int(seconds.rounded(.up))) s left")
        }
        return parts.joined(separator: ", ")
    }

    /// Returns a number of bytes with its unit, such as `1.5 MB`.
    static func size(_ bytes: Int64) -> String {
        var (value, unit) = (Double(bytes), 0)
        let units = ["bytes", "kB", "MB", "GB", "TB"]
        while value >= 999.95, unit < units.count - 1 { (value, unit) = (value / 1_000, unit + 1) }
        return unit == 0 ? count(Int(clamping: bytes), "byte") : "\(String(format: "%.1f", value)) \(units[unit])"
    }
}
