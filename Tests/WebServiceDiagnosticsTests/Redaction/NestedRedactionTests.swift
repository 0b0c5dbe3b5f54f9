import Foundation
import TestSupport
import Testing

@testable import WebServiceDiagnostics

@Suite("Redaction of text within text", .permit)
struct NestedRedactionTests {
    private static func part(_ value: String, type: String = "") -> String {
        "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\(type)\r\n\(value)\r\n--b--\r\n"
    }

    static let urls: [NestedText] = [
        NestedText(.url, encodings: 1, "https://h/login?next=https%3A%2F%2Fg%2F%3Ftoken%3Dcanary-0%26page%3D2&a=1"),
        NestedText(
            .url, encodings: 2,
            "https://h/?u=https%3A%2F%2Fg%2F%3Fu%3Dhttps%253A%252F%252Ff%252F%253Ftoken%253Dcanary-0%2526a%253D1&b=2"),
        NestedText(
            .url, encodings: 3, "https://h/?u=%2Fa%3Fu%3D%252Fb%253Fu%253D%25252Fc%25253Faccess_token%25253Dcanary-0"),
        NestedText(
            .url, encodings: 4,
            "/?u=%2Fa%3Fu%3D%252Fb%253Fu%253D%25252Fc%25253Fu%25253D%2525252Fd%2525253Fpin%2525253Dcanary-0%25252526a"),
        NestedText(.url, encodings: 1, "https://h/out/https%3A%2F%2Fg%2F%3Fapi_key%3Dcanary-0?x=1"),
        NestedText(.url, encodings: 1, "https://h/a;u=%2Fb%3Ftoken%3Dcanary-0?x=1"),
        NestedText(.url, encodings: 1, "https://h/?u=https://g/%3Fsig%3Dcanary-0%26a%3D1"),
        NestedText(.url, encodings: 1, "https://h/?u=https%3a%2f%2fapp%2f%23id_token%3dcanary-0%26a%3d1"),
        NestedText(.url, encodings: 1, "https://h/?data={%22token%22:%22canary-0%22,%22a%22:1}&b=2"),
        NestedText(.url, encodings: 1, "https://h/?data=%7B%22a%22%3A+1%2C+%22token%22%3A+%22canary-0%22%7D"),
        NestedText(.url, encodings: 2, "https://h/?d=%7B%22u%22%3A%22%252Fcb%253Fpassword%253Dcanary-0%22%7D&a=+"),
        NestedText(.url, "https://h/?u=https://g/?a=1&token=canary-0&b=%C3%A9"),
        NestedText(.url, encodings: 1, "https://h/?q=sent+Bearer%20canary-0&b=c+d"),
        NestedText(.url, encodings: 1, "https://h/?q=a%0Apassword%3Dcanary-0%0Ab"),
        NestedText(.url, encodings: 1, "https://h/?token%3Dcanary-0&a=1"),
    ]

    static let headers: [NestedText] = [
        NestedText(
            .header("Location"), encodings: 1, "https://login/?continue=https%3A%2F%2Fg%2Fcb%3Ftoken%3Dcanary-0#a"),
        NestedText(
            .header("Location"), encodings: 2,
            "/login?to=%2Fauthorize%3Fredirect_uri%3Dhttps%253A%252F%252Fapp%252Fcb%253Fcode%253Dcanary-0%26a%3D1"),
        NestedText(.header("Location"), encodings: 1, "https://app/#/cb%3Faccess_token%3Dcanary-0%26a%3Db"),
        NestedText(.header("Location"), "app://cb#code=canary-0&state=canary-0"),
        NestedText(.header("Referer"), encodings: 1, "https://h/?r=%2Fa%3Fsession%3Dcanary-0%26b%3Dc"),
        NestedText(.header("Content-Location"), encodings: 1, "/a%3Ftoken%3Dcanary-0"),
        NestedText(.header("Link"), encodings: 1, "<https://h/?c=%2Fx%3Fapi_key%3Dcanary-0>; rel=\"next\", </b>"),
        NestedText(.header("Refresh"), encodings: 1, "0; url=https://h/?u=https%3A%2F%2Fg%2F%3Ftoken%3Dcanary-0"),
        NestedText(.header("X-Original-URL"), encodings: 1, "/a?b=c%26token%3Dcanary-0"),
        NestedText(.header("Report-To"), encodings: 1, #"{"group":"a","url":"https://h/?u=%2F%3Ftoken%3Dcanary-0"}"#),
        NestedText(.header("X-Data"), #"{"u":"https:\/\/h\/?a=1\u0026token=canary-0\u0026b=2"}"#),
        NestedText(.header("X-Log"), #"sent {\u0022token\u0022: \u0022canary-0\u0022}"#),
        NestedText(.header("Content-Disposition"), encodings: 1, "attachment; filename*=UTF-8''a%3Ftoken%3Dcanary-0"),
        NestedText(.header("Sec-WebSocket-Protocol"), "bearer, canary-0"),
        NestedText(.header("Sec-WebSocket-Protocol"), "graphql-ws, access_token,canary-0, mqtt"),
        NestedText(.header("sec-websocket-protocol"), "chat, Authorization, canary-0"),
    ]

    static let bodies: [NestedText] = [
        NestedText(.json, encodings: 1, #"{"next":"https:\/\/h\/?u=https%3A%2F%2Fg%3Ftoken%3Dcanary-0","a":"\u00e9"}"#),
        NestedText(.json, encodings: 1, #"{"u":"https%3A%2F%2Fg%3Ftoken%3Dcanary-0","a":["%20"]}"#),
        NestedText(.json, encodings: 2, #"["/?u=%2F%3Fu%3D%252F%253Fsecret%253Dcanary-0"]"#),
        NestedText(.json, #"{"u":"https:\/\/h\/?a=1\u0026token=canary-0\u0026b=\u00e9","c":"\/"}"#),
        NestedText(.json, #"{"a":"{\"b\":\"{\\\"token\\\":\\\"canary-0\\\",\\\"c\\\":\\\"\\/\\\"}\"}"}"#),
        NestedText(.json, encodings: 1, #"{"a":"{\"u\":\"\\/x?y=%2F%3Fpin%3Dcanary-0\"}","b":"\ud83d\ude00"}"#),
        NestedText(.json, encodings: 1, #"{"https%3A%2F%2Fh%3Ftoken%3Dcanary-0":1}"#),
        NestedText(.json, encodings: 1, #"{"body":"a=1&u=%2F%3Fpassword%3Dcanary-0&b=2"}"#),
        NestedText(.json, #"{"html":"<a href=\"\/?a=1&amp;token=canary-0\">b<\/a>"}"#),
        NestedText(.form, encodings: 1, "a=1&u=https%3A%2F%2Fh%2F%3Ftoken%3Dcanary-0%26b%3Dx+y&c=+"),
        NestedText(.form, encodings: 1, "payload=%7B%22u%22%3A%22https%3A%2F%2Fh%2F%3Ftoken%3Dcanary-0%22%7D&v=%2B"),
        NestedText(.form, encodings: 2, "p=%7B%22u%22%3A%22%2F%3Fu%3D%252F%253Ftoken%253Dcanary-0%22%7D&v=1"),
        NestedText(.form, encodings: 2, "f=a%3D%257B%2522token%2522%253A%2522canary-0%2522%257D%26b%3D1"),
        NestedText(.form, encodings: 1, "q=%3Ca%3E%3Cpassword%3Ecanary-0%3C%2Fpassword%3E%3C%2Fa%3E"),
        NestedText(.text, encodings: 1, "302 to https://h/?u=https%3A%2F%2Fg%2F%3Ftoken%3Dcanary-0 in 3 ms, 100%"),
        NestedText(.text, encodings: 1, "got https%3A%2F%2Fg%2F%3Ftoken%3Dcanary-0%26a%3Db, and more"),
        NestedText(.text, encodings: 2, "u: https://h/?u=%2F%3Fu%3D%252F%253Fapi_key%253Dcanary-0\nv: 2"),
        NestedText(.text, #"INFO {"u":"https:\/\/h\/?a=1\u0026token=canary-0"} end"#),
        NestedText(.text, #"url=https://h/?token\u003dcanary-0\u0026a\u003d1 end"#),
        NestedText(.text, #"log "a\npassword=canary-0\tb" end"#),
        NestedText(.text, #"log {\"u\":\"https:\/\/h\/?token=canary-0\"} end"#),
        NestedText(.text, #"{\\\"a\\\":1} \\u0026token=canary-0\\u0026b"#),
        NestedText(.html, encodings: 1, "<a href=\"/out?u=https%3A%2F%2Fg%2F%3Ftoken%3Dcanary-0&amp;a=1\">&lt;b</a>"),
        NestedText(.html, "<a href='https:&#x2F;&#x2F;h&#x2F;?token&#x3D;canary-0&amp;a&#x3D;1'>b</a>"),
        NestedText(.html, "<meta http-equiv=\"refresh\" content=\"0; url=/?a=1&amp;key=canary-0\">"),
        NestedText(.html, #"<script>var u = "https:\/\/h\/?a\u003d1\u0026token\u003dcanary-0";</script>"#),
        NestedText(.xml, "<m><b>&lt;a&gt;&lt;password&gt;canary-0&lt;/password&gt;&lt;/a&gt; &amp;</b></m>"),
        NestedText(.xml, "<m>{&quot;a&quot;: 1, &quot;token&quot;: &quot;canary-0&quot;}</m>"),
        NestedText(.xml, encodings: 1, "<m><u>https://h/?a=1&amp;u=%2F%3Ftoken%3Dcanary-0</u></m>"),
        NestedText(.events, encodings: 1, "event: a\ndata: {\"u\":\"/?u=%2F%3Ftoken%3Dcanary-0\"}\n\n"),
        NestedText(.events, encodings: 1, "data: {\"u\":\ndata:\"/?u=%2F%3Ftoken%3Dcanary-0\",\r\ndata: \"a\":1}\n\n"),
        NestedText(.csv, "id,data\n1,\"{\"\"a\"\":1,\"\"token\"\":\"\"canary-0\"\"}\"\n2,b\n"),
        NestedText(.csv, encodings: 1, "id,url\n1,https://h/?u=%2F%3Ftoken%3Dcanary-0\n2,b\n"),
        NestedText(.parts, encodings: 1, part("https://h/?u=%2F%3Ftoken%3Dcanary-0")),
        NestedText(
            .parts, encodings: 1,
            part(#"{"u":"\/?u=%2F%3Ftoken%3Dcanary-0"}"#, type: "Content-Type: application/json\r\n")),
        NestedText(
            .parts, encodings: 1,
            part("u=%2F%3Ftoken%3Dcanary-0", type: "Content-Type: application/x-www-form-urlencoded\r\n")),
        NestedText(
            .body("application/graphql"), encodings: 1, #"query { a(url: "/?u=%2F%3Ftoken%3Dcanary-0") { b } }"#),
        NestedText(.body("application/yaml"), encodings: 1, "a:\n  u: /?u=%2F%3Ftoken%3Dcanary-0\n  b: 1\n"),
    ]

    static let harmless: [NestedText] = [
        NestedText(.url, "https://h/?u=https%3A%2F%2Fg%2Fa%3Fpage%3D2%26sort%3Dname&b=c+d"),
        NestedText(.url, "https://h/?u=%2Fa%3Fu%3D%252Fb%253Fu%253D%25252Fc%25253Fpage%25253D1"),
        NestedText(.url, "https://h/a%20b/%E2%82%AC?q=50%25+off%21&r=%"),
        NestedText(.url, "https://h/?filter=%7B%22token_type%22%3A%22a%22%2C+%22n%22%3A+%5B1%2C+2%5D%7D"),
        NestedText(.url, "https://h/?next=%2Flogin%3Fsort_key%3Dname%26page_token%3Dabc"),
        NestedText(.url, "https://h/?q=a%3Db%3Dc&e=%3D%3D&f=%26%26"), NestedText(.url, "https://h/?t=12%3A30%3A00Z"),
        NestedText(.url, "https://h/?mail=ann%40example.com"), NestedText(.url, "https://h/?e=code%3Dmissing_field"),
        NestedText(.url, "https://h/?q=password+rules%3A+must+be+long"), NestedText(.url, "https://h/?p=%zz%4"),
        NestedText(.url, "https://h/?bbox=1.5%2C2.5%2C3.5&z=%7B"), NestedText(.url, "https://h/%2e%2e/a%3Bb%3Dc"),
        NestedText(.url, "https://h/?u=https%3A%2F%2Fgit%2Da%2Fpassword-generator%2Ftoken%2F%3Fa%3D1"),
        NestedText(.header("Location"), "https://h/?u=https%3A%2F%2Fg%2F%3Fpage%3D2%26lang%3Dde#a%3Db"),
        NestedText(.header("Location"), "/search?q=%22secret+garden%22&p=1"),
        NestedText(.header("Referer"), "https://h/a?b=%7B%22key_name%22%3A%22size%22%7D"),
        NestedText(.header("Link"), "<https://h/?u=%2Fa%3Fpage%3D2>; rel=\"next\"; title*=UTF-8''caf%C3%A9"),
        NestedText(.header("Content-Disposition"), "attachment; filename*=UTF-8''na%C3%AFve%20file%2B1.txt"),
        NestedText(.header("Refresh"), "5; url=https://h/?u=https%3A%2F%2Fg%2F%3Fa%3D1"),
        NestedText(.header("Sec-WebSocket-Protocol"), "graphql-transport-ws, graphql-ws"),
        NestedText(.header("Sec-WebSocket-Protocol"), "v12.stomp, v11.stomp, mqtt"),
        NestedText(.header("Sec-WebSocket-Protocol"), "bearer"),
        NestedText(.header("Sec-WebSocket-Protocol"), "wamp.2.json, token-auth.v1"),
        NestedText(.header("X-Path"), #"C:\users\ann\u00e9\/a"#), NestedText(.header("X-Any"), "100%, 50%25 a%3Ab%"),
        NestedText(.header("Server-Timing"), "db;dur=53;desc=\"a%3Db\", app;dur=4"),
        NestedText(.header("X-Pattern"), "^/a\\/b\\u0026(c|d)=\\d+$"),
        NestedText(.json, #"{"a":"\u00e9\/\u0041=1","b":"https:\/\/h\/?page=2\u0026lang=de"}"#),
        NestedText(.json, #"{"a":"{\"b\":\"{\\\"c\\\":\\\"\\\\u00e9\\\"}\"}","d":"\ud83d\ude00\ud83d"}"#),
        NestedText(.json, #"{"u":"https%3A%2F%2Fh%2F%3Fpage%3D2","v":"100%","w":"%41%zz"}"#),
        NestedText(.json, #"{"template":"/a{?page,sort}%7B%7D","regex":"^[a-z]+\\/\\d+=$"}"#),
        NestedText(.json, #"{"text":"the token%3A a word, the key=size","n":"a%20b%20c"}"#),
        NestedText(.json, #"{"html":"<a href=\"\/?a=1&amp;b=2\">&lt;token&gt;<\/a>"}"#),
        NestedText(.json, #"{"windows":"C:\\users\\ann\\token","mail":"ann%40example.com"}"#),
        NestedText(.form, "a=1+2&b=x%20y&u=https%3A%2F%2Fh%2F%3Fpage%3D2%26q%3Da%2Bb&c="),
        NestedText(.form, "p=%7B%22name%22%3A+%22Ann+Lee%22%2C+%22age%22%3A+30%7D&q=%C3%A9"),
        NestedText(.form, "a=%5B%22x%22%2C%22y%22%5D&b=%22"), NestedText(.form, "note=the+password+is+long%2C+ok%3F"),
        NestedText(.text, "progress 50%25, see https://h/?u=%2Fa%3Fpage%3D2 and 100%"),
        NestedText(.text, #"path C:\users\ann\u0041 and \/\/server\/share"#),
        NestedText(.text, "https%3A%2F%2Fh%2F%3Fpage%3D1%26lang%3Den end"), NestedText(.text, "a%3Db c%3A d%26e"),
        NestedText(.text, "https%3A%2F%2Fh%2Fa%2Ftoken: not found"),
        NestedText(.text, #"{\"a\": \"\\u00e9\", \"b\": [1, 2]} \\\\ end"#),
        NestedText(.html, "<a href=\"/?u=%2Fa%3Fpage%3D2&amp;b=1\">&lt;b&gt; &#x3D; &euro; &amp;</a>"),
        NestedText(.html, "<p>a&#61;b &#x2F; c &quot;d&quot; &nbsp; &#xFFFFFFFFF; &</p>"),
        NestedText(.html, #"<script>var u = "https:\/\/h\/?page\u003d1\u0026b\u003d2";</script>"#),
        NestedText(.xml, "<m>&lt;a b=&quot;1&quot;&gt;&lt;c&gt;d&lt;/c&gt;&lt;/a&gt; &amp;amp;</m>"),
        NestedText(.events, "data: {\"a\":\r\ndata:\"b%3Dc\",\ndata: \"d\":1}\n\n: comment\n"),
        NestedText(.csv, "id,data\n1,\"{\"\"a\"\":1,\"\"b\"\":\"\"c%3Dd\"\"}\"\n2,\"x \"\"y\"\"\"\n"),
        NestedText(.parts, part("https://h/?u=%2F%3Fpage%3D2%26a%3Db")),
        NestedText(.body("application/yaml"), "a:\n  u: /?u=%2F%3Fpage%3D2\n  b: '100%'\n"),
        NestedText(.text, "curl -X POST -H 'Accept: a/b' -u ann https://h/?u=%2Fa%3Fpage%3D2"),
        NestedText(.text, "tar -u a:b and ssh -u c:d; the option --user ann:lee of another tool"),
    ]

    @Test(
        "A secret in text within text is replaced, and the rest remains byte for byte",
        arguments: NestedRedactionTests.urls + NestedRedactionTests.headers + NestedRedactionTests.bodies)
    func secrets(_ text: NestedText) {
        #expect(text.redacted == text.expected)
    }

    @Test(
        "Harmless text within text remains byte for byte",
        arguments: NestedRedactionTests.harmless)
    func remaining(_ text: NestedText) {
        #expect(text.redacted == text.text)
    }

    @Test("The tables have at least 50 rows each")
    func counts() {
        #expect(Self.urls.count + Self.headers.count + Self.bodies.count >= 50)
        #expect(Self.harmless.count >= 50)
    }

    @Test(
        "User information in an encoded URL is removed",
        arguments: [
            (NestedText(.header("Location"), "/?u=https%3A%2F%2Fann%3Acanary%40h%2F"), "/?u=https%3A%2F%2Fh%2F"),
            (
                NestedText(.url, "/?u=%2F%3Fu%3Dhttps%253A%252F%252Fann%253Acanary%2540h"),
                "/?u=%2F%3Fu%3Dhttps%253A%252F%252Fh"
            ),
            (NestedText(.json, #"{"u":"https:\/\/ann:canary@h\/\u00e9"}"#), #"{"u":"https:\/\/h\/\u00e9"}"#),
            (NestedText(.text, #"at https:\/\/ann:canary@h\/a end"#), #"at https:\/\/h\/a end"#),
            (NestedText(.html, "<a href='https:&#x2F;&#x2F;ann:canary@h'>"), "<a href='https:&#x2F;&#x2F;h'>"),
        ])
    func userInformation(text: NestedText, expected: String) {
        #expect(text.redacted == expected)
    }

    @Test(
        "A secret in encoded text ends where the value around it ends",
        arguments: [
            ("a%3Ftoken%3Dcanary=canary&b=1", "a%3Ftoken%3D%5Bredacted%5D&b=1"),
            ("a%26user%20password=can%20ary&b=1", "a%26user%20password=[redacted]&b=1"),
            ("https%3A%2F%2Fh%2F%3Ftoken=canary%26canary&b=1", "https%3A%2F%2Fh%2F%3Ftoken=[redacted]&b=1"),
            ("token%3Dcanary%26pin=canary&b=1", "token%3D%5Bredacted%5D%26pin=[redacted]&b=1"),
            ("https%3A%2F%2Fh%2F%3Fkey=canary-0123", "https%3A%2F%2Fh%2F%3Fkey=[redacted]"),
            ("token%3Dcanary+canary%2Fcanary b", "token%3D%5Bredacted%5D b"),
        ])
    func ends(text: String, expected: String) {
        #expect(Redaction.standard.value(ofHeader: "X-Any", text) == expected)
    }

    @Test("Text that is nested deeper than it is decoded is replaced, if it may contain a secret")
    func depth() {
        func encoded(_ text: String) -> String {
            text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        }
        var (secret, text) = ("token=canary", "a b")
        for level in 1...12 {
            (secret, text) = ("u=" + encoded(secret), "u=" + encoded(text))
            let values = [
                Redaction.standard.url("https://h/?\(secret)"), Redaction.standard.pairs(secret),
                Redaction.standard.value(ofHeader: "Location", "/?\(secret)"),
                Redaction.standard.body(Data("[\"\(secret)\"]".utf8), contentType: "application/json") ?? "canary",
                Redaction.standard.body(Data(secret.utf8), contentType: "text/plain") ?? "canary",
            ]
            for value in values {
                #expect(!value.contains("canary"))
                #expect(value.contains("redacted"))
                // The length grows by a constant for each secret.
                #expect(value.utf8.count < secret.utf8.count + 80)
            }
            #expect((Redaction.standard.pairs(text) == text) == (level <= TextRedactor.maximumDepth + 1))
        }
    }

    @Test(
        "The token after a name in a list of subprotocols is replaced",
        arguments: [
            ("bearer.canary-0123456789", "bearer.[redacted]"), ("token,canary", "token,[redacted]"),
            ("a, jwt, canary, token, canary", "a, jwt, [redacted], token, [redacted]"),
            ("auth.canary0.canary1.canary2", "auth.[redacted]"), ("a.bearer.canary-0123456789", "a.bearer.[redacted]"),
            ("bearer,", "bearer,"), ("bearer.v1", "bearer.v1"), (",", ","), ("bearer, , ale", "bearer, , [redacted]"),
        ])
    func protocols(value: String, expected: String) {
        #expect(Redaction.standard.value(ofHeader: "Sec-WebSocket-Protocol", value) == expected)
        #expect(Redaction.standard.value(ofHeader: "Upgrade", "bearer, ale") == "bearer, ale")
    }

    @Test(
        "The credentials in a command line of curl are replaced",
        arguments: [
            ("curl -u ann:canary https://h/", "curl -u [redacted] https://h/"),
            ("run: curl -sSu 'ann:can ary' -v https://h", "run: curl -sSu '[redacted]' -v https://h"),
            ("$ /usr/bin/curl --user \"ann:canary\" -o a", "$ /usr/bin/curl --user \"[redacted]\" -o a"),
            ("curl -uann:canary h", "curl -u[redacted] h"), ("curl -u canary: h", "curl -u [redacted] h"),
            ("curl -x p -U ann:canary h", "curl -x p -U [redacted] h"),
            ("curl --proxy-user ann:canary h", "curl --proxy-user [redacted] h"),
            ("curl -u ann:\"can ary\" h", "curl -u [redacted] h"),
            ("curl -u ann:'can ary' h", "curl -u [redacted] h"),
            ("curl --oauth2-bearer canary h", "curl --oauth2-bearer [redacted] h"),
            ("curl -b sid=canary h", "curl -b [redacted] h"), ("curl -b cookies.txt h", "curl -b cookies.txt h"),
            ("curl.exe -u ann:canary a", "curl.exe -u [redacted] a"), ("curl -u ann h", "curl -u ann h"),
            ("curl -X u:ann -o -u", "curl -X u:ann -o -u"), ("curl a\nps -u ann:lee", "curl a\nps -u ann:lee"),
            ("libcurl -u ann:lee", "libcurl -u ann:lee"), ("curl -d a-u:b", "curl -d a-u:b"),
            ("curl a/-u:b", "curl a/-u:b"),
        ])
    func commands(text: String, expected: String) {
        for type in ["text/plain", "text/markdown"] {
            #expect(Redaction.standard.body(Data(text.utf8), contentType: type) == expected)
        }
        #expect(Redaction.standard.value(ofHeader: "X-Any", text) == expected)
    }

    // A separate test, because the test library prints the lines of an argument unchanged.
    @Test("A command line of curl is searched in all its lines")
    func commandOfSeveralLines() {
        let text = "curl a \\\n  -u ann:canary \\\n  b"
        #expect(Redaction.standard.value(ofHeader: "X-Any", text) == "curl a \\\n  -u [redacted] \\\n  b")
    }

    @Test("A command line of curl in JSON and in a form is searched")
    func nestedCommands() {
        let json = #"{"cmd":"curl -u \"ann:canary\" 'h'","a":"curl\t-u\nb"}"#
        #expect(NestedText(.json, json).redacted == #"{"cmd":"curl -u \"[redacted]\" 'h'","a":"curl\t-u\nb"}"#)
        #expect(NestedText(.form, "q=curl+-u+ann%3Acanary&a=1").redacted == "q=curl+-u+%5Bredacted%5D&a=1")
        #expect(NestedText(.url, "/?q=curl%20-u%20ann%3Acanary%20h").redacted == "/?q=curl%20-u%20%5Bredacted%5D%20h")
    }
}
