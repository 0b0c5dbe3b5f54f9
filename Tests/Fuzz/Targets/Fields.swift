import Foundation
import WebServiceFields

@testable import WebServiceCore
@testable import WebServicePagination

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    static let fields: [FuzzTarget] = [
        FuzzTarget(
            "link", share: 10,
            seeds: [
                "</b?page=2>; rel=\"next last\"; title*=UTF-8''x, <//h/c>; rel=prev; anchor=\"#a\"", "<>;rel=next",
                ",,<a>;a;b=;c=\"\\\"\";,", "<a>; rel=\"next",
            ],
            tokens: ["<", ">", ">; rel=next", ";", ",", "=\"", "\\\"", "<a>,", "rel", "anchor="], check: checkLinks),
        FuzzTarget(
            "cache-control", share: 20,
            seeds: [
                "no-cache=\"Set-Cookie, X\", max-age=60, private", "max-age=\"60\", s-maxage=1",
                "MAX-AGE=99999999999999999999, stale-if-error", "a=\"b",
                "public, max-age=00000000000060,, ,no-store ;x",
            ],
            tokens: ["max-age=", "no-cache", "=\"", "\"", ",", "no-store", "private=", "\\"], check: checkCacheControl),
        FuzzTarget(
            "structured-field", share: 10,
            seeds: [
                "sha-256=:YQ==:;a, b=(1 -2.5;c \"d\\\"\" e/f);g=?1, *h=%\"%e2%82%ac\"", "text/html;q=0.5",
                "@1659578233",
                "999999999999999, 999999999999.999, -0",
            ],
            tokens: ["=", ";", ", ", "(", ")", "\"", "%\"", "%c3%a4", ":", "?0", "@", "-", ".", "*"],
            check: checkStructuredFields),
        FuzzTarget(
            "media-type", share: 10,
            seeds: [
                "text/html; charset=\"utf-8\"", "application/problem+json;charset=UTF-16;a=b", "TEXT/*", "*/*",
                "application/json ; charset='latin1'",
                "text/plain; charset=shift_jis", "text/plain; charset=utf-32",
            ],
            tokens: [
                "; charset=", "charset", "=", "\"", "application/", "+json", "utf-8", "utf-16le", "euc-jp",
                "windows-1250",
            ], check: checkMediaType),
        FuzzTarget(
            "date", share: 12,
            seeds: [
                "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                "Wed, 29 Feb 2012 23:59:60 GMT", "120",
                "Thu, 01-Jan-1970 00:00:10 GMT", "31 dec 9999 23:59:59",
            ],
            tokens: [" GMT", "Sun, ", "Feb", "29", "00:00:00", "9999", "0000", ":", " ", "-"], check: checkDates),
    ]

    @Sendable private static func checkLinks(_ bytes: [UInt8]) throws {
        let line = bytes.filter { $0 != 0x0A && $0 != 0x0D }
        let url = "https://a.example/dir/x?page=1"
        guard
            let head = ResponseHead(
                bytes: Array("HTTP/1.1 200 OK\r\nLink: ".utf8) + line + Array("\r\n\r\n".utf8), url: url)
        else { return }
        let response = Response(data: Data(), head: head)
        let links = response.links
        try require(links.count <= line.count, "more links than bytes")
        for link in links {
            try require(
                link.relations.allSatisfy { $0 == $0.asciiLowercased() && !$0.isEmpty },
                "the relations are \(link.relations)")
            try require(
                link.parameters.allSatisfy { $0.name == $0.name.asciiLowercased() && !$0.name.isEmpty },
                "a name is not in lower case")
        }
        if let next = response.link("next") {
            try require(next.isOf("NEXT") && !next.target.isEmpty, "the next link is \(next)")
        }
    }

    @Sendable private static func checkCacheControl(_ bytes: [UInt8]) throws {
        let control = CacheControl([text(bytes)])
        for name in ["max-age", "s-maxage", "no-cache"] {
            try require(
                (0...CacheControl.maximum).contains(control.least(name) ?? 0), "\(name) is \(control.least(name) ?? 0)")
            try require(
                control.greatest(name) ?? 0 >= control.least(name) ?? 0, "the greatest \(name) is less than the least")
            try require((control.least(name) != nil) == control.has(name), "\(name) is present and has no value")
            try require(!control.isWhole(name) || control.has(name), "\(name) is unqualified and not present")
        }
        try require(control.fields("no-cache").allSatisfy { !$0.isEmpty && !$0.contains(",") }, "a field has no name")
    }

    @Sendable private static func checkStructuredFields(_ bytes: [UInt8]) throws {
        let field = text(bytes)
        let list = StructuredField.list(parsing: field)
        if let item = StructuredField.item(parsing: field) {
            try require(list == [.item(item)], "the item is another one in a list")
            let serialized = try StructuredField.serialized(item)
            try require(StructuredField.item(parsing: serialized) == item, "\(serialized) is another item")
        }
        if let list {
            let serialized = try StructuredField.serialized(list)
            try require((serialized == nil) == list.isEmpty, "the list is \(serialized ?? "absent")")
            try require(StructuredField.list(parsing: serialized ?? "") == list, "\(serialized ?? "") is another list")
        }
        if let dictionary = StructuredField.dictionary(parsing: field) {
            let serialized = try StructuredField.serialized(dictionary)
            try require((serialized == nil) == dictionary.isEmpty, "the dictionary is \(serialized ?? "absent")")
            try require(
                StructuredField.dictionary(parsing: serialized ?? "") == dictionary,
                "\(serialized ?? "") is another dictionary")
            try require(
                dictionary.allSatisfy { !$0.key.isEmpty && $0.key == $0.key.asciiLowercased() },
                "a key is not in lower case")
        }
    }

    @Sendable private static func checkMediaType(_ bytes: [UInt8]) throws {
        let value = text(bytes)
        let essence = MediaType.essence(value)
        try require(
            essence.utf8.count <= 80 && essence.utf8.allSatisfy { (0x21...0x7E).contains($0) },
            "the essence is '\(essence)'")
        try require(
            MediaType.essence(essence) == essence || value.utf8.count > 80, "the essence of '\(essence)' is different")
        try require(
            MediaType.matches(value, pattern: "*/*") && MediaType.matches(value, pattern: value),
            "the media type does not match itself")
        guard let charset = MediaType.parameter("charset", of: value), let encoding = Charset.encoding(named: charset)
        else { return }
        _ = String(data: Data(bytes), encoding: encoding)
    }

    @Sendable private static func checkDates(_ bytes: [UInt8]) throws {
        let value = text(bytes)
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        for date in [HTTPDate.parse(value, now: now), HTTPDate.parseCookieDate(bytes)].compactMap(\.self) {
            guard let text = HTTPDate.text(date) else {
                throw Finding(text: "\(date.timeIntervalSince1970) cannot be formatted")
            }
            try require(HTTPDate.parse(text, now: now) == date, "\(text) is parsed as another date")
        }
        guard let delay = RetryAfter(value, now: now)?.delay else { return }
        try require(delay >= .zero && delay <= RetryAfter.maximum, "the delay is \(delay)")
    }
}
