import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Content-Range", .permit)
struct ContentRangeTests {
    @Test(
        "A range of bytes is read with its total",
        arguments: [
            ("bytes 0-0/1", .bytes(0...0, total: 1)), ("bytes 42-1233/1234", .bytes(42...1233, total: 1234)),
            ("bytes 42-1233/*", .bytes(42...1233, total: nil)), ("BYTES 0-9/10", .bytes(0...9, total: 10)),
            (" bytes 0-9/10\t", .bytes(0...9, total: 10)), ("bytes */47022", .unsatisfied(total: 47022)),
            ("bytes */0", .unsatisfied(total: 0)), ("bytes 007-008/0010", .bytes(7...8, total: 10)),
            (
                "bytes 9223372036854775805-9223372036854775806/9223372036854775807",
                .bytes(9_223_372_036_854_775_805...9_223_372_036_854_775_806, total: .max)
            ),
        ] as [(String, ContentRange)])
    func valid(value: String, range: ContentRange) {
        #expect(ContentRange(value) == range)
    }

    @Test(
        "Another unit, a reversed or excessive range, an overflow and any other syntax are refused",
        arguments: [
            "", "bytes", "bytes ", "bytes 0-1", "bytes 0-1/", "bytes 0-/2", "bytes -1/2", "bytes 0/2", "bytes */*",
            "bytes */", "lines 0-1/2", "bytes 2-1/5", "bytes 0-5/5", "bytes 5-5/5", "bytes 0-0/0", "bytes=0-1/2",
            "bytes: 0-1/2", "bytes  0-1/2", "bytes 0 - 1/2", "bytes 0-1 /2", "bytes +0-1/2", "bytes 0--1/2",
            "bytes -0-1/2", "bytes 0-1/-2", "bytes 0-1/2/3", "bytes 0-1/2, bytes 0-1/2", "bytes 0x0-1/2",
            "bytes 9223372036854775808-9223372036854775809/*", "bytes 0-1/9223372036854775808",
            "bytes 0-99999999999999999999999/*", "bytes */100000000000000000000000", "bytes ٠-١/٢", "none 0-1/2",
        ])
    func invalid(value: String) {
        #expect(ContentRange(value) == nil)
    }
}
