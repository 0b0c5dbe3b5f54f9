import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields

/// The media types of queries (RFC 10008, section 3).
@Suite("Accept-Query", .permit)
struct AcceptQueryTests {
    private func ranges(_ field: String) -> [String]? {
        let headers: Headers = ["Accept-Query": field]
        return headers.acceptQuery?.map { range in
            let parameters = range.parameters.sorted { $0.key < $1.key }.map { ";\($0.key)=\($0.value)" }
            return "\(range.type)/\(range.subtype)\(parameters.joined())"
        }
    }

    @Test("The example of RFC 10008 has two media types, one with a parameter")
    func example() {
        #expect(
            ranges(#""application/jsonpath", application/sql;charset="UTF-8""#)
                == ["application/jsonpath", "application/sql;charset=UTF-8"])
    }

    @Test(
        "Tokens and strings have the same meaning, also in parameters",
        arguments: [
            #"application/sql;charset=UTF-8;v="1""#, #""application/sql";charset="UTF-8";v="1""#,
            #""Application/SQL";v="1";charset=UTF-8"#,
        ])
    func types(field: String) {
        #expect(ranges(field) == ["application/sql;charset=UTF-8;v=1"])
    }

    @Test("The values of a repeated field are one list, and an absent field is empty")
    func lines() {
        let headers: Headers = ["accept-query": "a/b", "Accept-Query": "\"3/d\", e/*"]
        #expect(headers.acceptQuery?.map(\.type) == ["a", "3", "e"])
        #expect(Headers().acceptQuery == [])
    }

    @Test(
        "A malformed field is ignored as a whole",
        arguments: [
            "a/b, c", "a/b/c", "\"a b/c\"", "1", "?1", "(a/b)", "a/b;v=1", "a/b;v", "*/b", "\"\"", "/a", "a/",
            "a/b,,c/d",
            "\"a/b;c=d\"", "a/b;q=0.5",
        ])
    func malformed(field: String) {
        #expect(ranges(field) == nil)
    }

    @Test("A range includes media types whatever their case, with the parameters of the range")
    func inclusion() throws {
        let headers: Headers = [
            "Accept-Query": #"application/sql;charset="UTF-8", text/*, application/x;v=A"#
        ]
        let ranges = try #require(headers.acceptQuery)
        func included(_ mediaType: String) -> Bool { ranges.contains { $0.includes(mediaType) } }
        #expect(included("Application/SQL; charset=\"utf-8\"; q=1"))
        #expect(!included("application/sql"))
        #expect(!included("application/sql;charset=latin1"))
        #expect(included("text/plain"))
        #expect(!included("texts/plain"))
        #expect(included("application/x; V=A"))
        #expect(!included("application/x;v=a"))
        let any: Headers = ["Accept-Query": "*/*"]
        #expect(any.acceptQuery?.first?.includes("image/png") == true)
    }

    @Test("A field of a megabyte is read in linear time")
    func size() {
        let field = Array(repeating: "application/sql;charset=\"UTF-8\"", count: 30_000).joined(separator: ",")
        #expect(ranges(field)?.count == 30_000)
    }
}
