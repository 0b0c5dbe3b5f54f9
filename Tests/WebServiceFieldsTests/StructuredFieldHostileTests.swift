import Foundation
import TestSupport
import Testing
import WebServiceFields

@Suite("Hostile structured fields", .permit)
struct StructuredFieldHostileTests {
    private func parse(_ field: String) {
        _ = StructuredField.item(parsing: field)
        _ = StructuredField.list(parsing: field)
        _ = StructuredField.dictionary(parsing: field)
    }

    @Test(
        "A long field is parsed in linear time",
        arguments: [
            ("", "a,"), ("", "("), ("", "()"), ("(", "1 "), ("1", ";a"), ("", "a=1,"), ("\"", "\\\\"),
            (":", "AAAA"), ("%\"", "%c3%a4"), ("", "9"), ("", "a"), ("a", ","), ("a", "\t"), ("", " "), ("a=(", "b;c "),
        ])
    func linear(start: String, piece: String) {
        func time(_ size: Int) -> Double {
            let field = start + String(repeating: piece, count: size / piece.utf8.count)
            return processorTime { parse(field) }
        }
        // Linear time is 10 times as long, and quadratic time 100 times. The factor and the sum cover
        // other work of the machine, which may make a processor half as fast at any time.
        let size = amount(1 << 18, thorough: 1 << 20)
        #expect(time(size) < 40 * time(size / 10) + 0.2)
    }

    @Test("A field with 100,000 different keys is parsed and serialized in linear time")
    func keys() throws {
        func time(_ count: Int) throws -> Double {
            let field = (0..<count).map { "k\($0)" }.joined(separator: ", ")
            return try processorTime {
                let dictionary = try #require(StructuredField.dictionary(parsing: field))
                #expect(dictionary.count == count)
                #expect(try StructuredField.serialized(dictionary) == field)
            }
        }
        let bound = 40 * (try time(10_000)) + 0.2
        #expect(try time(100_000) < bound)
    }

    @Test("Mutated fields never trap, and what is parsed is serialized to a field that is parsed as the same value")
    func mutations() throws {
        var generator = SeededGenerator(seed: 4)
        let seeds = [
            "a=(1 -2.5;b);c=\"d\\\"\", e=:YQ==:;f, *g=%\"%e2%82%ac\", h=@1, i=?0, j=k/l", "text/html;q=0.5, (a b);c",
            "@1659578233;a=?1;b", "999999999999.999;x=-999999999999999",
        ].map { Array($0.utf8) }
        let marks = Array(";=,() \"%:?@-.*\\a1\t\u{7F}".utf8)
        for _ in 0..<20_000 {
            var bytes = seeds[Int.random(in: seeds.indices, using: &generator)]
            for _ in 0...Int.random(in: 0..<3, using: &generator) {
                let place = Int.random(in: bytes.indices, using: &generator)
                bytes[place] = marks[Int.random(in: marks.indices, using: &generator)]
            }
            let field = String(decoding: bytes, as: UTF8.self)
            if let item = StructuredField.item(parsing: field) {
                #expect(StructuredField.item(parsing: try StructuredField.serialized(item)) == item)
            }
            if let list = StructuredField.list(parsing: field) {
                #expect(StructuredField.list(parsing: try StructuredField.serialized(list) ?? "") == list)
            }
            if let dictionary = StructuredField.dictionary(parsing: field) {
                let text = try StructuredField.serialized(dictionary) ?? ""
                #expect(StructuredField.dictionary(parsing: text) == dictionary)
            }
        }
    }
}
