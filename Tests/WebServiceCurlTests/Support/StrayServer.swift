import Foundation
import WebServiceMocking
import WebServiceServer

/// An HTTP/1.1 server over TLS that sends bytes that no request asked for. Written in Python,
/// because nginx sends no such bytes.
///
/// - `/late` gets a response, followed by an unsolicited response when ``sendLate()`` is called.
/// - `/record` gets a response in two TLS records. The second one holds the body and an unsolicited
///   response.
/// - Any other path gets the number of the connection.
final class StrayServer {
    struct Failure: Error {}

    private(set) var port = 0
    private let process: ChildProcess
    private let input = Pipe()
    private let output = Pipe()

    static let python = ["/usr/bin/python3", "/usr/local/bin/python3"].first(
        where: FileManager.default.isExecutableFile)

    /// - Parameter certificates: The server that provides the certificate and its key.
    init(_ certificates: SecureServer) throws {
        process = ChildProcess(
            Self.python ?? "",
            ["-c", Self.script, certificates.path("server.pem"), certificates.path("server.key")], input: .pipe(input),
            output: .pipe(output))
        try process.run()
        guard let port = Int(readLine()) else { throw Failure() }
        self.port = port
    }

    deinit {
        try? input.fileHandleForWriting.close()  // the server ends when its input is closed
        process.waitUntilExit()
    }

    /// Returns after the bytes have been sent.
    func sendLate() {
        input.fileHandleForWriting.write(Data("\n".utf8))
        _ = readLine()
    }

    private func readLine() -> String { Self.readLine(of: output) }

    static func readLine(of output: Pipe) -> String {
        var line = Data()
        while true {
            let byte = output.fileHandleForReading.readData(ofLength: 1)
            if byte.isEmpty || byte == Data("\n".utf8) { return String(decoding: line, as: UTF8.self) }
            line += byte
        }
    }

    private static let script = #"""
        import os, socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        print(listener.getsockname()[1], flush=True)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: "
        evil = head + b"4\r\n\r\nevil"
        late = threading.Semaphore(0)

        def serve(client, number):
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = context.wrap_socket(client, server_side=True)
                pending = b""
                while True:
                    while b"\r\n\r\n" not in pending:
                        more = client.recv(65536)
                        if not more:
                            return
                        pending += more
                    request, pending = pending.split(b"\r\n\r\n", 1)
                    path = request.split(b" ")[1]
                    if path == b"/record":
                        client.sendall(head + b"3\r\n\r\n")
                        client.sendall(b"ale" + evil)
                    elif path == b"/late":
                        client.sendall(head + b"3\r\n\r\nale")
                        late.acquire()
                        try:
                            client.sendall(evil)
                        finally:
                            print("sent", flush=True)
                    else:
                        body = str(number).encode()
                        client.sendall(head + str(len(body)).encode() + b"\r\n\r\n" + body)
            except OSError:
                pass

        def accept():
            number = 0
            while True:
                client, _ = listener.accept()
                number += 1
                threading.Thread(target=serve, args=(client, number), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        for line in sys.stdin:
            late.release()
        os._exit(0)
        """#
}
