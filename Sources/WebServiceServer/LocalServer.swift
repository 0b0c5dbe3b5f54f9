package import Foundation
package import WebServiceCore
import WebServiceMocking

/// A server on 127.0.0.1 for a tool that runs for a long time.
///
/// Unlike a ``MockServer``, this server has no stubs, does not store its requests, and limits their
/// bodies to 64 KiB.
package final class LocalServer: Sendable {
    /// A closure that returns the response to a request, called on the thread of the connection.
    package typealias Handler = @Sendable (Request) -> Response

    private let server: MockServer

    /// Creates and starts a server.
    ///
    /// - Parameters:
    ///   - port: The port; 0 for any free port.
    ///   - handler: A closure that returns the handler of all requests, for the port of the server.
    /// - Throws: The errors of `MockServer.init(port:tls:handler:)`.
    package init(port: UInt16, handler: @escaping (_ port: Int) -> Handler) throws {
        server = try MockServer(
            listeningOn: port,
            unrecorded: { port in
                let handler = handler(port)
                return { handler(Request(received: $0)).mock }
            })
    }

    /// The URL of the server, without a trailing slash.
    package var baseURL: URL { server.baseURL }

    /// Closes every connection, ends every thread and releases the port.
    package func stop() { server.stop() }

    /// A request that the server received.
    package struct Request: Sendable {
        fileprivate let received: ReceivedRequest

        fileprivate init(received: ReceivedRequest) {
            self.received = received
        }

        package init(method: WebServiceCore.Request.Method, target: String, headers: Headers, body: Data = Data()) {
            let head = RequestHead(method: method, target: target, headers: headers)
            received = ReceivedRequest(head: head, body: body)
        }

        package var method: WebServiceCore.Request.Method { received.method }
        /// The path of the target, percent-encoded.
        package var path: String { received.path }
        package var headers: Headers { received.headers }
        package var body: Data { received.body }

        /// Returns the first value of a query parameter, decoded.
        package func parameter(_ name: String) -> String? {
            received.queryItems.first { $0.name == name }?.value
        }
    }

    /// A response of the server.
    package struct Response: Sendable {
        fileprivate var mock: MockResponse

        package init(statusCode: Int, headers: Headers, data: Data) {
            mock = MockResponse(statusCode: statusCode, data: data)
            mock.headers = headers
        }

        /// Creates a response whose body is a sequence, which is cancelled when the client closes
        /// the connection.
        package init<Chunks: AsyncSequence & Sendable>(statusCode: Int, headers: Headers, chunks: Chunks)
        where Chunks.Element == Data {
            mock = MockResponse(statusCode: statusCode, chunks: chunks)
            mock.headers = headers
        }

        package var statusCode: Int { mock.statusCode }
        package var data: Data { mock.data }
        package var headers: Headers {
            get { mock.headers }
            set { mock.headers = newValue }
        }
    }
}
