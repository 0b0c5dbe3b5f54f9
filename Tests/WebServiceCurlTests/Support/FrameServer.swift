import Foundation
import WebServiceMocking
import WebServiceServer

/// An HTTP/2 server that treats one request as a test demands and responds to each other one with
/// the number of its connection. Written in Python, because nginx and `MockServer` send no such
/// frames.
final class FrameServer: Sendable {
    struct Failure: Error {}

    /// What the server does after it has received the request.
    enum Behavior: String {
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
        /// Sends the head, and DATA frames without bytes as fast as it can.
        case floodData
        /// Sends PING frames as fast as it can.
        case floodPing
        /// Sends SETTINGS frames as fast as it can.
        case floodSettings
        /// Sends WINDOW_UPDATE frames for the connection as fast as it can.
        case floodWindow
        /// Sends WINDOW_UPDATE frames for the stream as fast as it can.
        case floodStreamWindow
        /// Sends frames of an unknown type as fast as it can.
        case floodUnknown
        /// Sends a head as ``Fields`` specifies.
        case fields
        /// Sends a head as ``Fields`` specifies, and does not respond to the requests before it.
        case fieldsBeside
    }

    /// A response with many header fields of about 1,000 bytes.
    struct Fields: Sendable, CustomStringConvertible {
        enum End: String, CaseIterable {
            /// The head ends the stream.
            case withHead
            /// An empty DATA frame that is sent together with the head ends the stream.
            case empty
            /// A DATA frame with three bytes that is sent together with the head ends the stream.
            case together
            /// Several DATA frames are sent together with the head.
            case long
            /// A DATA frame ends the stream 50 milliseconds after the head.
            case later
        }

        /// The size of the field lines in HTTP/1.1, in bytes.
        let size: Int
        let end: End
        /// The size of the pieces in which the response is sent; 0 for one piece.
        var pieceSize = 0
        /// The size of the fragments in HEADERS and CONTINUATION frames.
        var fragmentSize = 16_384

        fileprivate var arguments: [String] { [end.rawValue, "\(size)", "\(pieceSize)", "\(fragmentSize)"] }
        var description: String { arguments.joined(separator: " ") }
    }

    let port: Int
    private let process: ChildProcess
    private let output = Pipe()

    /// - Parameters:
    ///   - certificates: The server that provides the certificate and its key; `nil` for a server
    ///     without TLS.
    ///   - skipped: The number of requests before the one that gets special treatment.
    init(_ behavior: Behavior, _ certificates: SecureServer?, skipped: Int = 0, _ fields: Fields? = nil) throws {
        process = ChildProcess(
            StrayServer.python ?? "",
            [
                "-c", Self.script, certificates?.path("server.pem") ?? "", certificates?.path("server.key") ?? "",
                behavior.rawValue, "\(skipped)",
            ] + (fields?.arguments ?? []), output: .pipe(output))
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
        context = None
        if sys.argv[1]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            context.set_alpn_protocols(["h2"])
        behavior = sys.argv[3]
        DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
        turn = threading.Semaphore(int(sys.argv[4]))
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
                if context:
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
                    if kind == HEADERS and not turn.acquire(blocking=False) and first.acquire(blocking=False):
                        act(client, stream)
                    elif kind == HEADERS and not (behavior == "fieldsBeside" and number == 1):
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

        def flood(client, piece):
            def run():
                try:
                    while True:
                        client.sendall(piece * 65536)
                except OSError:
                    pass
            threading.Thread(target=run, daemon=True).start()

        def integer(value):
            if value < 127:
                return bytes([value])
            value, out = value - 127, [127]
            while value >= 128:
                value, out = value // 128, out + [value % 128 + 128]
            return bytes(out + [value])

        def fields(stream, end, size, fragment):
            block, count = b"\x88", 0
            while size > 0:
                name = b"x-%d" % count
                value = b"a" * max(1, min(1000, size - len(name) - 4))
                block += b"\0" + integer(len(name)) + name + integer(len(value)) + value
                size, count = size - len(name) - len(value) - 4, count + 1
            pieces = [block[i:i + fragment] for i in range(0, len(block), fragment)]
            out = b""
            for index, piece in enumerate(pieces):
                flags = 4 if index == len(pieces) - 1 else 0
                if index == 0 and end == "withHead":
                    flags |= 1
                out += frame(CONTINUATION if index else HEADERS, flags, stream, piece)
            if end == "empty":
                out += frame(DATA, 1, stream)
            if end == "together":
                out += frame(DATA, 1, stream, b"ale")
            if end == "long":
                out += frame(DATA, 0, stream, bytes(10000)) * 3 + frame(DATA, 1, stream, bytes(10000))
            return out

        def act(client, stream):
            floods = {
                "Data": frame(DATA, 0, stream), "Ping": frame(PING, 0, 0, bytes(8)), "Settings": frame(SETTINGS, 0, 0),
                "Window": frame(WINDOW, 0, 0, struct.pack(">I", 1)), "Unknown": frame(77, 0, 0),
                "StreamWindow": frame(WINDOW, 0, stream, struct.pack(">I", 1)),
            }
            if behavior.startswith("flood"):
                if behavior == "floodData":
                    client.sendall(frame(HEADERS, 4, stream, b"\x88"))
                return flood(client, floods[behavior[5:]])
            if behavior.startswith("fields"):
                end, size, piece, fragment = sys.argv[5], *map(int, sys.argv[6:])
                out = fields(stream, end, size, fragment)
                for start in range(0, len(out), piece or len(out)):
                    client.sendall(out[start:start + (piece or len(out))])
                    time.sleep(0.0002 if piece else 0)
                if end == "later":
                    time.sleep(0.05)
                    client.sendall(frame(DATA, 1, stream, b"ale"))
                return
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
