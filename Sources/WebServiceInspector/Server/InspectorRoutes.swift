import Foundation
import WebServiceCore
import WebServiceDiagnostics
import WebServiceServer

/// The inspector's responses to the requests of a browser.
struct InspectorRoutes: Sendable {
    let port: Int
    let token: SecretToken
    let store: ExchangeStore

    /// Returns the page, its data, or a refusal with its reason.
    func response(to request: LocalServer.Request) -> LocalServer.Response {
        guard isFromPage(request) else {
            return refusal(403, "this host or origin is not allowed to read the inspector; open the inspector's URL")
        }
        if request.method == .POST, let number = numberToSend(request) { return send(number, request) }
        guard request.method == .GET else { return refusal(405, "only GET is supported") }
        let parts = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard let given = parts.first, token.isEqual(to: given) else { return refusal(404, "not found") }
        let path = Array(parts.dropFirst())
        switch path.first {
        case nil: return redirect
        case "": return path.count == 1 ? page : refusal(404, "not found")
        case "events" where path.count == 1: return events(request)
        case "archive" where path.count == 1: return archive
        case "search" where path.count == 1: return search(request)
        case "exchanges" where path.count == 2: return exchange(path.last.flatMap { Int($0) })
        default: return refusal(404, "not found")
        }
    }

    /// Returns whether a request was sent by the page itself, or opens the page.
    ///
    /// If the host name of another site resolves to 127.0.0.1 (DNS rebinding), that site's page
    /// sends the name in `Host` (RFC 9110, section 7.2). Browsers send `Origin` and
    /// `Sec-Fetch-Site`, which pages cannot change (Fetch Metadata Request Headers).
    private func isFromPage(_ request: LocalServer.Request) -> Bool {
        let hosts = request.headers.filter { $0.name.equalsIgnoringASCIICase("Host") }.map(\.value)
        guard hosts.count == 1, let host = hosts.first, ["127.0.0.1:\(port)", "localhost:\(port)"].contains(host) else {
            return false
        }
        let origins = request.headers.filter { $0.name.equalsIgnoringASCIICase("Origin") }
        guard origins.allSatisfy({ $0.value == "http://\(host)" }) else { return false }
        switch request.headers["Sec-Fetch-Site"] {
        case nil, "none", "same-origin": return true
        // A link on another page, such as a terminal in the browser, may open this page.
        // `Cross-Origin-Opener-Policy` prevents the other page from reading it.
        default:
            return request.headers["Sec-Fetch-Mode"] == "navigate" && request.headers["Sec-Fetch-Dest"] == "document"
        }
    }

    // MARK: Resources

    private var page: LocalServer.Response {
        let nonce = SecretToken.random(words: 2)
        var response = response(200, "text/html; charset=utf-8", Data(InspectorPage.document(nonce: nonce).utf8))
        response.headers["Content-Security-Policy"] = Self.policy(
            "script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; connect-src 'self'; img-src blob: data:; ")
        return response
    }

    /// A redirect to the URL with a trailing slash, which the page's relative URLs require.
    private var redirect: LocalServer.Response {
        var response = refusal(308, "the URL must end with a slash")
        response.headers[.location] = "/\(token.text)/"
        return response
    }

    private func events(_ request: LocalServer.Request) -> LocalServer.Response {
        let last = request.headers["Last-Event-ID"] ?? request.parameter("after")
        let feed = ChangeFeed(store: store, position: ChangeFeed.Position(last))
        return LocalServer.Response(
            statusCode: 200, headers: headers("text/event-stream; charset=utf-8"), chunks: feed)
    }

    private func exchange(_ number: Int?) -> LocalServer.Response {
        guard let exchange = number.flatMap(store.exchange) else { return refusal(404, "not found") }
        return json(ShownExchange(exchange, store.redaction, showsBinary: store.showsBinaryBodies))
    }

    private func search(_ request: LocalServer.Request) -> LocalServer.Response {
        let text = request.parameter("text") ?? ""
        return json(BodySearch(text, in: store.exchanges(), store.redaction))
    }

    /// Returns the number in the path `exchanges/NUMBER/send`, or `nil` for any other path or
    /// token.
    private func numberToSend(_ request: LocalServer.Request) -> Int? {
        let parts = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard parts.count == 4, let given = parts.first, token.isEqual(to: given) else { return nil }
        let path = Array(parts.dropFirst())
        guard path.first == "exchanges", path.last == "send" else { return nil }
        return path.dropFirst().first.flatMap { Int($0) }
    }

    /// Sends a request that was changed on the page. The request must prove that it comes from the
    /// page.
    private func send(_ number: Int, _ request: LocalServer.Request) -> LocalServer.Response {
        guard request.headers["Origin"] != nil, request.headers[.contentType] == ContentType.json else {
            return refusal(403, "requests can be sent only from the page of the inspector; open the inspector's URL")
        }
        guard let send = store.send else {
            return refusal(409, "the inspector has no service that can send; create it with init(observing:)")
        }
        guard let sent = store.exchange(number)?.attempts.last else { return refusal(404, "not found") }
        do {
            let changed = try JSON.decode(ChangedRequest.self, from: request.body)
            send(try changed.request(from: sent, store.redaction))
            return response(202, "text/plain; charset=utf-8", Data("sent\n".utf8))
        } catch let error as WebServiceError {
            return refusal(422, error.message)
        } catch {
            return refusal(400, "the changed request is not valid JSON")
        }
    }

    private var archive: LocalServer.Response {
        let archive = InspectorArchive(store.exchanges(), store.redaction)
        var response = response(200, ContentType.json, archive.data)
        response.headers["Content-Disposition"] = "attachment; filename=\"inspector.har\""
        return response
    }

    // MARK: Responses

    private func json(_ value: some Encodable) -> LocalServer.Response {
        guard let body = PageJSON.data(value) else { return refusal(500, "the data cannot be encoded") }
        return response(200, ContentType.json, body)
    }

    private func refusal(_ status: Int, _ reason: String) -> LocalServer.Response {
        response(status, "text/plain; charset=utf-8", Data("\(reason)\n".utf8))
    }

    private func response(_ status: Int, _ contentType: String, _ body: Data) -> LocalServer.Response {
        LocalServer.Response(statusCode: status, headers: headers(contentType), data: body)
    }

    private func headers(_ contentType: String) -> Headers {
        [
            "Content-Type": contentType, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": Self.policy(""), "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
        ]
    }

    private static func policy(_ sources: String) -> String {
        "default-src 'none'; \(sources)base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }
}
