import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics

@testable import WebServiceCore

@Suite("Multipart bodies", .permit)
struct MultipartFormDataTests {
    /// The body with a single part that has this head and content.
    private func body(_ head: String, _ content: String = "", of form: MultipartFormData) -> Data {
        Data("--\(form.boundary)\r\n\(head)\r\n\r\n\(content)\r\n--\(form.boundary)--\r\n".utf8)
    }

    @Test("Parts are written in order, including repeated names and empty parts")
    func layout() throws {
        let form = MultipartFormData.make {
            $0.append("a\r\nb\n", name: "text")
            $0.append(Data(), name: "text")
            $0.append(
                Data([0, 255]), name: "data", fileName: "d.bin", contentType: "image/png; q=\"ä\"",
                headers: ["X-A": "1", "X-a": ""])
        }
        let boundary = form.boundary
        let expected =
            Data(
                """
                --\(boundary)\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\nb\n\r
                --\(boundary)\r\nContent-Disposition: form-data; name="text"\r\nContent-Type: application/octet-stream\r\n\r\n\r
                --\(boundary)\r\nContent-Disposition: form-data; name="data"; filename="d.bin"\r\nContent-Type: image/png; q="ä"\r\nX-A: 1\r\nX-a: \r\n\r\n
                """.utf8) + Data([0, 255]) + Data("\r\n--\(boundary)--\r\n".utf8)
        #expect(try form.body() == expected)
        let sent = try form.request.urlRequest()
        #expect(sent.httpBody == expected)
        #expect(sent.httpBodyStream == nil)
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == "multipart/form-data; boundary=\(boundary)")
        #expect(try form.request.encode().bodyCount == expected.count)
    }

    @Test(
        "A form without parts consists of the closing boundary, and 10,000 parts are written completely")
    func counts() throws {
        let empty = MultipartFormData.make { _ in }
        #expect(try empty.body() == Data("--\(empty.boundary)--\r\n".utf8))
        let many = MultipartFormData.make { form in
            for number in 0..<10_000 { form.append("\(number)", name: "n\(number % 7)") }
        }
        let parts = String(decoding: try many.body(), as: UTF8.self).components(separatedBy: "--\(many.boundary)\r\n")
            .dropFirst()
        #expect(parts.count == 10_000)
        let isRight = parts.enumerated().allSatisfy { number, part in
            part.utf8.starts(with: "Content-Disposition: form-data; name=\"n\(number % 7)\"\r\n\r\n\(number)\r\n".utf8)
        }
        #expect(isRight)
    }

    @Test("Only quotation marks and line breaks are escaped in names and file names")
    func escaping() throws {
        let all = String(String.UnicodeScalarView((UInt8(1)...255).map { Unicode.Scalar($0) }))
        let rows = [
            ("\"", "%22"), ("\r", "%0D"), ("\n", "%0A"), ("\r\n", "%0D%0A"), ("\n\r\"\"", "%0A%0D%22%22"), ("\\", "\\"),
            ("\\\"", "\\%22"),
            ("%22", "%22"),
            ("\"\u{301}", "%22\u{301}"), ("\r\u{301}\n\u{301}", "%0D\u{301}%0A\u{301}"), ("", ""), ("a; b=c", "a; b=c"),
            ("é", "é"),
            ("e\u{301}", "e\u{301}"),
            ("🍺", "🍺"), ("\u{85}\u{2028}", "\u{85}\u{2028}"),
            (
                all,
                String(
                    String.UnicodeScalarView(
                        (UInt8(1)...255).flatMap { byte -> [Unicode.Scalar] in
                            switch byte {
                            case 0x0A: Array("%0A".unicodeScalars)
                            case 0x0D: Array("%0D".unicodeScalars)
                            case 0x22: Array("%22".unicodeScalars)
                            default: [Unicode.Scalar(byte)]
                            }
                        }))
            ),
        ]
        for (text, escaped) in rows {
            let named = MultipartFormData.make { $0.append("v", name: text) }
            #expect(try named.body() == body("Content-Disposition: form-data; name=\"\(escaped)\"", "v", of: named))
            let filed = MultipartFormData.make {
                $0.append(Data("v".utf8), name: text, fileName: text, contentType: "a/b")
            }
            let head =
                "Content-Disposition: form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"\r\nContent-Type: a/b"
            #expect(try filed.body() == body(head, "v", of: filed))
        }
    }

    @Test("A NUL in a name or a file name is an error that names the part")
    func nul() throws {
        for text in ["\0", "photo\0", "\0\"", "a\0\u{301}"] {
            let shown = text.escapingControls
            expectFailure(.encoding, naming: ["'\(shown)'", "NUL"], hiding: ["s3cret"]) {
                try MultipartFormData.make { $0.append("s3cret", name: text) }.request.encode()
            }
            expectFailure(.encoding, naming: ["'photo'", "file name", "NUL"]) {
                try MultipartFormData.make { $0.append(Data(), name: "photo", fileName: text) }.request.encode()
            }
        }
    }

    @Test(
        "An invalid content type and invalid or reserved header fields are errors that name the part")
    func heads() throws {
        let types = [
            "", "/", "a", "a/", "/b", "a/b/c", "a b/c", "a/b c", "a/b\r\nX: 1", "a/b; c\r\n", "a/b\n", "a/b\0",
            "a/b; \u{7F}", "a/b;\r\u{301}", "é/b",
            " a/b",
            "a/b, c/d", "\r\n\r\na/b",
        ]
        for type in types {
            expectFailure(.encoding, naming: ["'photo'", "content type"], "\(type.debugDescription)") {
                try MultipartFormData.make { $0.append(Data(), name: "photo", contentType: type) }.request.encode()
            }
        }
        for type in ["a/b", "a/b;c", "a/b ; c=d", "a/b;", "text/plain; charset=utf-8", "application/vnd.a+json"] {
            let body = try MultipartFormData.make { $0.append(Data(), name: "photo", contentType: type) }.body()
            #expect(body.firstRange(of: Data("\r\nContent-Type: \(type)\r\n\r\n".utf8)) != nil)
        }
        let fields: [(String, String)] = [
            ("", "1"), ("X Y", "1"), ("X:", "1"), ("X\r\nY", "1"), ("é", "1"), ("X", "1\r\nY: 2"), ("X", "\n"),
            ("X", "\0"), ("X", "\r\u{301}"),
            ("X", "a\u{7F}"), ("Content-Disposition", "form-data"), ("content-type", "a/b"),
            ("CONTENT-TRANSFER-ENCODING", "base64"),
        ]
        for (name, value) in fields {
            expectFailure(.encoding, naming: ["'photo'", "header field"], "\(name.debugDescription)") {
                try MultipartFormData.make { $0.append(Data(), name: "photo", headers: Headers([(name, value)])) }
                    .request.encode()
            }
        }
    }

    @Test("10,000 boundaries are unique, valid and evenly distributed")
    func boundaries() throws {
        let boundaries = (0..<10_000).map { _ in MultipartFormData().boundary }
        #expect(Set(boundaries).count == 10_000)
        let legal = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=?".utf8)
        #expect(boundaries.allSatisfy { (1...70).contains($0.utf8.count) })
        #expect(boundaries.allSatisfy { $0.utf8.allSatisfy(legal.contains) })
        // A chi-squared test over 32 digits of 4 bits each. The sum has 32 × 15 degrees of freedom,
        // a mean of 480 and a standard deviation of 31.
        var sum = 0.0
        for place in 0..<32 {
            var counts = [Character: Double]()
            for boundary in boundaries { counts[Array(boundary.suffix(32))[place], default: 0] += 1 }
            #expect(counts.count == 16)
            sum += counts.values.reduce(0) { $0 + ($1 - 625) * ($1 - 625) / 625 }
        }
        #expect(sum > 480 - 8 * 31)
        #expect(sum < 480 + 8 * 31)
    }

    @Test("Copies of a form share a boundary, and content similar to a boundary is written unchanged")
    func boundaryInContent() throws {
        var form = MultipartFormData()
        let copy = form
        #expect(form.boundary == copy.boundary)
        #expect(form.boundary != MultipartFormData().boundary)
        let near = "\r\n--\(form.boundary.dropLast())\r\n--WebService-\r\n--\r\n\(MultipartFormData().boundary)--\r\n"
        form.append(near, name: "near")
        #expect(try form.body() == body("Content-Disposition: form-data; name=\"near\"", near, of: form))
        let again = try form.body()
        #expect(try form.body() == again)
    }

    // MARK: As the body of a request

    @Test("A multipart body and bodies of other kinds replace each other")
    func replaces() throws {
        let form = MultipartFormData.make { $0.append("1", name: "a") }
        var request = form.request
        #expect(request.multipart != nil)
        #expect(request.body == nil)
        #expect(request.formParameters == nil)
        #expect(request.contentType == form.contentType)
        request.formParameters = ["a": 1]
        #expect(request.multipart == nil)
        request.multipart = form
        #expect(request.formParameters == nil)
        request.body = Data("x".utf8)
        let text = try request.encodedBody()
        #expect(request.multipart == nil)
        #expect(text == "x")
        request.multipart = nil
        let body = try request.encode().body
        #expect(body == nil)
        #expect(request.contentType == nil)
        request.multipart = form
        request.parameters = ["a": 1]
        #expect(try request.encode().body == Data("a=1".utf8), "the body that was set last is used")
        expectFailure(.encoding, naming: ["GET"]) { try Request.make(.GET) { $0.multipart = form }.encode() }
    }

    @Test("A Content-Type field that is set explicitly must contain the boundary")
    func contentType() throws {
        let form = MultipartFormData.make { _ in }
        var request = form.request
        for type in ["multipart/form-data", "multipart/form-data; boundary=x", "application/json", ""] {
            request.headers[.contentType] = type
            expectFailure(.encoding, naming: ["Content-Type", "boundary"]) { try request.encode() }
        }
        request.headers[.contentType] = "multipart/mixed; boundary=\(form.boundary)"
        #expect(
            try request.urlRequest().value(forHTTPHeaderField: "Content-Type")
                == "multipart/mixed; boundary=\(form.boundary)")
    }

    @Test("The descriptions of a form and of its request contain no names and no content")
    func description() throws {
        let form = MultipartFormData.make {
            $0.append("s3cret", name: "s3cret-name")
            $0.append(Data("s3cret".utf8), name: "b", fileName: "s3cret", headers: ["X-A": "s3cret"])
        }
        #expect("\(form)" == "multipart/form-data with 2 parts")
        #expect("\(MultipartFormData.make { $0.append("", name: "") })" == "multipart/form-data with 1 part")
        for text in [
            printed(form), printed(form.request), printed(try form.request.encode()), form.request.curlDescription(),
        ] {
            #expect(!text.contains("s3cret"))
        }
        #expect(form.request.curlDescription().contains("--data-binary '[redacted]'"))
    }

    @Test("A task sends the form that was set on it")
    func setter() async throws {
        let session = HandSession(text: "ok")
        let form = MultipartFormData.make { $0.append("1", name: "a") }
        _ = try await WebService.make(session, timekeeper: nil).POST("/a").setJSON(1).setMultipart(form).string().value
        let sent = try #require(session.exchanges.values.first).request.urlRequestValue
        let body = try form.body()
        #expect(sent.httpBody == body)
        #expect(sent.value(forHTTPHeaderField: "Content-Type") == form.contentType)
    }
}
