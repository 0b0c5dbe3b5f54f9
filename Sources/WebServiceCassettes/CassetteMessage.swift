import WebServiceCore
import WebServiceMocking

/// A sent message in the form in which it is compared, without secrets.
struct CassetteMessage {
    private let isText: Bool
    /// The message, represented as the body of a request.
    private let body: CassetteRequest

    /// - Parameter compare: Returns the form in which a body is compared.
    init(_ message: WebSocketMessage, _ compare: (Cassette.Message) -> CassetteRequest) {
        isText = message.isText
        body = compare(Cassette.Message(message))
    }

    /// Returns a description of the difference from a sent message, or `nil` if there is none.
    func difference(from sent: CassetteMessage) -> String? {
        let lines = body.differences(from: sent.body)
        if isText == sent.isText, lines.isEmpty { return nil }
        let place = lines.first { $0.hasPrefix("JSON") }.map { "; \($0)" } ?? ""
        return "expected \(self), received \(sent)\(place)"
    }
}

extension CassetteMessage: CustomStringConvertible {
    /// The size and the kind of the message, and the beginning of its text if it has any.
    var description: String {
        let bytes = body.request.body
        let start = Cassette.Message.text(of: bytes).map { " that begin with \(Excerpt.text($0).debugDescription)" }
        return "\(bytes.count) bytes of \(isText ? "text" : "data")\(start ?? "")"
    }
}
