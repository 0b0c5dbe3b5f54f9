import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Redaction of header values, URLs and bodies", .permit)
struct RedactionTests {
    private let redaction = Redaction.standard

    @Test(
        "Only user information and the values of secret names are redacted in header values",
        arguments: [
            ("https://u:p@h/?token=canary#f", "https://h/?token=[redacted]"), ("https://u:p@ss@h/", "https://h/"),
            ("//u@h, //v@i", "//h, //i"), ("////u@h", "////h"), ("//u/x@h", "//u/x@h"), ("a@b //c", "a@b //c"),
            ("//a //u@h", "//a //h"), ("git+ssh://git@h/a", "git+ssh://git@h/a"),
            (
                "<https://h/?page=2&api_key=canary>; rel=\"next\"",
                "<https://h/?page=2&api_key=[redacted]>; rel=\"next\""
            ),
            ("a=1;token=canary;b=2", "a=1;token=[redacted];b=2"),
            ("a=1, pass%77ord=canary, b", "a=1, pass%77ord=[redacted], b"),
            ("token=&a=1", "token=&a=1"), ("token==canary", "token=[redacted]"),
            ("éÉtoken=canary", "éÉtoken=[redacted]"),
            ("next=https://h/?token=canary&a=1", "next=https://h/?token=[redacted]&a=1"),
            ("a=token=canary", "a=token=[redacted]"),
            ("Digest token=\"can, ary\", a=1", "Digest token=\"[redacted]\", a=1"),
            ("token=\"canary", "token=\"[redacted]"),
            ("token=\"a\\\"canary\" b", "token=\"[redacted]\" b"),
            ("code=canary&state=1", "code=[redacted]&state=[redacted]"),
            ("max-age=60, private", "max-age=60, private"), ("=", "="), ("a=", "a="), ("@=//@", "@=//"), ("", ""),
        ])
    func headerValues(value: String, expected: String) {
        #expect(redaction.value(ofHeader: "X-Any", value) == expected)
    }

    @Test(
        "A field name is secret with and without the X- prefix",
        arguments: [
            ("X-Key", true), ("x-PIN", true), ("X-Session", true), ("Key", true), ("Session", true),
            ("Ocp-Apim-Subscription-Key", true), ("X-Code", false), ("X-Keys", false),
            ("XKey", true), ("Y-Key", false), ("X-Functions-Key", true), ("X-JFrog-Art-Api", true),
            ("X-Master-Key", true),
            ("X-Signing-Key", true), ("DPoP", true), ("X-Station-Key", true), ("X-Cache-Key", false),
            ("Idempotency-Key", false), ("Sec-WebSocket-Key", false), ("X-Hub-Signature-256", true),
            ("X-Request-Id", false), ("X-Error-Code", false), ("Author", false),
        ])
    func headerNames(name: String, isSecret: Bool) {
        #expect(redaction.value(ofHeader: name, "canary") == (isSecret ? "[redacted]" : "canary"))
    }

    @Test(
        "An empty value, a Boolean and a count of tokens are not secret as the value of a field",
        arguments: [
            ("Access-Control-Allow-Credentials", "true", "true"), ("X-Remaining-Tokens", "39876", "39876"),
            ("X-Api-Key", "", ""), ("X-Pin", "1234", "[redacted]"), ("X-Tokens", "canary", "[redacted]"),
            ("Authorization", "true", "[redacted]"), ("Cookie", "", "[redacted]"),
        ])
    func fieldsWithoutSecrets(name: String, value: String, expected: String) {
        #expect(redaction.value(ofHeader: name, value) == expected)
    }

    @Test(
        "The user information of a URL ends at the last @ of its authority",
        arguments: [
            ("https://u:p@ss@h/", "https://h/"), ("https://u:p@h/a@b?c@d=1", "https://h/a@b?c@d=1"), ("//u@h/", "//h/"),
            ("https://h/", "https://h/"),
            ("https://u:p@ss@h?code=canary#canary", "https://h?code=[redacted]"),
            ("/x?a=1&token=canary", "/x?a=1&token=[redacted]"),
        ])
    func urls(url: String, expected: String) {
        #expect(redaction.url(url) == expected)
    }

    @Test(
        "Secrets are redacted even if a character combines with a delimiter",
        arguments: [
            ("https://h/?a&password=\u{301}canary", "https://h/?a&password=[redacted]"),
            ("https://h/x\u{600}?a&access_token=canary", "https://h/x\u{600}?a&access_token=[redacted]"),
            ("https://h/?\u{350}&token=canary", "https://h/?\u{350}&token=[redacted]"),
            ("https://h/?a&\u{350}token=canary", "https://h/?a&\u{350}token=[redacted]"),
            ("https://h/?token\u{600}=canary", "https://h/?token\u{600}=[redacted]"),
            ("https://h/?pin=\u{338}canary", "https://h/?pin=[redacted]"),
            ("https://h/#\u{350}canary", "https://h/"), ("https://h/\u{600}#canary", "https://h/\u{600}"),
            ("https://u:canary@\u{301}h/", "https://\u{301}h/"), ("https://u:canary\u{600}@h/", "https://h/"),
            ("https://\u{301}u:canary@h/", "https://h/"), ("//\u{301}u:canary@h/", "//h/"),
            ("\u{600}://u:canary@h/", "\u{600}://h/"),
            ("https://h/\u{301}a@b", "https://h/\u{301}a@b"),
            ("a=1&b=\u{301}2&c\u{600}=3", "a=1&b=\u{301}2&c\u{600}=3"),
        ])
    func combiningCharacters(url: String, expected: String) {
        let form = Data("password=\u{301}canary&a\u{600}&token=canary#".utf8)
        let shown = redaction.body(form, contentType: "application/x-www-form-urlencoded") ?? ""
        // Compared as bytes, because strings with different bytes can be equal, such as = followed
        // by U+0338 and U+2260.
        #expect(Array(redaction.url(url).utf8) == Array(expected.utf8))
        #expect(Array(shown.utf8) == Array("password=[redacted]&a\u{600}&token=[redacted]".utf8))
    }

    @Test(
        "Hyphens, underscores, periods, spaces and case separate words, and URL fragments are removed",
        arguments: ["pass-word", "access.token", "a-p_i k.e.y", "apiKey", "API key", "X-Api.Key", "ACCESS_TOKEN"])
    func separatedNames(name: String) {
        #expect(redaction.isSecret(key: name) == (name != "a-p_i k.e.y"))
        #expect(redaction.isSecret(header: name) == (name != "a-p_i k.e.y"))
        #expect(redaction.url("https://h/x#canary") == "https://h/x")
        #expect(redaction.url("#canary?a=1").isEmpty)
        #expect(!redaction.isSecret(key: "pass,word/x"))
    }

    @Test("Control characters are escaped, and 256 KB of them in linear time")
    func escaping() {
        let rows = [
            ("\0", "\\u{0}"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\u{1B}", "\\u{1B}"),
            ("\u{2028}", "\\u{2028}"),
            ("\u{202E}", "\\u{202E}"), ("\u{E0041}", "\\u{E0041}"), ("\u{10FFFF}", "\\u{10FFFF}"),
            ("é\u{301}a", "é\u{301}a"),
        ]
        for (control, escaped) in rows {
            #expect("a\(control)é".escapingControls == "a\(escaped)é")
        }
        var escaped = ""
        let text = String(repeating: "\0", count: 256 << 10)
        #expect(processorTime { escaped = text.escapingControls } < 3)
        #expect(escaped.utf8.elementsEqual(String(repeating: "\\u{0}", count: 256 << 10).utf8))
    }

    @Test(
        "The values of secret names are redacted in text bodies of any notation",
        arguments: [
            ("password=canary&user=ann", "password=[redacted]&user=ann"),
            ("password: can ary\nuser: ann", "password: [redacted]\nuser: ann"),
            ("Authorization: Bearer canary\r\nAccept: */*", "Authorization: [redacted]\r\nAccept: */*"),
            ("Cookie: a=canary; b=canary", "Cookie: [redacted]"),
            ("{token: 'can ary', a: 1}", "{token: '[redacted]', a: 1}"),
            ("x {\"password\" : \"can\\\"ary\"} y", "x {\"password\" : \"[redacted]\"} y"),
            ("see https://u:canary@h/", "see https://h/"),
            ("<a href=\"/?token=canary\">x</a>", "<a href=\"/?token=[redacted]\">x</a>"),
            ("token = canary end", "token = [redacted]"), ("a token=canary end", "a token=[redacted] end"),
            ("<user><password>can ary</password></user>", "<user><password>[redacted]</password></user>"),
            ("<ns:token>canary</ns:token> <b>x</b>", "<ns:token>[redacted]</ns:token> <b>x</b>"),
            ("code: missing_field", "code: missing_field"), ("code=canary", "code=[redacted]"),
            ("failed with code=missing_field", "failed with code=missing_field"),
            ("https://h/cb?code=canary&state=1", "https://h/cb?code=[redacted]&state=[redacted]"),
            ("\"token\": [\"canary\", \"canary\"], a", "\"token\": [redacted], a"),
            ("<token id=\"1\">canary</token>", "<token id=\"1\">[redacted]</token>"),
            ("<s:secret><![CDATA[canary]]></s:secret><a>1</a>", "<s:secret><![CDATA[[redacted]]]></s:secret><a>1</a>"),
            ("<password><b>canary</b>canary</password>", "<password><b>[redacted]</b>[redacted]</password>"),
            ("<token/>a", "<token/>a"), ("<tokens><b>1</b>canary", "<tokens><b>1</b>[redacted]"),
            ("user[pin]=canary&a=1", "user[pin]=[redacted]&a=1"), ("token=canary,canary", "token=[redacted]"),
            ("token:\nnext line", "token:\nnext line"),
            ("Tokens are long. Password rules apply", "Tokens are long. Password rules apply"), ("a > b", "a > b"),
            ("café=au lait", "café=au lait"),
            ("PASSWORD=\"canary", "PASSWORD=\"[redacted]"), ("[12:00] password=canary", "[12:00] password=[redacted]"),
        ])
    func textBodies(text: String, expected: String) {
        for type in ["text/plain", "text/html; charset=utf-8", "TEXT/csv"] {
            #expect(redaction.body(Data(text.utf8), contentType: type) == expected)
        }
    }

    @Test(
        "The code parameter is secret in URLs, in forms and next to grant_type, but not in other JSON",
        arguments: [
            (#"{"code":"missing_field","message":"x"}"#, #"{"code":"missing_field","message":"x"}"#),
            (#"{"errors":[{"CODE":7}]}"#, #"{"errors":[{"CODE":7}]}"#),
            (
                #"{"grant_type":"authorization_code","code":"canary"}"#,
                #"{"grant_type":"authorization_code","code":"[redacted]"}"#
            ),
            (
                #"{"code":"canary","grant_type":"authorization_code"}"#,
                #"{"code":"[redacted]","grant_type":"authorization_code"}"#
            ),
            (#"{"authorization_code":"canary","code":1}"#, #"{"authorization_code":"[redacted]","code":1}"#),
            (#"{"pin":"canary","key":"size"}"#, #"{"pin":"[redacted]","key":"size"}"#),
        ])
    func codes(body: String, expected: String) {
        #expect(redaction.body(Data(body.utf8), contentType: "application/json") == expected)
        #expect(redaction.url("https://h/cb?code=canary&state=1") == "https://h/cb?code=[redacted]&state=[redacted]")
        #expect(redaction.url("https://h/cb?code=Canary1") == "https://h/cb?code=[redacted]")
        #expect(redaction.url("https://h/e?code=missing_field&a=1") == "https://h/e?code=missing_field&a=1")
        let form = Data("grant_type=authorization_code&code=canary".utf8)
        #expect(
            redaction.body(form, contentType: "application/x-www-form-urlencoded")
                == "grant_type=authorization_code&code=[redacted]")
    }

    @Test(
        "An error code remains in every notation",
        arguments: ["missing_field", "404", "INVALID_STATE", "0", "user_not_found"])
    func errorCodes(code: String) throws {
        for json in [#"{"code":"\(code)"}"#, #"{"state":"open","error":{"code":"\(code)"}}"#, #"[{"code":"\(code)"}]"#]
        {
            #expect(redaction.body(Data(json.utf8), contentType: "application/json") == json)
        }
        for text in ["error code=\(code)", "code: \(code)", "<error><code>\(code)</code></error>"] {
            #expect(redaction.body(Data(text.utf8), contentType: "text/plain") == text)
        }
        #expect(redaction.url("https://h/e?code=\(code)&page=2") == "https://h/e?code=\(code)&page=2")
        #expect(redaction.pairs("code=\(code)") == "code=\(code)")
        #expect(redaction.value(ofHeader: "X-Code", code) == code)
        #expect(redaction.value(ofHeader: "X-Error", "status=400; code=\(code)") == "status=400; code=\(code)")
    }

    @Test(
        "Secrets within strings and encoded values are redacted, and other values remain byte for byte",
        arguments: [
            (
                #"{"next":"https://u:canary@h/?access_token=canary&a=1"}"#,
                #"{"next":"https://h/?access_token=[redacted]&a=1"}"#
            ),
            (
                #"{"next":"https:\/\/u:canary@h\/?a=1\u0026key=canary"}"#,
                #"{"next":"https:\/\/h\/?a=1\u0026key=[redacted]"}"#
            ),
            (#"{"a":"\u00e9\/\u0041=1"}"#, #"{"a":"\u00e9\/\u0041=1"}"#),
            (#"{"body":"{\"pin\":\"canary\",\"a\":\"\\n\"}"}"#, #"{"body":"{\"pin\":\"[redacted]\",\"a\":\"\\n\"}"}"#),
            (#"{"log":"Authorization: Bearer canary"}"#, #"{"log":"Authorization: [redacted]"}"#),
            (#"{"errors":["password: must be long"]}"#, #"{"errors":["password: must be long"]}"#),
            (#"{"Set-Cookie":"a=canary","x":1}"#, #"{"Set-Cookie":"[redacted]","x":1}"#),
            (#"{password:"canary",'pin':'canary'}"#, #"{password:"[redacted]",'pin':'[redacted]'}"#),
            (#"{"cut":"https://h/?token=can"#, #"{"cut":"https://h/?token=[redacted]"#),
            (#"{"\ud83d\ude00=pin=":"\ud83dpin=canary"}"#, #"{"\ud83d\ude00=pin=":"[redacted]"}"#),
        ])
    func nestedJSON(body: String, expected: String) {
        #expect(redaction.body(Data(body.utf8), contentType: "application/json") == expected)
    }

    @Test(
        "Secrets within the parameters and the path of a URL are redacted",
        arguments: [
            ("next=https%3A%2F%2Fu%3Acanary%40h%2F%3Fpin%3Dcanary", "next=https%3A%2F%2Fh%2F%3Fpin%3D%5Bredacted%5D"),
            ("json=%7B%22pin%22%3A%22canary%22%7D", "json=%7B%22pin%22%3A%22%5Bredacted%5D%22%7D"),
            ("a=1;pin=canary;b=2", "a=1;pin=[redacted];b=2"), ("user%5Bpin%5D=canary", "user%5Bpin%5D=[redacted]"),
            ("a=%41%20b+c&b=%3D%26", "a=%41%20b+c&b=%3D%26"),
            ("code=canary&redirect_uri=x", "code=[redacted]&redirect_uri=x"),
            ("device_code=canary&code_verifier=canary", "device_code=[redacted]&code_verifier=[redacted]"),
            ("code=canary&state=canary&iss=x", "code=[redacted]&state=[redacted]&iss=x"),
            ("state=canary&code=canary", "state=[redacted]&code=[redacted]"),
            ("error=access_denied&state=canary&iss=x", "error=access_denied&state=[redacted]&iss=x"),
            ("response_type=code&client_id=a&state=canary", "response_type=code&client_id=a&state=[redacted]"),
            (
                "code_challenge=a&dpop_jkt=b&client_assertion=canary",
                "code_challenge=a&dpop_jkt=b&client_assertion=[redacted]"
            ),
            ("state=ny&page=2", "state=ny&page=2"), ("postcode=10001&state=ny", "postcode=10001&state=ny"),
        ])
    func nestedParameters(query: String, expected: String) {
        #expect(redaction.pairs(query) == expected)
        #expect(
            redaction.url("https://h/a;jsessionid=canary?\(query)") == "https://h/a;jsessionid=[redacted]?\(expected)")
    }

    @Test("The state of a log-in is redacted in text and in header fields")
    func stateOfLogIn() {
        let url = "http://127.0.0.1:1/callback?code=canary&state=canary&iss=https%3A%2F%2Fh"
        let expected = "http://127.0.0.1:1/callback?code=[redacted]&state=[redacted]&iss=https%3A%2F%2Fh"
        #expect(redaction.value(ofHeader: "Location", url) == expected)
        #expect(redaction.text("the browser opened \(url)") == "the browser opened \(expected)")
        #expect(redaction.body(Data(url.utf8), contentType: "text/plain") == expected)
        #expect(redaction.text("state=closed; other=1") == "state=closed; other=1")
    }

    @Test("Added names and exceptions are compared by their words")
    func addedNames() {
        var redaction = Redaction(secretNames: ["Station-Mark"], harmlessNames: ["pageToken2", "ticket", "cookie"])
        redaction.secretNames.insert("Vault")
        let form = "stationMark=canary&VAULT=canary&ticket=ale&page_token=ale"
        #expect(redaction.pairs(form) == "stationMark=[redacted]&VAULT=[redacted]&ticket=ale&page_token=ale")
        #expect(redaction.value(ofHeader: "x-station-mark", "canary") == "[redacted]")
        #expect(redaction.value(ofHeader: "Ticket", "ale") == "ale")
        #expect(redaction.value(ofHeader: "Cookie", "canary") == "[redacted]")
        redaction.harmlessNames.insert("vault")
        #expect(redaction.pairs("vault=ale") == "vault=ale")
        redaction.placeholder = "-"
        let json = Data(#"{"stationMark":["canary",{"a":"canary"},1],"vault":"ale"}"#.utf8)
        #expect(
            redaction.body(json, contentType: nil) == #"{"stationMark":["-",{"a":"-"},1],"vault":"ale"}"#)
    }

    @Test("Secrets within the names of JSON members and parameters are redacted")
    func names() {
        #expect(redaction.value(ofHeader: "Link", "{\"x=//u:canary@h\": 1}") == "{\"x=//h\": 1}")
        #expect(redaction.pairs("a%3D1%26pin%3Dcanary=2") == "a%3D1%26pin%3D%5Bredacted%5D=2")
        #expect(redaction.pairs("pin%3Dcanary=2") == "pin%3D%5Bredacted%5D=2")
    }

    @Test("JSON with 100,000 nested levels is redacted without recursion")
    func deepJSON() {
        let deep = String(repeating: #"{"a":["#, count: 100_000) + #"{"token":"canary"}"#
        let text = Redaction.standard.body(Data(deep.utf8), contentType: "application/json")
        #expect(text?.hasSuffix(#"{"token":"[redacted]"}"#) == true)
    }

    @Test("A value with more nested encodings than are decoded is redacted as a whole")
    func deepNesting() {
        func nested(_ value: String) -> String {
            #"{"a":"\#(String(decoding: JSONLiteral.escaped(value.utf8), as: UTF8.self))"}"#
        }
        var (secret, text) = ("pin=canary", "ale")
        for level in 1...8 {
            (secret, text) = (nested(secret), nested(text))
            let shown = redaction.body(Data(secret.utf8), contentType: "application/json") ?? "canary"
            #expect(!shown.contains("canary"), "level \(level)")
            #expect(shown.contains("[redacted]"), "level \(level)")
            let shownText = redaction.body(Data(text.utf8), contentType: "application/json") ?? ""
            #expect(shownText.contains("ale") == (level <= 1 + TextRedactor.maximumDepth), "level \(level)")
        }
    }

    @Test("Bytes with NUL, such as UTF-16, are not text")
    func wideCharacters() throws {
        let body = try #require(#"{"password":"canary"}"#.data(using: .utf16LittleEndian))
        #expect(redaction.body(body, contentType: "application/json") == nil)
        #expect(redaction.body(body, contentType: "text/plain") == nil)
    }
}
