import WebServiceMocking
package import WebServiceServer

extension MockServer {
    /// Starts a server that stops at the end of the test.
    package static func forTest(_ handler: Handler? = nil) throws -> MockServer {
        let server = try MockServer(handler: handler)
        Permit.atEnd { server.stop() }
        return server
    }
}
