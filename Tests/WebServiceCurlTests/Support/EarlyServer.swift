import Foundation
import WebServiceMocking
import WebServiceServer

/// An HTTP/1.1 server that responds to the head of a request and reads no body. Written in Python,
/// because a thread of this process would run between the calls of the session.
///
/// The path of a request is `/keep/`, or an ending, a slash and the status, or `/reset/` and the
/// bytes of the response in hexadecimal digits, which are sent by ``reset()``.
final class EarlyServer: Sendable {
    struct Failure: Error {}

    /// What the server does after the response.
    enum Ending: String, CaseIterable {
        /// Closes the connection while bytes are unread, which resets it.
        case close
        /// As ``close``, after a head in two pieces.
        case split
        /// Closes the sending direction, and the connection 20 ms later.
        case half
        /// Closes the sending direction, and reads until the client closes the connection.
        case linger
    }

    let port: Int
    let securePort: Int
    private let process: ChildProcess
    private let input = Pipe()
    private let output = Pipe()

    /// - Parameter certificates: The server that provides a certificate and its key; `nil` without
    ///   TLS.
    init(_ certificates: SecureServer? = nil) throws {
        let files = certificates.map { [$0.path("server.pem"), $0.path("server.key")] } ?? []
        process = ChildProcess(
            StrayServer.python ?? "", ["-c", Self.script] + files, input: .pipe(input), output: .pipe(output))
        try process.run()
        let ports = StrayServer.readLine(of: output).split(separator: " ").compactMap { Int($0) }
        guard ports.count == 2 else { throw Failure() }
        (port, securePort) = (ports[0], ports[1])
    }

    deinit {
        process.send(SIGTERM)
        process.waitUntilExit()
    }

    /// Sends the response to a request for `/reset/` and resets the connection.
    ///
    /// Blocks until the connection is reset.
    func reset() {
        input.fileHandleForWriting.write(Data("\n".utf8))
        _ = StrayServer.readLine(of: output)
    }

    private static let script = #"""
        import os, socket, ssl, struct, sys, threading, time
        context = None
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])

        def serve(client, secure):
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if secure:
                    client = context.wrap_socket(client, server_side=True)
                while respond(client):
                    pass
            except OSError:
                pass
            finally:
                client.close()

        def respond(client):
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(4096)
                if not more:
                    return False
                head += more
            _, ending, rest = head.split(b" ")[1].split(b"/")
            if ending == b"keep":
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                return True
            if ending == b"reset":
                sys.stdin.readline()
                client.sendall(bytes.fromhex(rest.decode()))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                print("reset", flush=True)
                return False
            response = b"HTTP/1.1 " + rest + b" Early\r\nContent-Length: 5\r\nLocation: /\r\n\r\nearly"
            if ending == b"split":
                client.sendall(response[:30])
                time.sleep(0.0001)
                response = response[30:]
            client.sendall(response)
            if ending in (b"half", b"linger"):
                client.shutdown(socket.SHUT_WR)
            if ending == b"half":
                time.sleep(0.02)
            while ending == b"linger" and client.recv(65536):
                pass
            return False

        def accept(listener, secure):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client, secure), daemon=True).start()

        ports = []
        for secure in (False, True):
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            ports.append(str(listener.getsockname()[1]))
            threading.Thread(target=accept, args=(listener, secure), daemon=True).start()
        print(" ".join(ports), flush=True)
        threading.Event().wait()
        """#
}
