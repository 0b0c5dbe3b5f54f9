import Foundation
import WebServiceCore

/// The output of the program.
///
/// What a server sends may contain control characters. They are replaced, except for line breaks
/// and tabs, unless the output is not a terminal.
enum Output {
    private static let isTerminal = isatty(STDOUT_FILENO) == 1
    private static let isErrorTerminal = isatty(STDERR_FILENO) == 1

    static func print(_ text: String) { write(text + "\n", .standardOutput, isTerminal) }

    static func complain(_ text: String) { write(text + "\n", .standardError, isErrorTerminal) }

    /// Shows the progress of a call on a terminal; `nil` removes it.
    static func status(progress: JSONValue?) {
        guard isErrorTerminal else { return }
        let number = { (name: String) in progress?[name].map(\.description) }
        let numbers = [number("progress"), number("total")].compactMap(\.self).joined(separator: "/")
        let message = progress?["message"]?.string?.prefix { !$0.isNewline } ?? ""
        let text = printable([numbers, String(message)].filter { !$0.isEmpty }.joined(separator: " "))
        FileHandle.standardError.write(Data("\r\(text.prefix(70))\u{1B}[K".utf8))
    }

    /// Prints the result of a call.
    static func print(result: JSONValue, asJSON: Bool) throws {
        let isError = result["isError"]?.bool == true
        let texts = (result["content"]?.array ?? []).map(Self.text)
        if asJSON {
            print(result.description)
        } else if !isError {
            for text in texts { print(text) }
        }
        if isError { throw Failure(.failure, texts.joined(separator: "\n")) }
    }

    /// Returns the text of an item of a result.
    private static func text(of item: JSONValue) -> String {
        let kind = item["type"]?.string ?? "unknown"
        let resource = item["resource"] ?? item
        let text = item["text"] ?? resource["text"] ?? resource["uri"]
        let type = (resource["mimeType"]?.string).map { ", \($0)" } ?? ""
        return text?.string ?? "[\(kind)\(type); --json prints it]"
    }

    private static func write(_ text: String, _ file: FileHandle, _ isTerminal: Bool) {
        try? file.write(contentsOf: Data((isTerminal ? printable(text) : text).utf8))  // a reader may have left
    }

    private static func printable(_ text: String) -> String {
        let scalars = text.unicodeScalars.map {
            $0.properties.generalCategory == .control && $0 != "\n" && $0 != "\t" ? " " : $0
        }
        return String(String.UnicodeScalarView(scalars))
    }
}

extension Tool {
    /// The name and the first line of the description.
    var line: String { "\(name)\t\(description.prefix { !$0.isNewline })" }
}
