import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Curl description", .permit)
struct CurlDescriptionTests {
    /// Returns the command for a request to `https://h/v1`. Each option begins with a space.
    private func curl(_ options: String, pipe: String = "") -> String {
        "\(pipe)curl --disable --globoff --path-as-is\(options) --url 'https://h/v1'"
    }

    private func post(_ body: Data, type: String? = "text/plain") -> Request {
        Request.make(.POST) { $0.content = .data(body, contentType: type) }
    }

    /// Returns the command for a POST request with a `text/plain` body and the given body options.
    private func curlPost(_ data: String, pipe: String = "") -> String {
        curl(" --request 'POST' --header 'Content-Type: text/plain'\(data)", pipe: pipe)
    }

    // MARK: - Parts of a request

    @Test("The command contains the method, the header fields sorted by name, the body and the URL, in this order")
    func whole() throws {
        let request = try Request.make(.PUT, "https://h/brewers/7?a=b") {
            $0.headers = ["X-Two": "2", "accept": "text/plain", "X-One": "1"]
            $0.queryParameters = ["q": "it's [x]"]
            try $0.serialize(json: ["name": "O'Brien"])
        }
        #expect(
            request.curlDescription(redaction: nil)
                == #"curl --disable --globoff --path-as-is --request 'PUT' --header 'Content-Type: application/json' --header 'X-One: 1' "#
                + #"--header 'X-Two: 2' --header 'accept: text/plain' --data-binary '{"name":"O'\''Brien"}' "#
                + #"--url 'https://h/brewers/7?a=b&q=it%27s%20%5Bx%5D'"#)
    }

    @Test(
        "Methods other than GET have an option, and those that expect a body add Content-Length: 0",
        arguments: [
            (.GET, ""), (.HEAD, " --head"), ("TRACE", " --request 'TRACE'"),
            (.POST, " --request 'POST' --header 'Content-Length: 0'"),
            (.PUT, " --request 'PUT' --header 'Content-Length: 0'"),
            (.PATCH, " --request 'PATCH' --header 'Content-Length: 0'"), (.DELETE, " --request 'DELETE'"),
            (.OPTIONS, " --request 'OPTIONS'"), ("PROPFIND", " --request 'PROPFIND'"), (.QUERY, " --request 'QUERY'"),
            ("-o", " --request '-o'"), ("`a'$b", #" --request '`a'\''$b'"#),
        ] as [(Request.Method, String)])
    func methods(method: Request.Method, expected: String) {
        #expect(Request.make(method).curlDescription() == curl(expected))
    }

    @Test("The command for an empty body differs from one without a body only in its media type")
    func emptyBody() {
        #expect(post(Data()).curlDescription() == curlPost(" --header 'Content-Length: 0'"))
        let get = Request.make { $0.body = Data() }
        #expect(get.curlDescription() == curl(" --header 'Content-Type: application/octet-stream'"))
        let delete = Request.make(.DELETE) { $0.body = Data() }
        #expect(
            delete.curlDescription()
                == curl(
                    " --request 'DELETE' --header 'Content-Type: application/octet-stream'"
                        + " --header 'Content-Length: 0'"))
    }

    @Test("Repeated header fields are joined, empty ones are preserved, and unprintable ones use printf")
    func headers() {
        let request = Request.make {
            $0.headers = [
                "A": "1", "a": "2", "Cookie": "a=1", "cookie": "b=2", "E": "", "Q": "it's \"$(x)\" `y` \\ !!",
                "T": "a\tb!", "U": "ä\u{202E}",
            ]
        }
        #expect(
            request.curlDescription(redaction: nil)
                == curl(
                    #" --header 'A: 1, 2' --header 'Cookie: a=1; b=2' --header 'E;' --header 'Q: it'\''s "$(x)" `y` \ !!'"#
                        + #" --header "$(printf -- 'T: a\011b\041')" --header "$(printf -- 'U: \303\244\342\200\256')""#
                ))
    }

    @Test("A body of printable text is one quoted argument, regardless of shell metacharacters")
    func textBodies() {
        for (body, expected) in [
            ("plain", "'plain'"), ("-x", "'-x'"), ("--config", "'--config'"), ("!!", "'!!'"), ("%41\\n", #"'%41\n'"#),
            ("$(a) `b` ${c}", "'$(a) `b` ${c}'"),
            ("'", #"''\'''"#), ("'';x", #"''\'''\'';x'"#), ("é 🍺", "'é 🍺'"), ("#;&|<>(){}*?~\"", "'#;&|<>(){}*?~\"'"),
            (" @file", "' @file'"),
            ("x'\u{301};y", "'x'\\''\u{301};y'"),  // quote and accent are one `Character`
        ] {
            #expect(post(Data(body.utf8)).curlDescription() == curlPost(" --data-binary \(expected)"))
        }
    }

    @Test("A body that begins with @, is not UTF-8 or is not printable is piped from printf")
    func pipedBodies() {
        for (body, expected) in [
            ("@file", "@file"), ("@\u{301}", #"@\314\201"#), ("a\nb", #"a\012b"#), ("\r\n", #"\015\012"#),
            ("\t'", #"\011\047"#), ("\0", #"\000"#),
            ("-\u{1B}0%d\\", #"-\0330\045d\134"#), ("\u{200B}!", #"\342\200\213\041"#),
            ("\u{FEFF}x", #"\357\273\277x"#),
        ] {
            #expect(
                post(Data(body.utf8)).curlDescription(redaction: nil)
                    == curlPost(" --data-binary '@-'", pipe: "printf -- '\(expected)' | "),
                "\(body)")
        }
        #expect(
            post(Data([0x61, 0xFF, 0x80, 0x00, 0x7F])).curlDescription(redaction: nil)
                == curlPost(" --data-binary '@-'", pipe: #"printf -- 'a\377\200\000\177' | "#))
    }

    @Test("A body that exceeds the maximum argument length is piped, and Expect is suppressed for long bodies")
    func longBodies() {
        let small = String(repeating: "x", count: 1024)
        let larger = String(repeating: "x", count: 65_536)
        #expect(post(Data(small.utf8)).curlDescription() == curlPost(" --data-binary '\(small)'"))
        #expect(post(Data(larger.utf8)).curlDescription() == curlPost(" --header 'Expect:' --data-binary '\(larger)'"))
        #expect(
            post(Data((larger + "y").utf8)).curlDescription()
                == curlPost(" --header 'Expect:' --data-binary '@-'", pipe: "printf -- '\(larger)y' | "))
    }

    @Test("A body created when the request is sent is a fixed placeholder, and its provider is not called")
    func unknownBodies() {
        let ran = Collected<Int>()
        let provided = Request.make(.POST) { request in
            request.setBodyProvider(contentType: "image/png") {
                ran.add(1)
                return Data()
            }
        }
        for redaction in [nil, Redaction.standard] {
            #expect(
                provided.curlDescription(redaction: redaction)
                    == curl(
                        " --request 'POST' --header 'Content-Type: image/png' --data-binary '[body created when sent]'")
            )
        }
        #expect(ran.values.isEmpty)
        #expect(
            Request.make { $0.setBodyProvider { Data() } }.curlDescription().hasPrefix(
                "# 'encoding: a GET request cannot have a body"))

        var streamed = URLRequest(url: URL(fileURLWithPath: "/"))
        streamed.url = URL(string: "https://h/v1")
        streamed.httpMethod = "POST"
        streamed.httpBodyStream = InputStream(data: Data("canary".utf8))
        #expect(
            Request(streamed).curlDescription()
                == curl(" --request 'POST' --header 'Content-Type:' --data-binary '[body created when sent]'"))
    }

    // MARK: - Secrets

    @Test(
        "Secrets in header fields, query, form and JSON are replaced unless redaction is nil"
    )
    func secrets() throws {
        let json = try Request.make(.POST, "https://h/v1?access_token=canary&page=2") {
            $0.headers = [
                "Authorization": "Bearer canary", "Cookie": "canary",
                "Referer": "https://ann:canary@h/?sid=canary#canary", "X-Api-Key": "canary",
            ]
            try $0.serialize(json: ["user": "ann", "login": ["password": "canary"]])
        }
        #expect(
            json.curlDescription()
                == "curl --disable --globoff --path-as-is --request 'POST' --header 'Authorization: [redacted]'"
                + " --header 'Content-Type: application/json' --header 'Cookie: [redacted]'"
                + " --header 'Referer: https://h/?sid=[redacted]' --header 'X-Api-Key: [redacted]'"
                + #" --data-binary '{"login":{"password":"[redacted]"},"user":"ann"}' --url 'https://h/v1?access_token=[redacted]&page=2'"#
        )
        let all = json.curlDescription(redaction: nil)
        #expect(all.components(separatedBy: "canary").count == 9)
        #expect(!all.contains("redacted"))

        let form = Request.make(.POST) { $0.formParameters = ["user": "ann", "password": "canary"] }
        #expect(form.curlDescription().contains(" --data-binary 'user=ann&password=[redacted]' "))
        let parameters = Request.make(.POST) { $0.parameters = ["token": "canary", "a": 1] }
        #expect(parameters.curlDescription().contains(" --data-binary 'token=[redacted]&a=1' "))
        let jsonParameters = Request.make(.POST) { request in
            request.parameters = ["token": "canary"]
            request.parameterEncoding = .json
        }
        #expect(jsonParameters.curlDescription().contains(#" --data-binary '{"token":"[redacted]"}' "#))
    }

    @Test(
        "A Content-Type field with another media type does not reveal the secrets of a body",
        arguments: ["text/plain", "application/json", ""])
    func disguised(type: String) throws {
        let form = Request.make(.POST) { request in
            request.formParameters = ["password": "canary"]
            request.headers[.contentType] = type
        }
        #expect(form.curlDescription().contains(" --data-binary 'password=[redacted]' "))
        let parameters = Request.make(.POST) { request in
            request.parameters = ["password": "canary"]
            request.headers[.contentType] = type
        }
        #expect(parameters.curlDescription().contains(" --data-binary 'password=[redacted]' "))
        let json = try Request.make(.POST) { request in
            try request.serialize(json: ["password": "canary"])
            request.headers[.contentType] = ContentType.formEncoded
        }
        #expect(json.curlDescription().contains(#" --data-binary '{"password":"[redacted]"}' "#))
    }

    @Test("A body that cannot be parsed for redaction is replaced completely")
    func opaque() {
        let multipart = Data("--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\ncanary\r\n--b--\r\n".utf8)
        let replaced = " --data-binary '[redacted]'"
        #expect(
            post(multipart, type: "multipart/form-data; boundary=b").curlDescription()
                == curl(" --request 'POST' --header 'Content-Type: multipart/form-data; boundary=b'\(replaced)"))
        #expect(
            post(Data("canary".utf8), type: nil).curlDescription()
                == curl(" --request 'POST' --header 'Content-Type: application/octet-stream'\(replaced)"))
        #expect(post(Data("canary".utf8) + [0xFF]).curlDescription() == curlPost(replaced))
        #expect(post(Data(#"{"password":"canary"}"#.utf8) + [0xC3]).curlDescription() == curlPost(replaced))
    }

    @Test("A custom placeholder is quoted for the shell and escaped in the URL")
    func placeholder() {
        let request = Request.make(.POST, "https://h/v1?token=canary") { request in
            request.headers = ["Authorization": "canary", "Cookie": "canary"]
            request.formParameters = ["pin": 1]
        }
        #expect(
            request.curlDescription(redaction: Redaction(secretNames: ["cookie"], placeholder: "it's <\u{2022}> $(x)"))
                == "curl --disable --globoff --path-as-is --request 'POST' --header 'Authorization: it'\\''s <\u{2022}> $(x)'"
                + " --header 'Content-Type: application/x-www-form-urlencoded' --header 'Cookie: it'\\''s <\u{2022}> $(x)'"
                + " --data-binary 'pin=it'\\''s <\u{2022}> $(x)' --url 'https://h/v1?token=it'\\''s%20<%E2%80%A2>%20$(x)'"
        )
    }

    // MARK: - Errors

    @Test(
        "A request that cannot be encoded becomes a quoted one-line comment with the error and without values"
    )
    func errors() {
        let value = Request.make { $0.headers = ["X-Secret": "canary\r\nX: y"] }
        #expect(
            value.curlDescription(redaction: nil)
                == #"# 'invalidHeader: the value of the header field '\''X-Secret'\'' contains a line break or "#
                + "another control character; remove it'"
        )
        let name = Request.make { $0.headers = ["Proxy-`id`$x'": "canary"] }
        #expect(
            name.curlDescription()
                == #"# 'invalidHeader: the header field '\''Proxy-`id`$x'\'''\'' is reserved for the transport; "#
                + "remove it'"
        )
        let parameter = Request.make { $0.queryParameters = ["a\n`id`\u{1B}": Double.nan] }
        #expect(
            parameter.curlDescription()
                == #"# 'encoding: the parameter '\''a\n`id`\u{1B}'\'' is not a finite number; pass a finite number or a string'"#
        )
        #expect(
            Request(.GET, url: "ftp://h").curlDescription()
                == #"# 'invalidURL: the scheme '\''ftp'\'' is not supported; use http or https'"#)
        #expect(
            Request(.GET, url: "https://ann:canary@h").curlDescription(redaction: nil).hasPrefix(
                "# 'invalidURL: the URL must not contain user"))
        #expect(Request.make("a b").curlDescription().hasPrefix("# 'invalidMethod: the method must be a token"))
        let link = Request.make { $0.queryParameters = ["/?u=%2F%3Ftoken%3Dcanary": Double.nan] }
        #expect(!link.curlDescription().contains("canary"))
    }

    // MARK: - Any input

    @Test(
        "The command is one line of printable characters for any scalar in header fields, bodies and names"
    )
    func oneLine() {
        let values =
            Array(0...UInt32(amount(0x2FF, thorough: 0x7FF, soak: 0x2FFF))) + [
                0x2028, 0x202E, 0x2066, 0xE000, 0xFEFF, 0xFFFE, 0xFFFF, 0x1F37A, 0xE0041, 0x10FFFF,
            ]
        let wrong = values.compactMap(Unicode.Scalar.init).filter { scalar in
            var request = post(Data("'\(scalar)'".utf8))
            request.headers["X"] = "a\(scalar)b"
            let parameter = Request.make { $0.queryParameters = ["a\(scalar)b": Double.nan] }
            let texts = [request, parameter, post(Data("'\(scalar)'".utf8))].map { $0.curlDescription(redaction: nil) }
            return texts.contains { $0.escapingControls.utf8.count != $0.utf8.count }
        }
        #expect(wrong.isEmpty, "\(wrong)")
    }
}
