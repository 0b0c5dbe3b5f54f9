import TestSupport
import Testing

@testable import WebServiceCore

/// Cases of the test suite for RFC 6266 at greenbytes.de/tech/tc2231.
@Suite("File names of Content-Disposition", .permit)
struct ContentDispositionTests {
    @Test(
        "The file name of a field is read",
        arguments: [
            ("attachment; filename=\"foo.html\"", "foo.html"), ("attachment; filename=foo.html", "foo.html"),
            ("inline; filename=\"foo.html\"", "foo.html"), ("attachment; FILENAME=\"foo.html\"", "foo.html"),
            ("attachment;filename=\"foo.html\"", "foo.html"), ("attachment; filename = \"foo.html\" ", "foo.html"),
            ("inline; filename=\"Not an attachment!\"", "Not an attachment!"),
            ("attachment; filename=\"f\\oo.html\"", "foo.html"),
            ("attachment; filename=\"\\\"quoting\\\" tested.html\"", "\"quoting\" tested.html"),
            ("attachment; filename=\"Here's a semicolon;.html\"", "Here's a semicolon;.html"),
            ("attachment; foo=\"bar\"; filename=\"foo.html\"", "foo.html"),
            ("attachment; foo=\"\\\"\\\\\";filename=\"foo.html\"", "foo.html"),
            ("attachment; filename='foo.bar'", "'foo.bar'"),
            ("attachment; filename=\"foo-ä.html\"", "foo-ä.html"),
            ("attachment; filename=\"foo-%41.html\"", "foo-%41.html"),
            ("attachment; name=\"foo-%41.html\"; filename=x", "x"),
            ("attachment; filename =\"foo.html\"", "foo.html"),
            ("attachment; filename=\"foo.html\"; filename=\"bar.html\"", "foo.html"),
            ("attachment; xfilename=foo.html; filename=a", "a"), ("attachment; filename=\"/foo.html\"", "/foo.html"),
            ("attachment; filename=\"\\\\foo.html\"", "\\foo.html"), ("attachment; filename=\"\"", ""),
            ("; filename=a", "a"),
        ])
    func plain(value: String, name: String) {
        #expect(ContentDisposition.fileName(value) == name)
    }

    @Test(
        "An extended file name takes precedence, in both charsets",
        arguments: [
            ("attachment; filename*=iso-8859-1''foo-%E4.html", "foo-ä.html"),
            ("attachment; filename*=UTF-8''foo-%c3%a4-%e2%82%ac.html", "foo-ä-€.html"),
            ("attachment; filename*=UTF-8'en'foo-a%cc%88.html", "foo-a\u{308}.html"),
            ("attachment; filename*= UTF-8''foo-%c3%a4.html", "foo-ä.html"),
            ("attachment; filename* =UTF-8''foo-%c3%a4.html", "foo-ä.html"),
            ("attachment; filename*=UTF-8''A-%2541.html", "A-%41.html"),
            ("attachment; filename*=UTF-8''%5cfoo.html", "\\foo.html"),
            ("attachment; filename=\"foo-ae.html\"; filename*=UTF-8''foo-%c3%a4.html", "foo-ä.html"),
            ("attachment; filename*=UTF-8''foo-%c3%a4.html; filename=\"foo-ae.html\"", "foo-ä.html"),
            ("attachment; filename*=UTF-8''", ""),
            // encodeURIComponent does not encode these characters.
            ("attachment; filename*=UTF-8''report%20(1).pdf", "report (1).pdf"),
            ("attachment; filename=\"a\"; filename*=UTF-8''John's%20Resume.pdf", "John's Resume.pdf"),
            ("attachment; filename*=UTF-8''it's'.html", "it's'.html"), ("attachment; filename*=UTF-8''''", "''"),
            ("attachment; filename*=UTF-8'en'a-_.!~*'()%5c.txt; x=y", "a-_.!~*'()\\.txt"),
        ])
    func extended(value: String, name: String) {
        #expect(ContentDisposition.fileName(value) == name)
    }

    @Test(
        "A malformed extended file name is ignored",
        arguments: [
            "UTF-8'foo-%c3%a4.html", "''foo-%c3%a4.html", "UTF-8''foo-%c3%a4%.html", "UTF-8''foo-%c3%a.html",
            "UTF-8''f oo.html", "\"UTF-8''foo-%c3%a4.html\"", "UTF-8''foo-ä.html", "iso-8859-2''foo-%E4.html",
            "UTF-8''foo-%E4.html", "UTF-8''a[1].html", "UTF-8''a=b", "foo.html", "", "UTF-8''(%).html",
        ])
    func malformed(value: String) {
        #expect(ContentDisposition.fileName("attachment; filename*=\(value)") == nil)
        #expect(ContentDisposition.fileName("attachment; filename=a; filename*=\(value)") == "a")
    }

    @Test(
        "A field without a file name has none",
        arguments: [
            "", "inline", "attachment", "attachment; foo=bar", "filename=foo.html", "attachment; filename",
            "attachment; filename=\"foo", "attachment; filename=\"foo\\\"", "\"attachment; filename=a\"", "attachment;",
            "attachment; filename*0=\"foo.\"; filename*1=\"html\"",
        ])
    func none(value: String) {
        #expect(ContentDisposition.fileName(value) == nil)
    }
}
