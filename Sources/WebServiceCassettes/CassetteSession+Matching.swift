public import Foundation
public import WebServiceCore
public import WebServiceMocking

extension CassetteSession {
    /// A part of a request that must be equal to that of a recorded request.
    ///
    /// Secrets are not compared, because the same placeholder replaces them in both requests.
    public enum Criterion: Sendable {
        /// The method of the request, such as GET.
        case method
        /// The URL without its query: scheme, host, port and path.
        case url
        /// Only the path, for requests to a server with a different host or port.
        case path
        /// The items of the query, in order.
        case query
        /// The body, and each message that the client sends over a WebSocket connection. The order
        /// of members and the whitespace in JSON are not compared, and neither are the boundaries
        /// of multipart bodies.
        case body
        /// The values of a header field, in order.
        case header(Headers.Name)
        /// A closure that returns whether a recorded request and a received request match.
        ///
        /// Called on a background thread, for exchanges that meet all other criteria.
        case custom(@Sendable (_ recorded: ReceivedRequest, _ received: ReceivedRequest) -> Bool)
    }

    /// An exchange that is about to be recorded.
    public struct Exchange: Sendable {
        /// The method of the request.
        public var method: Request.Method
        /// The URL of the request.
        public var url: String
        /// The header fields of the request.
        public var requestHeaders: Headers
        /// The body of the request.
        public var requestBody: Data
        /// The status code of the response; `nil` if there was none.
        public var status: Int?
        /// The header fields of the response.
        public var responseHeaders: Headers
        /// The body of the response, or the part of it that was received.
        public var responseBody: Data
        /// The error of the request; `nil` if the response is complete.
        public let error: URLError.Code?
        /// The messages of a WebSocket connection, in order; empty for other exchanges.
        public var messages: [Message]

        /// A message of a WebSocket connection, or the Close frame of one of its endpoints.
        public struct Message: Sendable, Hashable {
            /// The content of a ``Message``.
            public enum Content: Sendable, Hashable {
                /// A text or binary message.
                case message(WebSocketMessage)
                /// The code and the reason in a Close frame; `nil` if the frame has no code.
                case close(WebSocketClosure?)
            }

            /// Whether the server sent the message.
            public let isReceived: Bool
            /// The message, or the code and the reason of a Close frame.
            public var content: Content
        }
    }
}

extension CassetteSession.Exchange {
    init(_ exchange: Cassette.Exchange) {
        method = Request.Method(rawValue: exchange.request.method ?? "")
        url = exchange.request.url ?? ""
        requestHeaders = exchange.request.fields
        requestBody = exchange.request.body
        status = exchange.response?.status
        responseHeaders = exchange.response?.fields ?? [:]
        responseBody = exchange.response?.body ?? Data()
        error = exchange.error.flatMap { URLError.Code(rawValue: $0) }
        messages = exchange.messages?.compactMap(\.message) ?? []
    }

    /// Returns the stored form of the exchange. The trailer fields and, unless the body was
    /// replaced, the length come from the original.
    func stored(insteadOf original: Cassette.Exchange) -> Cassette.Exchange {
        var stored = original
        stored.request.method = method.rawValue
        stored.request.url = url
        stored.request.set(requestHeaders, requestBody)
        if original.messages != nil { stored.messages = messages.map { Cassette.Frame($0) } }
        guard let status else { return stored }
        var response = original.response ?? Cassette.Message()
        response.status = status
        var headers = responseHeaders
        if responseBody != response.body, error == nil {
            if response.length ?? 0 >= 0 { response.length = nil }
            if headers[.contentLength] != nil { headers[.contentLength] = String(responseBody.count) }
        }
        response.set(headers, responseBody)
        stored.response = response
        return stored
    }
}
