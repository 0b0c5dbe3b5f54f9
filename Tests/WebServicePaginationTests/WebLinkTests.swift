import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServicePagination

@Suite("Link header fields", .permit)
struct WebLinkTests {
    private func response(_ fields: [String], url: String = "https://h/a/b?c=1") throws -> Response {
        let lines = ["HTTP/1.1 200 OK"] + fields.map { "lInK: \($0)" } + ["", ""]
        let head = try #require(ResponseHead(bytes: Array(lines.joined(separator: "\r\n").utf8), url: url))
        return Response(data: Data(), head: head)
    }

    private func links(_ fields: String...) throws -> [WebLink] { try response(fields).links }

    @Test("Targets are resolved against the URL of the response (RFC 3986, section 5)")
    func targets() throws {
        let targets = ["https://x/y", "//x/y", "/y?p=2", "y", "../y", "?p=2", "", "#f", "HTTP://X:80/%7e"]
        let resolved = [
            "https://x/y", "https://x/y", "https://h/y?p=2", "https://h/a/y", "https://h/y", "https://h/a/b?p=2",
            "https://h/a/b?c=1",
            "https://h/a/b?c=1#f", "HTTP://X:80/%7e",
        ]
        #expect(try links(targets.map { "<\($0)>; rel=x" }.joined(separator: ", ")).map(\.target) == resolved)
        #expect(WebLink.parse("<y>; rel=x", base: nil).map(\.target) == ["y"])
    }

    @Test("Commas and semicolons in targets and delimiters in quoted strings do not separate links or parameters")
    func quotes() throws {
        let found = try links(#"<a,b;c>; title="x, <y>; rel=\"no\" \\"; rel="next" , <d>;rel=last"#)
        #expect(found.map(\.target) == ["https://h/a/a,b;c", "https://h/a/d"])
        #expect(found.first?["TITLE"] == #"x, <y>; rel="no" \"#)
        #expect(found.map(\.relations) == [["next"], ["last"]])
    }

    @Test("Links of several fields, several links of one field and empty list elements are parsed")
    func several() throws {
        let response = try response(["<1>; rel=prev, , ,<2>; rel=next,", "", " , <3>; rel=first"])
        #expect(response.links.map(\.target) == ["https://h/a/1", "https://h/a/2", "https://h/a/3"])
        #expect(response.link("next")?.target == "https://h/a/2")
        #expect(response.link("last") == nil)
    }

    @Test("A link has several relation types in any case, and the first of repeated rel parameters applies")
    func relations() throws {
        let link = try #require(try links("<x>;REL=\"Prev \t nEXT\";rel=last;ReL=up").first)
        #expect(link.relations == ["prev", "next"])
        #expect(link.isOf("NEXT"))
        #expect(link.isOf("prev"))
        #expect(!link.isOf("last"))
        #expect(!link.isOf("nex"))
        #expect(link.parameters.map(\.name) == ["rel", "rel", "rel"])
        #expect(link.parameters.map(\.value) == ["Prev \t nEXT", "last", "up"])
    }

    @Test("Spaces around = and ;, unquoted values and parameters without a value are accepted")
    func blanks() throws {
        let link = try #require(
            try links("  <x> ; rel = next\t;  flag ;; a=; title*=UTF-8''%e2%82%ac ; b = \"\" , <y>").first)
        #expect(link.parameters.map(\.name) == ["rel", "flag", "a", "title*", "b"])
        #expect(link.parameters.map(\.value) == ["next", "", "", "UTF-8''%e2%82%ac", ""])
    }

    @Test(
        "Parsing stops at a syntax error and returns the links and parameters before it",
        arguments: [
            ("", 0), (",", 0), ("x", 0), ("<x", 0), ("<x>", 1), ("<x>;", 1), ("<x>;rel", 1), ("<x>;rel=\"next", 1),
            ("<x>;rel=\"next\\", 1),
            ("<x> y, <z>", 1), ("<x>;a=\"b\"c, <z>", 1), ("<x>; =v", 1), ("<x>, y, <z>", 1), ("<x>,<", 1), ("<<x>>", 1),
        ])
    func mistakes(field: String, count: Int) throws {
        let found = try links(field)
        #expect(found.count == count)
        for link in found {
            #expect(link.relations == (field.contains("next") ? [field.hasSuffix("\\") ? "next" : "next"] : []))
        }
    }

    @Test("A link with another context URL is not a link of the response")
    func anchors() throws {
        let response = try response([
            "<1>; rel=next; anchor=\"/other\"", "<2>; rel=next; anchor=\"?c=1\"", "<3>; rel=next",
        ])
        #expect(response.links.map(\.anchor) == ["https://h/other", "https://h/a/b?c=1", nil])
        #expect(response.link("next")?.target == "https://h/a/2")
    }

    @Test("A field of 100,000 links, parameters or escapes is parsed completely")
    func long() throws {
        #expect(WebLink.parse(String(repeating: ",", count: 100_000) + "<x>", base: nil).count == 1)
        #expect(WebLink.parse(String(repeating: "<x>;a=\"b\",", count: 100_000), base: nil).count == 100_000)
        #expect(
            WebLink.parse("<x>" + String(repeating: ";a", count: 100_000), base: nil).first?.parameters.count == 100_000
        )
        #expect(
            WebLink.parse("<x>;a=\"" + String(repeating: "\\\\", count: 100_000), base: nil).first?["a"]?.utf8.count
                == 100_000)
    }
}
