import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Redaction decides by the words of names and by types", .permit)
struct RedactionNamesTests {
    private func json(_ text: String) -> String? {
        Redaction.standard.body(Data(text.utf8), contentType: "application/json")
    }

    @Test(
        "The last word of a name decides whether text is secret",
        arguments: [
            ("access_token", true), ("accessToken", true), ("APIKey", true), ("user_pass", true), ("db_pass", true),
            ("pw", true), ("SAMLResponse", true), ("ticket", true), ("signing_key", true), ("encryption_key", true),
            ("otp_code", true), ("pin_code", true), ("mfa_code", true), ("2fa_code", true), ("connection_string", true),
            ("apikey", true), ("accesstoken", true), ("sessionid", true), ("authtoken", true), ("passwd", true),
            ("userpass", true), ("dbpass", true), ("jsessionid", true), ("phpsessid", true), ("password2", true),
            ("password_confirmation", true), ("unseal_keys_b64", true), ("keys_base64", true), ("SecretString", true),
            ("aws_access_key_id", true), ("passwordHash", true), ("csrfmiddlewaretoken", true),
            ("recovery_codes", true),
            ("__RequestVerificationToken", true), ("tls.key", true), ("session", true), ("signature", true),
            ("token_type", false), ("session_title", false), ("password_login", false), ("key_name", false),
            ("signature_count", false), ("secretary", false), ("tokenizer", false), ("key", false), ("keys", false),
            ("public_key", false), ("primary_key", false), ("sort_key", false), ("nextPageToken", false),
            ("prompt_tokens", false), ("design", false), ("passenger", false), ("compass", false), ("keyboard", false),
            ("author", false), ("status_code", false), ("code", false), ("code_challenge", false),
            ("api_key_id", false), ("id_token_hint", true), ("token_type_hint", false), ("password_hint", false),
            ("passport", false), ("/oauth/token", false), ("", false), ("_", false), ("cookies", false),
        ])
    func words(name: String, isSecret: Bool) {
        #expect(Redaction.standard.isSecret(key: name) == isSecret)
        // Descriptions and the HTTP cache err on the side of a secret.
        #expect(Secrets.mayBeNamed(by: name) || !isSecret)
    }

    @Test("A name with the prefix X- is that of a parameter like the name without it")
    func prefix() {
        #expect(SecretName("X-Key") == SecretName("key"))
        #expect(SecretName("X-Code") == SecretName("code"))
        #expect(SecretName("X-Sid") == SecretName("sid"))
        #expect(SecretName("X-Key") != .harmless)
    }

    @Test("In text, an object or a list under a secret name is secret as a whole")
    func nesting() {
        for value in [#"{"a":{"b":1},"c":"canary"}"#, #"[[1],["canary"]]"#, #"{"a":["x"],"c":{"d":"canary"}}"#] {
            let text =
                Redaction.standard.body(
                    Data(#"got {"password":\#(value),"name":"ale"}"#.utf8), contentType: "text/plain") ?? ""
            #expect(!text.contains("canary"))
            #expect(text.contains("ale"))
        }
    }

    @Test(
        "Numbers, Booleans and null are no secrets in JSON, and lists and objects are searched",
        arguments: [
            (#"{"usage":{"prompt_tokens":12,"total_tokens":42}}"#, nil), (#"{"pass":3,"otp":123456}"#, nil),
            (#"{"password":null,"secret":true,"token":1.5}"#, nil), (#"{"password":"","token":"***"}"#, nil),
            (#"{"tokens":5}"#, nil), (#"{"tokens":["canary",1]}"#, #"{"tokens":["[redacted]",1]}"#),
            (
                #"{"token":["canary",{"x":"canary]"}],"b":1}"#,
                #"{"token":["[redacted]",{"x":"[redacted]"}],"b":1}"#
            ),
            (#"{"password":{"type":"string","minLength":8}}"#, nil),
            (#"{"password":{"value":"canary"}}"#, #"{"password":{"value":"[redacted]"}}"#),
            (#"{"session":{"title":"ale"},"ticket":"a b"}"#, nil),
            (#"{"errors":{"password":["is too short"]}}"#, nil), (#"{"labels":{"password":"ale"}}"#, nil),
            (#"[{"name":"token","value":"canary"}]"#, #"[{"name":"token","value":"[redacted]"}]"#),
            (#"[{"value":"canary","key":"token"}]"#, #"[{"value":"[redacted]","key":"token"}]"#),
            (#"{"token":"ale","logprob":-1}"#, nil), (#"{"secrets":[{"name":"ale"}]}"#, nil),
        ] as [(String, String?)])
    func types(text: String, expected: String?) {
        #expect(json(text) == expected ?? text)
    }

    @Test(
        "Tokens of known forms and private keys are secret under any name",
        arguments: [
            "ghp_canary0123456789abcdef", "eyJhbGciOiJub25lIn0.eyJjYW5hcnkiOjF9.c2ln",
            "-----BEGIN PRIVATE KEY-----\\ncanary\\n-----END PRIVATE KEY-----", "Bearer canary-0123",
        ])
    func forms(token: String) {
        #expect(json(#"{"note":"\#(token)"}"#)?.contains("[redacted]") == true)
    }

    @Test(
        "Processor time is linear for a body of one piece, repeated",
        arguments: [
            "a=", "<", "{\"a\":", "\"", "data: {\n", "a=%3D&", "token=", "token: ", "key={", "token={", "<a \"", "<a",
            "<token>", "//a@", "\\\"", "[", "\\", "token:\"", "bearer ", "-----BEGIN PRIVATE KEY", "data: a\n",
            "--b\r\n\r\n", "{\"value\":1,", "password:\n  type: x\n", "code=", "token: |\n", "<![CDATA[", "'''", "%",
            "<name>", "{\"b\":\"\\u0061=", "x-", "{\"tokens\":[", "%3A", "%3A&", "%253Dtoken%253D", "%25", "a%3D:",
            "\\u0026a", "\\/", "\\\\u0026\\\"", "&#x3D;", "a&#x3D;%3D", "&lt;a&gt;", "curl -u ", "curl -u \\\"",
            "curl -u\"",
            "\"\"token\"\":",
        ])
    func linear(piece: String) {
        let size = amount(8, thorough: 24, soak: 64) << 10
        func time(_ piece: String) -> Double {
            let body = Data(String(repeating: piece, count: size / piece.utf8.count).utf8)
            return [
                "text/plain", "application/json", "application/x-www-form-urlencoded", "text/html",
                "text/event-stream", "text/csv", "multipart/form-data; boundary=b",
            ].reduce(0) { sum, type in
                sum + processorTime { _ = Redaction.standard.body(body, contentType: type) }
            }
        }
        // Quadratic time takes minutes. Ten seconds cover a slow machine and its other work.
        #expect(time(piece) < 30 * time("a harmless text. ") + 10)
    }

    @Test("A long header field value, URL and query are redacted in linear time")
    func longValues() {
        let redaction = Redaction.standard
        let unit = amount(16 << 10, thorough: 64 << 10)
        let harmless = String(repeating: "ab", count: 4 * unit)
        let bound = 60 * processorTime { _ = redaction.value(ofHeader: "X-Any", harmless) } + 10
        for piece in ["a=", "%25", "%3D&", "%2525252525253D", "\\\\/", "bearer, "] {
            // Quadratic time takes minutes for an eighth of the size as well.
            let size = piece == "a=" ? 8 * unit : unit
            let text = String(repeating: piece, count: size / piece.utf8.count)
            #expect(processorTime { _ = redaction.value(ofHeader: "X-Any", text) } < bound)
            #expect(processorTime { _ = redaction.value(ofHeader: "Sec-WebSocket-Protocol", text) } < bound)
            #expect(processorTime { _ = redaction.url("https://h/\(text)") } < bound)
            #expect(processorTime { _ = redaction.pairs(text) } < bound)
        }
    }

    @Test("An unknown type, an unknown coding and damaged multipart are not searched")
    func unknown() {
        let body = Data("canary".utf8)
        let binary = Data([0xFF, 0, 1])
        for type in ["application/octet-stream", "application/x-protobuf", "multipart/form-data", nil] {
            #expect(Redaction.standard.body(body, contentType: type) == nil)
        }
        #expect(Redaction.standard.body(binary, contentType: "application/json", contentEncoding: "br") == nil)
        #expect(Redaction.standard.body(binary, contentType: "image/png") == nil)
    }

    @Test("Compressed bodies are decoded, also if they are truncated")
    func compressed() throws {
        let text = #"{"token":"canary","list":[1,2,3]}"#
        let body = try GzipEncoder().finish(with: Data(text.utf8))
        let shown = Redaction.standard.body(body, contentType: "application/json", contentEncoding: "gzip")
        #expect(shown == #"{"token":"[redacted]","list":[1,2,3]}"#)
        for count in 0..<body.count {
            let cut = Redaction.standard.body(
                body.prefix(count), contentType: "application/json", contentEncoding: "gzip")
            #expect(cut?.contains("canary") != true)
        }
        let plain = Redaction.standard.body(Data(text.utf8), contentType: "application/json", contentEncoding: "gzip")
        #expect(plain == shown)
    }
}
