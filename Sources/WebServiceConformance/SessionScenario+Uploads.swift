import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Servers that do not read the request body.
extension SessionScenario {
    static let uploads: [SessionScenario] = [413, 401].map { status in
        SessionScenario(
            "a \(status) and a reset during an upload of 20 MB is a response or an error in time, "
                + "and the next request succeeds",
            requiresSocket: true
        ) { stage in
            let server = try HastyServer(
                Data("HTTP/1.1 \(status) No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".utf8))
            defer { server.stop() }
            let body = bytes(20_000_000)
            for _ in 0..<3 {
                var request = Request(.PUT, url: "http://127.0.0.1:\(server.port)/")
                request.body = body
                request.options.timeout = .seconds(5)
                let outcome = try await stage.send(request)
                try stage.expect(.either(.response(status, "no"), .broken), outcome)
            }
            try stage.expect(.response(200, ""), await stage.send(stage.request("/next")))
        }
    }
}

/// A server that responds after the first bytes of a request and resets the connection.
private final class HastyServer: Sendable {
    let port: Int
    private let listener: Socket
    private let wakeUp: WakeUp
    private let stops = Tally()
    private let thread: JoinableThread

    init(_ response: Data) throws {
        let listener = try Socket.listening(port: 0)
        let wakeUp = try WakeUp(orThrow: .mockServer)
        let stops = stops
        port = Int(try listener.port())
        self.listener = listener
        self.wakeUp = wakeUp
        thread = try JoinableThread(orThrow: .mockServer) {
            var buffer = [UInt8](repeating: 0, count: 64)
            while stops.count == 0 {
                wakeUp.wait(for: listener.descriptor, milliseconds: -1)
                guard case .client(let socket) = listener.accepted() else { continue }
                _ = socket.receive(into: &buffer)
                _ = socket.send(response)
                socket.resetAtRelease()
                socket.release()
            }
        }
    }

    func stop() {
        stops.add()
        wakeUp.signal()
        thread.join()
        listener.release()
    }
}
