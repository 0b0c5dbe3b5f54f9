package import Foundation

/// The charsets of text: the names that servers send, mostly those of the Encoding Standard
/// (WHATWG).
package enum Charset {
    /// Returns the encoding with a name, regardless of the case of the name; `nil` if it is not
    /// supported.
    package static func encoding(named name: String) -> String.Encoding? {
        switch name.asciiLowercased() {
        case "utf-8", "utf8": .utf8
        case "us-ascii", "ascii": .ascii
        case "utf-16": .utf16
        case "utf-16le": .utf16LittleEndian
        case "utf-16be": .utf16BigEndian
        case "utf-32": .utf32
        case "iso-8859-1", "latin1", "iso_8859-1": .isoLatin1
        case "iso-8859-2", "latin2": .isoLatin2
        case "iso-8859-3", "latin3": coreFoundation(0x203)
        case "iso-8859-4", "latin4": coreFoundation(0x204)
        case "iso-8859-5": coreFoundation(0x205)
        case "iso-8859-6": coreFoundation(0x206)
        case "iso-8859-7": coreFoundation(0x207)
        case "iso-8859-8", "iso-8859-8-i": coreFoundation(0x208)
        case "iso-8859-9", "latin5": coreFoundation(0x209)
        case "iso-8859-10", "latin6": coreFoundation(0x20A)
        case "iso-8859-11", "tis-620": coreFoundation(0x20B)
        case "iso-8859-13": coreFoundation(0x20D)
        case "iso-8859-14": coreFoundation(0x20E)
        case "iso-8859-15", "latin9": coreFoundation(0x20F)
        case "iso-8859-16": coreFoundation(0x210)
        case "windows-874": coreFoundation(0x41D)
        case "windows-1250", "cp1250": .windowsCP1250
        case "windows-1251", "cp1251": .windowsCP1251
        case "windows-1252", "cp1252": .windowsCP1252
        case "windows-1253", "cp1253": .windowsCP1253
        case "windows-1254", "cp1254": .windowsCP1254
        case "windows-1255", "cp1255": coreFoundation(0x505)
        case "windows-1256", "cp1256": coreFoundation(0x506)
        case "windows-1257", "cp1257": coreFoundation(0x507)
        case "windows-1258", "cp1258": coreFoundation(0x508)
        case "koi8-r": coreFoundation(0xA02)
        case "koi8-u": coreFoundation(0xA08)
        case "gb18030", "gbk", "x-gbk", "gb2312": coreFoundation(0x632)
        case "big5": coreFoundation(0xA03)
        case "big5-hkscs": coreFoundation(0xA06)
        case "euc-kr", "ks_c_5601-1987", "windows-949": coreFoundation(0x422)
        case "shift_jis", "sjis", "windows-31j": .shiftJIS
        case "euc-jp": .japaneseEUC
        case "iso-2022-jp": .iso2022JP
        default: nil
        }
    }

    /// Returns the encoding with the given Core Foundation number (`CFStringEncodingExt.h`).
    private static func coreFoundation(_ number: UInt) -> String.Encoding {
        String.Encoding(rawValue: 0x8000_0000 | number)
    }

    /// Returns text without its byte order mark; `nil` if the bytes are invalid.
    package static func text(_ data: Data, _ encoding: String.Encoding) -> String? {
        if encoding == .japaneseEUC { return shiftJIS(data).flatMap { String(data: $0, encoding: .shiftJIS) } }
        let text = String(data: data, encoding: encoding)
        guard let text, text.unicodeScalars.first == "\u{FEFF}" else { return text }
        return String(text.unicodeScalars.dropFirst())
    }

    /// Returns text in EUC-JP as Shift_JIS, because Foundation on Linux decodes no two-byte
    /// characters of EUC-JP.
    ///
    /// - Returns: `nil` for invalid bytes and for the characters of JIS X 0212.
    private static func shiftJIS(_ data: Data) -> Data? {
        var converted = Data(capacity: data.count)
        var bytes = data.makeIterator()
        while let first = bytes.next() {
            switch first {
            case 0..<0x80: converted.append(first)
            case 0x8E:
                guard let kana = bytes.next(), (0xA1...0xDF).contains(kana) else { return nil }
                converted.append(kana)
            case 0xA1...0xFE:
                guard let second = bytes.next(), (0xA1...0xFE).contains(second) else { return nil }
                let (row, cell) = (first - 0xA0, second - 0xA0)
                converted.append((row + 1) / 2 + (row < 63 ? 0x80 : 0xC0))
                converted.append(row.isMultiple(of: 2) ? cell + 0x9E : cell + (cell < 64 ? 0x3F : 0x40))
            default: return nil
            }
        }
        return converted
    }
}
