import TestSupport
import Testing
import WebServiceDiagnostics

@Suite("Redaction in the places of an exchange", .permit)
struct RedactionPlacesTests {
    static let hidden: [NestedText] = [
        NestedText(.url, "https://h/v1?page=2&Api_Key=canary-0&lang=de"),
        NestedText(.url, "https://h/v1?%74oken=canary-0"),
        NestedText(.url, "https://h/?user%5Bpassword%5D=canary-0"),
        NestedText(.url, "https://h/?auth.token=canary-0&a=1"),
        NestedText(.url, "https://h/?token[]=canary-0&token[]=canary-0"),
        NestedText(.url, "https://h/?a=1&amp;token=canary-0"),
        NestedText(.url, "https://h/home;jsessionid=canary-0?x=1"), NestedText(.url, "https://h/?a=1?token=canary-0"),
        NestedText(.url, "https://h/logout?id_token_hint=canary-0&to=https%3A%2F%2Fapp"),
        NestedText(
            .url, encodings: 2, "https://h/?next=https%253A%252F%252Fg%252Fcb%253Ftoken%253Dcanary-0%2526x%253D1"),
        NestedText(.url, encodings: 3, "https://h/?n=https%25253A%25252F%25252Fg%25253Ftoken%25253Dcanary-0%252526x"),
        NestedText(.url, encodings: 1, "https://h/?return_to=https%3A%2F%2Fapp%2F%23access_token%3Dcanary-0"),
        NestedText(
            .url, encodings: 1, "https://h/?v=%7B%22in%22%3A%7B%22password%22%3A%22canary-0%22%2C%22n%22%3A1%7D%7D"),
        NestedText(.url, encodings: 1, "https://h/relay?body=user%3Dada%26password%3Dcanary-0"),
        NestedText(.url, encodings: 1, "https://h/?src=https%3A%2F%2Fs3%2Fk%3FX-Amz-Signature%3Dcanary-0"),
        NestedText(.url, "https://h/proxy/https://g/cb?api_key=canary-0"),
        NestedText(
            .header("Location"), encodings: 2,
            "https://login/?continue=https%253A%252F%252Fh%252Fcb%253Fticket%253D%2526access_token%253Dcanary-0"),
        NestedText(.header("Refresh"), "0;URL=\"/in?password=canary-0\""),
        NestedText(.header("Link"), "</v1?page=2>; rel=\"next\", </v1?page=9&api_key=canary-0>; rel=\"last\""),
        NestedText(.header("WWW-Authenticate"), "Bearer realm=\"https://h/token?api_key=canary-0\",service=\"a\""),
        NestedText(.json, #"{"\u0074\u006F\u006b\u0065\u006E":"canary-0","n":1}"#),
        NestedText(.json, #"{"env":[{"key":"DB_PASSWORD","value":"canary-0"}]}"#),
        NestedText(
            .json, encodings: 2, #"{"to":"https://h/?next=https%253A%252F%252Fg%252F%253Faccess_token%253Dcanary-0"}"#),
        NestedText(.json, #"["x","[{\"token\":\"canary-0\"}]"]"#),
        NestedText(.json, #"{"body":"a=1&%70assword=canary-0"}"#),
        NestedText(.json, "{\"n\":1}\n{\"token\":\"canary-0\"}\n{\"n\":3}\n"),
        NestedText(.form, encodings: 1, "p=%7B%22p%22%3A%22%7B%5C%22secret_key%5C%22%3A%5C%22canary-0%5C%22%7D%22%7D"),
        NestedText(.form, encodings: 2, "callback=https%253A%252F%252Fh%252F%253Fapi_key%253Dcanary-0"),
        NestedText(.form, "user%5Bpassword%5D=canary-0&user%5Bname%5D=ada"),
        NestedText(.text, "see https://h/k?X-Amz-Signature=canary-0 for details"),
        NestedText(.text, "<https://h/f?sig=canary-0>, then unpack"),
        NestedText(.text, "level=info token=canary-0 dur=3ms"),
        NestedText(.text, "Server=db;Database=main;Password=canary-0;Encrypt=true"),
        NestedText(.html, "<a href=\"https://h/r?x=1&amp;reset_token=canary-0\">reset</a>"),
        NestedText(.html, "<meta http-equiv=\"refresh\" content=\"0; url=https://h/?access_token=canary-0\">"),
        NestedText(.xml, "<apiKey><![CDATA[canary-0]]></apiKey>"),
    ]

    static let harmless: [NestedText] = [
        NestedText(.url, "https://h/?page=eyJvZmZzZXQiOjUwfQ&limit=50"),
        NestedText(.url, "https://h/?monkey=a&turkey=b"),
        NestedText(.url, "https://h/?response_type=code&client_id=app&scope=openid"),
        NestedText(.url, "https://h/?next=https%253A%252F%252Fg%252Freports%252Fq4%253Flang%253Dde"),
        NestedText(.url, "https://h/?next=https%25253A%25252F%25252Fg%25252Freports%25252Fq4"),
        NestedText(.url, "https://h/docs/token/introduction?lang=fr"),
        NestedText(.url, "https://h/@scope/pkg@1.2.3/a.js"),
        NestedText(.url, "http://[2001:db8::1]:8443/status"), NestedText(.url, "https://h/v1?a=&b&c=last"),
        NestedText(.header("WWW-Authenticate"), "Bearer realm=\"api\", error=\"invalid_token\""),
        NestedText(.header("Vary"), "Authorization, Cookie, Accept-Encoding"),
        NestedText(.header("Access-Control-Allow-Headers"), "Authorization, X-Api-Key, Content-Type"),
        NestedText(.header("Repr-Digest"), "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
        NestedText(.header("User-Agent"), "tokenizer-bot/2.7 (+https://h/bot)"),
        NestedText(.json, #"{"password_reset_url":"https://h/reset-help","token":null}"#),
        NestedText(.json, #"{"payload":"{\"inner\":\"{\\\"author\\\":\\\"Borges\\\"}\"}"}"#),
        NestedText(.json, #"{"error":"token_expired","text":"Unexpected token < in JSON at position 31"}"#),
        NestedText(.form, "callback=https%3A%2F%2Fh%2Fdone%3Fpage%3D2&grant_type=authorization_code"),
        NestedText(.text, "Authorization failed because the clock is skewed by 90 seconds."),
        NestedText(.text, "curl -fsSL --retry 3 -o out.bin -H 'Accept: a/b' https://h/out.bin"),
        NestedText(.text, "sort -u names.txt | head -n 5; started 10:20:30, host:8080"),
        NestedText(.html, "<label for=\"password\">Choose a strong password</label>"),
    ]

    @Test(
        "A secret is replaced wherever an exchange contains it",
        arguments: RedactionPlacesTests.hidden)
    func secrets(_ text: NestedText) {
        #expect(text.redacted == text.expected)
    }

    @Test("Values that resemble secrets remain", arguments: RedactionPlacesTests.harmless)
    func remaining(_ text: NestedText) {
        #expect(text.redacted == text.text)
    }
}
