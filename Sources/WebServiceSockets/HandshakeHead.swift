import Foundation
import WebServiceCore
import WebSocketCodec

/// The request of a handshake as it is sent.
struct HandshakeHead {
    let fields: Headers
    private let target: Substring

    /// Creates the head of a handshake. `Host` and the handshake's fields replace those of the
    /// request.
    init(_ request: EncodedRequest, _ handshake: ClientHandshake, defaults: Headers) {
        let start = request.url.firstRange(of: "://")?.upperBound ?? request.url.startIndex
        let authority = request.url[start...].prefix { !"/?#".contains($0) }
        target = request.url[authority.endIndex...].prefix { $0 != "#" }
        let own = Headers([("Host", String(authority))]).adding(handshake.fields)
        fields = own.adding(request.headers).adding(defaults)
    }

    var bytes: Data {
        var text = "GET \(target.hasPrefix("/") ? "" : "/")\(target) HTTP/1.1\r\n"
        for field in fields.fields { text += "\(field.name): \(field.value)\r\n" }
        return Data((text + "\r\n").utf8)
    }
}
