import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension InspectorProbe {
    // MARK: Secrets, all of which contain `canary`

    func addSecrets() {
        session.on(
            .path("/v1/secret/{name}"),
            .json([
                "access_token": "canary-1", "user": ["password": ["canary-2", "canary-3"]], "code": "missing_field",
                "next": "https://ann:canary-4@h.example.com/?token=canary-5&page=2",
                "log": "{\"pin\":\"canary-6\",\"a\":1}", "header": "Authorization: Bearer canary-7",
            ])
            .header("Set-Cookie", "sid=canary-8; HttpOnly").header("Link", "<https://h/?api_key=canary-9>; rel=next")
            .header("X-Auth-Token", "canary-10"))
        session.on(
            .path("/v1/moved"),
            MockResponse(
                statusCode: 302,
                headers: ["Location": "https://u:canary-11@brewhapi.example.com/v1/any/1?code=canary-12&state=1"]))
        session.on(.path("/v1/text"), .text("password: canary-13\ntoken=canary-14 end\n<secret>canary-15</secret>"))
        session.on(
            .path("/v1/bytes"),
            .init(statusCode: 200, headers: ["Content-Type": "application/octet-stream"], data: Data("canary-16".utf8)))
        session.on(
            .path("/v1/failure"),
            .error(URLError(.badURL, userInfo: ["NSErrorFailingURLStringKey": "https://h/?token=canary-17"])))
    }

    func canary() async {
        var request = Request(
            .POST,
            url:
                "https://brewhapi.example.com/v1/secret/a;sid=canary-21?access_token=canary-22&a=1"
        )
        request.headers = [
            "Authorization": "Bearer canary-24", "Cookie": "sid=canary-25", "X-Api-Key": "canary-26",
            "Referer": "https://u:canary-27@h/?token=canary-28",
        ]
        request.formParameters = [
            "password": "canary-29", "user[pin]": "canary-30", "next": "https://h/?token=canary-31",
        ]
        await send(service.sessionTask(request: request))
        var json = Request(.PUT, url: "https://brewhapi.example.com/v1/secret/b")
        let card: JSONValue = [
            "card": ["cvv": "canary-32"], "grant_type": "authorization_code", "code": "canary-33",
        ]
        json.content = .json(card)
        json.options.interceptors = []
        await send(service.sessionTask(request: json))
        // Refused, because it contains user information.
        await send(service.sessionTask(request: Request(url: "https://ann:canary-20@brewhapi.example.com/#canary-23")))
        for path in ["/moved", "/text", "/bytes", "/failure"] { await send(service.GET(path)) }
    }

    // MARK: Hostile responses

    func addHostile() {
        let attack = "</script><img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>"
        session.on(
            .path("/v1/hostile/markup"),
            .json([
                "</script><script>window.attacked=1</script>": JSONValue.string(attack), "n": 12345678901234567890.0,
            ])
            .header("X-Markup", attack).header("Content-Type", "application/json; a=\"\(attack)\""))
        session.on(
            .path("/v1/hostile/control"), .text("a\u{1B}[31m\u{8}b\u{202E}c\u{2028}d\u{85}e\r\nf \(attack)"))
        session.on(
            .path("/v1/hostile/invalid"),
            .init(
                statusCode: 200, headers: ["Content-Type": "application/json"],
                data: Data([0x7B, 0x22, 0xFF, 0xFE, 0xC0, 0x22, 0x3A, 0x31, 0x7D])))
        session.on(
            .path("/v1/hostile/event"),
            .text("x\n\ndata: {\"version\":9999999,\"oldest\":9999999,\"exchanges\":[]}\n\nid: 7\nevent: x\n\n"))
        session.on(
            .path("/v1/hostile/svg"),
            .init(
                statusCode: 200, headers: ["Content-Type": "image/svg+xml"],
                data: Data("<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"window.attacked=1\"/>".utf8)))
        session.on(
            .path("/v1/hostile/nested"),
            .init(
                statusCode: 200, headers: ["Content-Type": "application/json"],
                data: Data(String(repeating: "[", count: 100_000).utf8)))
    }
}
