import Foundation
import WebServiceCore

/// The exit statuses of all commands. Those from 64 on are from `sysexits.h`.
enum ExitStatus: Int32 {
    case success = 0
    /// A response or a result is not the expected one.
    case failure = 1
    /// `EX_USAGE`: the arguments are wrong.
    case usage = 64
    /// `EX_UNAVAILABLE`: the server cannot be reached, or a part of the program cannot be used.
    case unavailable = 69
    /// `EX_IOERR`: standard output cannot be written.
    case unwritable = 74
    /// Ctrl-C was pressed.
    case interrupted = 130
}

func exit(_ status: ExitStatus) -> Never { exit(status.rawValue) }

/// Standard output or standard error.
struct Terminal {
    static let output = Terminal(file: .standardOutput)
    static let errors = Terminal(file: .standardError)

    let file: FileHandle

    /// The current number of columns; `nil` if the file is not a terminal.
    var width: Int? {
        guard isatty(file.fileDescriptor) == 1 else { return nil }
        var size = winsize()
        guard ioctl(file.fileDescriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Whether text is colored (https://no-color.org and https://bixense.com/clicolors).
    var hasColor: Bool {
        let environment = ProcessInfo.processInfo.environment
        func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty && $0 != "0" } ?? false }
        if environment["NO_COLOR"]?.isEmpty == false { return false }
        if isSet("CLICOLOR_FORCE") { return true }
        return isatty(file.fileDescriptor) == 1 && environment["TERM"] != "dumb"
    }

    /// The parameters of the control sequence `SGR` of ECMA-48.
    enum Style: Int {
        case bold = 1
        case red = 31
        case green = 32
        case yellow = 33
    }

    /// Returns the text in a style, if the terminal has colors.
    func styled(_ text: String, _ style: Style) -> String {
        hasColor ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    func write(_ text: String) throws { try file.write(contentsOf: Data(text.utf8)) }
}

/// Writes a result to standard output. On a terminal, lines are broken at its width, so that the
/// next ones are indented.
///
/// Exits with ``ExitStatus/unwritable`` if standard output cannot be written.
func output(_ text: String, _ style: Terminal.Style? = nil) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if let width = Terminal.output.width { lines = lines.map { broken($0, width) } }
    if let style { lines = lines.map { $0.isEmpty ? "" : Terminal.output.styled($0, style) } }
    output(piece: lines.joined(separator: "\n") + "\n")
}

/// Writes text to standard output unchanged and without a line break.
///
/// Exits with ``ExitStatus/unwritable`` if standard output cannot be written.
func output(piece: String) {
    do { try Terminal.output.write(piece) } catch {
        complain("standard output cannot be written: \(error.localizedDescription)")
        exit(.unwritable)
    }
}

/// Writes an error to standard error.
func complain(_ text: String) {
    note("\(Terminal.errors.styled("brewery:", .red)) \(text)")
}

/// Writes a line of the log to standard error.
func note(_ text: String) {
    try? Terminal.errors.write(text + "\n")  // there is no other channel to report it
}

/// Returns the number with its noun: `1 brewer`, `2 brewers`.
func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
}

/// Returns the line broken at spaces. A word that is longer than the width is not broken.
///
/// Lines after a break are indented by two more columns, unless fewer than 40 are available.
private func broken(_ line: String, _ width: Int) -> String {
    let start = line.prefix { $0 == " " }
    let indent = width < 40 ? "" : start + "  "
    var lines: [String] = []
    var current = String(start)
    var isEmpty = true
    for word in line.dropFirst(start.count).split(separator: " ", omittingEmptySubsequences: false) {
        if !isEmpty, current.count + 1 + word.count > width {
            lines.append(current)
            current = indent + word
        } else {
            current += (isEmpty ? "" : " ") + word
        }
        isEmpty = false
    }
    return (lines + [current]).joined(separator: "\n")
}

/// Shows the progress of a download in one line of standard error, if that is a terminal.
final class ProgressDisplay: Sendable {
    private struct State {
        var next = ContinuousClock.now
        var isShown = false
    }

    private let state = Mutex(State())

    /// Shows the progress unless it was shown a short time ago.
    func show(_ progress: TransferProgress) {
        guard let width = Terminal.errors.width else { return }
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            guard now >= state.next || progress.bytesReceived == progress.bytesToReceive else { return false }
            state.next = now + .milliseconds(100)
            state.isShown = true
            return true
        }
        // A character in the last column would begin a new line on some terminals.
        if isDue { write("\r" + Self.line(progress, columns: width - 1) + "\u{1B}[K") }
    }

    /// Removes the line.
    func end() {
        if state.withLock({ $0.isShown }) { write("\r\u{1B}[K") }
    }

    private func write(_ text: String) {
        try? Terminal.errors.write(text)  // progress that cannot be shown is not an error
    }

    /// Returns a line such as `25 % [#####...............] 1.0 of 4.0 MB, 2.5 MB/s, 2 s left`, of
    /// which the parts at the end are left out if there are too few columns.
    static func line(_ progress: TransferProgress, columns: Int) -> String {
        var parts: [String] = []
        if let total = progress.bytesToReceive, let fraction = progress.fractionReceived {
            let marks = Int(fraction * 20)
            parts.append("\(Int(fraction * 100)) %")
            parts.append(" [\(String(repeating: "#", count: marks))\(String(repeating: ".", count: 20 - marks))]")
            parts.append(" \(size(progress.bytesReceived)) of \(size(total))")
        } else {
            parts.append(size(progress.bytesReceived))
        }
        if let rate = progress.bytesPerSecond, rate < 1e15 { parts.append(", \(size(Int64(max(0, rate))))/s") }
        if let seconds = progress.secondsRemaining, seconds < 1e6 {
            parts.append(", \(Int(seconds.rounded(.up))) s left")
        }
        var line = ""
        for part in parts {
            guard line.count + part.count <= columns else { break }
            line += part
        }
        return line
    }

    /// Returns a number of bytes with its unit, such as `1.5 MB`.
    static func size(_ bytes: Int64) -> String {
        var (value, unit) = (Double(bytes), 0)
        let units = ["bytes", "kB", "MB", "GB", "TB"]
        while value >= 999.95, unit < units.count - 1 { (value, unit) = (value / 1_000, unit + 1) }
        return unit == 0 ? count(Int(clamping: bytes), "byte") : "\(String(format: "%.1f", value)) \(units[unit])"
    }
}
