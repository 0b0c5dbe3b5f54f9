import Foundation
import WebServiceMocking

/// An HTTP/2 server over TLS that treats the first request as a test demands and responds to each
/// further one with the number of its connection. Written in Python, because nginx and
/// `MockServer` send no such frames.
final class FrameServer: Sendable {
    struct Failure: Error {}

    /// What the server does after it has received the first request.
    enum Behavior: String, CaseIterable {
        /// Sends a PING frame every 20 milliseconds.
        case ping
        /// Sends the head and a PING frame every 20 milliseconds.
        case head
        /// Sends the head, and a byte of the body every 20 milliseconds.
        case drip
        /// Sends a large body.
        case large
        /// Sends GOAWAY for the stream of the request, and closes the connection later.
        case goAway
        /// Sends GOAWAY for the stream of the request, and closes the connection.
        case goAwayAndClose
        /// Resets the stream with REFUSED_STREAM.
        case refused
    }

    let port: Int
    private let process: ChildProcess
    private let output = Pipe()

    /// - Parameter certificates: The server that provides the certificate and its key.
    init(_ behavior: Behavior, _ certificates: SecureServer) throws {
        process = ChildProcess(
            StrayServer.python ?? "",
            [
                "-c", Self.script, certificates.path("server.pem"), certificates.path("server.key"),
                behavior.rawValue,
            ], output: .pipe(output))
        try process.run()
        guard let port = Int(StrayServer.readLine(of: output)) else { throw Failure() }
        self.port = port
    }

    deinit {
        process.send(SIGTERM)
        process.waitUntilExit()
    }

    private static let script = #"""
        import socket, ssl, struct, sys, threading, time
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        context.set_alpn_protocols(["h2"])
        behavior = sys.argv[3]
        DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
        first = threading.Lock()

        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

        def read(client, count):
            data = b""
            while len(data) < count:
                more = client.recv(count - len(data))
                if not more:
                    raise OSError
                data += more
            return data

        def serve(client, number):
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = context.wrap_socket(client, server_side=True)
                read(client, 24)
                client.sendall(frame(SETTINGS, 0, 0))
                while True:
                    head = read(client, 9)
                    length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                    stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
                    read(client, length)
                    if kind == SETTINGS and not flags & 1:
                        client.sendall(frame(SETTINGS, 1, 0))
                    if kind == HEADERS and first.acquire(blocking=False):
                        act(client, stream)
                    elif kind == HEADERS:
                        client.sendall(frame(HEADERS, 4, stream, b"\x88") + frame(DATA, 1, stream, str(number).encode()))
            except OSError:
                pass
            finally:
                client.close()

        def repeat(client, piece):
            def run():
                try:
                    for _ in range(3000):
                        client.sendall(piece)
                        time.sleep(0.02)
                except OSError:
                    pass
            threading.Thread(target=run, daemon=True).start()

        def act(client, stream):
            ping = frame(PING, 0, 0, bytes(8))
            head = frame(HEADERS, 4, stream, b"\x88")
            if behavior in ("head", "drip", "large"):
                client.sendall(head)
            if behavior in ("ping", "head"):
                repeat(client, ping)
            if behavior == "drip":
                repeat(client, frame(DATA, 0, stream, b"x"))
            if behavior == "large":
                client.sendall(frame(DATA, 0, stream, bytes(16384)) * 3)
            if behavior == "refused":
                client.sendall(frame(RESET, 0, stream, struct.pack(">I", 7)))
            if behavior.startswith("goAway"):
                client.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", max(stream - 2, 0), 0)))
            if behavior == "goAwayAndClose":
                client.shutdown(socket.SHUT_RDWR)

        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        print(listener.getsockname()[1], flush=True)
        number = 0
        while True:
            client, _ = listener.accept()
            number += 1
            threading.Thread(target=serve, args=(client, number), daemon=True).start()
        """#
}
