import Foundation

/// The statuses `EX_USAGE`, `EX_UNAVAILABLE` and `EX_IOERR` of sysexits.h.
let wrongUsage: Int32 = 64
let unavailable: Int32 = 69
let unwritable: Int32 = 74

/// Writes text to standard output in lines of at most 80 columns.
///
/// Exits with the status 74 if standard output cannot be written.
func output(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { wrapped(String($0)) }
    output(piece: lines.joined(separator: "\n") + "\n")
}

/// Writes text to standard output unchanged and without a line break.
///
/// Exits with the status 74 if standard output cannot be written.
func output(piece: String) {
    do { try FileHandle.standardOutput.write(contentsOf: Data(piece.utf8)) } catch {
        complain("brewery: standard output cannot be written: \(error.localizedDescription)")
        exit(unwritable)
    }
}

func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\(text)\n".utf8))  // there is no other channel to report it
}

/// Returns the number with its noun: `1 brewer`, `2 brewers`.
func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
}

/// Returns the line broken at spaces, or within a word that is longer than a line.
///
/// Lines after a break are indented by two more columns.
private func wrapped(_ line: String) -> String {
    let columns = 80
    let indent = String(repeating: " ", count: min(columns / 2, line.prefix { $0 == " " }.count + 2))
    var lines: [Substring] = []
    var rest = line[...]
    while true {
        let room = columns - (lines.isEmpty ? 0 : indent.count)
        guard rest.count > room else { break }
        let end =
            rest.prefix(room + 1).drop { $0 == " " }.lastIndex(of: " ") ?? rest.index(rest.startIndex, offsetBy: room)
        lines.append(rest[..<end])
        rest = rest[end...].drop { $0 == " " }
    }
    return (lines + [rest]).joined(separator: "\n" + indent)
}
