import Foundation
import WebServiceCore

/// Names of downloaded files.
enum FileName {
    /// The maximum length of a name, in bytes of UTF-8. File systems allow 255 bytes, and the names
    /// of the files next to the destination are longer than its own name.
    static let maximumLength = 200

    /// Returns the name for a file from a server.
    ///
    /// The result is the name in `Content-Disposition`, or else the last segment of the URL's path,
    /// or else the default.
    ///
    /// - Returns: One safe component; see `component(_:)`.
    static func suggested(disposition: String?, url: String, default name: String) -> String {
        disposition.flatMap(ContentDisposition.fileName).flatMap(component) ?? component(lastSegment(of: url))
            ?? component(name) ?? "download"
    }

    /// Reduces a name to one component of a path, which refers to nothing outside its folder.
    ///
    /// Only the part after the last slash or backslash is used. Control characters, characters that
    /// change the direction of text, and colons are removed, as are spaces and dots at both ends. A
    /// name that is reserved on Windows is prefixed with `_`. A long name is truncated before its
    /// extension.
    ///
    /// - Returns: `nil` if nothing remains.
    static func component(_ name: String) -> String? {
        let composed = name.precomposedStringWithCanonicalMapping.unicodeScalars
        let last = composed.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last ?? composed[...]
        var kept = String.UnicodeScalarView()
        kept.append(contentsOf: last.filter { !isRemoved($0) })
        let text = truncated(trimmed(String(kept)))
        guard !text.isEmpty else { return nil }
        return isReserved(text) ? "_" + text : text
    }

    /// Returns the names to try for a file that must not replace another one: the name, and the
    /// name with the numbers 1 to 999 before its extension, as in `a (1).iso`.
    static func candidates(_ name: String) -> some Sequence<String> {
        let (stem, ending) = parts(name)
        return (0..<1_000).lazy.map { number in
            guard number > 0 else { return name }
            let ending = " (\(number))" + ending
            return prefix(of: stem, upTo: maximumLength - ending.utf8.count) + ending
        }
    }

    private static func lastSegment(of url: String) -> String {
        let path = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        // The first three parts are the scheme, an empty part and the authority.
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst(3)
        return String(decoding: percentDecoded(parts.last ?? ""[...].utf8), as: UTF8.self)
    }

    private static func isRemoved(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069, 0x2028, 0x2029, 0x3A: true
        default: scalar.properties.generalCategory == .control
        }
    }

    private static func trimmed(_ name: String) -> String {
        name.trimmingCharacters(in: .whitespaces.union(CharacterSet(charactersIn: ".")))
    }

    private static func truncated(_ name: String) -> String {
        guard name.utf8.count > maximumLength else { return name }
        let (stem, ending) = parts(name)
        return trimmed(trimmed(prefix(of: stem, upTo: maximumLength - ending.utf8.count)) + ending)
    }

    /// Divides a name before its extension. A dot at the start does not begin an extension.
    private static func parts(_ name: String) -> (stem: Substring, ending: Substring) {
        let dot = name.dropFirst().lastIndex(of: ".") ?? name.endIndex
        return name[dot...].utf8.count <= 32 ? (name[..<dot], name[dot...]) : (name[...], "")
    }

    /// Returns the longest prefix of whole characters that fits into the given number of bytes.
    private static func prefix(of text: Substring, upTo count: Int) -> String {
        var prefix = ""
        for character in text {
            guard prefix.utf8.count + character.utf8.count <= count else { break }
            prefix.append(character)
        }
        return prefix
    }

    /// Returns whether the name is that of a device on Windows, with or without an extension.
    private static func isReserved(_ name: String) -> Bool {
        let stem = trimmed(String(name.prefix { $0 != "." })).uppercased()
        if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(stem) { return true }
        return stem.count == 4 && (stem.hasPrefix("COM") || stem.hasPrefix("LPT"))
            && stem.last.map("0123456789¹²³".contains) == true
    }
}
