import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Cache-Control", .permit)
struct CacheControlTests {
    @Test(
        "Max-age is parsed according to the grammar, and an invalid value counts as stale",
        arguments: [
            ("max-age=60", 60.0), ("MAX-Age=60", 60), ("public, max-age=60", 60), (",,max-age=60,", 60),
            ("max-age=\"60\"", 60), ("max-age=0060", 60),
            ("max-age=60, max-age=5", 5), ("max-age=5, max-age=60", 5), ("max-age=2147483648", 2_147_483_648),
            ("max-age=99999999999999999999", 2_147_483_648),
            ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age='60'", 0), ("max-age", 0), ("max-age=", 0),
            ("max-age =60", 0), ("max-age= 60", 0),
            ("max-age=60 61", 0), ("max-age=\"60", 60), ("max-age=\"60\"x", 0), ("max-age=\"60\" x", 0),
            ("max-age=\"60\"\"\"", 0),
            ("max-age=\"60\" ,x", 60), ("max-age=6\u{663}", 0),
        ])
    func maximumAge(field: String, seconds: TimeInterval) {
        #expect(CacheControl([field]).least("max-age") == seconds)
    }

    @Test("The content of a quoted string is not a directive")
    func quoted() {
        let control = CacheControl(["a=\"max-age=1, no-store\\\", b\", c=\"", "d"])
        #expect(control.least("max-age") == nil)
        #expect(!control.has("no-store"))
        #expect(!control.has("b"))
        #expect(control.has("a"))
        #expect(control.has("c"))
        #expect(control.has("d"))
    }

    @Test("no-cache and private can be limited to some fields")
    func limited() {
        let control = CacheControl(["no-cache=\"Set-Cookie, X-A\", private=x-b"])
        #expect(!control.isWhole("no-cache"))
        #expect(control.fields("no-cache") == ["set-cookie", "x-a"])
        #expect(!control.isWhole("private"))
        #expect(control.fields("private") == ["x-b"])
        for field in ["no-cache", "no-cache=\"\"", "no-cache=\"a\", no-cache", "no-cache=", "NO-CACHE"] {
            #expect(CacheControl([field]).isWhole("no-cache"), "\(field)")
        }
        #expect(!CacheControl(["x"]).isWhole("no-cache"))
    }

    @Test("max-stale without a value is unlimited, and an invalid min-fresh cannot be satisfied")
    func requestDirectives() {
        #expect(CacheControl(["max-stale"]).least("max-stale", bare: .infinity) == .infinity)
        #expect(CacheControl(["max-stale=x"]).least("max-stale", bare: .infinity) == 0)
        #expect(CacheControl(["max-stale=7"]).least("max-stale", bare: .infinity) == 7)
        #expect(CacheControl(["min-fresh=7, min-fresh=8"]).greatest("min-fresh") == 8)
        #expect(CacheControl(["min-fresh=x"]).greatest("min-fresh") == .infinity)
        #expect(CacheControl([]).greatest("min-fresh") == nil)
    }

    @Test("Any bytes can be parsed")
    func noise() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("=\",\\ \tmax-age60\u{e9}".utf8)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            let age = CacheControl([String(decoding: bytes, as: UTF8.self)]).least("max-age")
            #expect(age.map { (0...CacheControl.maximum).contains($0) } ?? true)
        }
    }
}
