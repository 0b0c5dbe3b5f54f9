import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Text in the charsets that servers send. Python wrote the bytes.
@Suite("Charsets", .permit)
struct CharsetTests {
    @Test(
        "Text is decoded in the charset of its Content-Type",
        arguments: [
            ("gbk", "xOO6ww==", "你好"), ("GB2312", "xOO6ww==", "你好"), ("gb18030", "xOO6w4EwgTA=", "你好\u{80}"),
            ("big5", "p0Gmbg==", "你好"), ("big5-hkscs", "p0Gmbg==", "你好"), ("euc-kr", "vsiz5w==", "안녕"),
            ("windows-949", "jGM=", "똠"), ("shift_jis", "grGC8YLJgr+CzQ==", "こんにちは"),
            ("EUC-JP", "pLOk86TLpMGkz46xYTE=", "こんにちはｱa1"), ("iso-2022-jp", "GyRCJDMbKEJh", "こa"),
            ("iso-8859-3", "oQ==", "Ħ"), ("iso-8859-4", "oQ==", "Ą"), ("iso-8859-5", "sNDh", "Аас"),
            ("iso-8859-6", "xw==", "ا"), ("iso-8859-7", "weE=", "Αα"), ("iso-8859-8", "4A==", "א"),
            ("iso-8859-9", "8Gk=", "ği"), ("iso-8859-10", "oQ==", "Ą"), ("tis-620", "oQ==", "ก"),
            ("iso-8859-13", "wA==", "Ą"), ("iso-8859-14", "oQ==", "Ḃ"), ("iso-8859-15", "pA==", "€"),
            ("iso-8859-16", "pA==", "€"), ("koi8-r", "wcI=", "аб"), ("koi8-u", "pA==", "є"),
            ("windows-874", "oQ==", "ก"), ("windows-1250", "pQ==", "Ą"), ("windows-1251", "wA==", "А"),
            ("windows-1253", "wQ==", "Α"), ("windows-1254", "8A==", "ğ"), ("windows-1255", "4A==", "א"),
            ("windows-1256", "xw==", "ا"), ("windows-1257", "wA==", "Ą"), ("windows-1258", "0A==", "Đ"),
        ])
    func names(name: String, bytes: String, text: String) throws {
        let data = try #require(Data(base64Encoded: bytes))
        let headers = ["Content-Type": "text/plain; charset=\(name)"]
        let url = try #require(URL(string: "https://h/"))
        let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: headers)
        #expect(try Response(data: data, urlResponse: head).text() == text)
    }

    @Test("EUC-JP is decoded for all characters of JIS X 0208, and nothing else is")
    func eucJP() throws {
        // Shift_JIS has the same characters in the same order.
        var count = 0
        for row in UInt8(1)...94 {
            for cell in UInt8(1)...94 {
                let text = Charset.text(Data([row + 0xA0, cell + 0xA0]), .japaneseEUC)
                let lead = (row - 1) / 2 + (row < 63 ? 0x81 : 0xC1)
                let trail = row % 2 == 0 ? cell + 0x9E : cell + 0x3F + (cell > 63 ? 1 : 0)
                #expect(text == String(data: Data([lead, trail]), encoding: .shiftJIS))
                if text?.unicodeScalars.count == 1 { count += 1 }
            }
        }
        #expect(count >= 6_879)
        for bytes: [UInt8] in [
            [0x80], [0xA4], [0xA4, 0x41], [0x8E], [0x8E, 0xE0], [0x8F, 0xB0, 0xA1], [0xFF], [0xA0],
        ] {
            #expect(Charset.text(Data(bytes), .japaneseEUC) == nil, "\(bytes)")
        }
        #expect(Charset.text(Data(), .japaneseEUC) == "")
    }

    @Test("A byte order mark is not a part of the text, in any form of Unicode")
    func mark() throws {
        for name in ["utf-8", "utf-16", "utf-16le", "utf-16be", "utf-32"] {
            let encoding = try #require(Charset.encoding(named: name))
            let text = try #require("\u{FEFF}a\u{FEFF}".data(using: encoding))
            #expect(
                Charset.text(text, encoding)?.unicodeScalars.elementsEqual("a\u{FEFF}".unicodeScalars) == true,
                "\(name)")
        }
        #expect(Charset.text(Data([0xFF, 0xFE, 0x61, 0]), .utf16LittleEndian) == "a")
        #expect(Charset.text(Data([0xFE, 0xFF, 0, 0x61]), .utf16BigEndian) == "a")
        #expect(Charset.text(Data([0xFF, 0xFE]), .utf16LittleEndian) == "")
    }

    @Test("Invalid bytes and charsets that Foundation decodes incorrectly are errors")
    func invalid() {
        for name in ["ibm866", "macintosh", "euc-tw", "utf-7", "hz-gb-2312", ""] {
            #expect(Charset.encoding(named: name) == nil, "\(name)")
        }
        let cases: [(String, [UInt8])] = [
            ("gbk", [0xFF, 0xFF]), ("big5", [0xA7]), ("euc-kr", [0xBE]), ("iso-2022-jp", [0x1B, 0x24]),
        ]
        for (name, bytes) in cases {
            let encoding = Charset.encoding(named: name)
            #expect(encoding.flatMap { Charset.text(Data(bytes), $0) } == nil, "\(name)")
        }
    }
}
