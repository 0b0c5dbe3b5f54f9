import Foundation
import LoopbackSocket
import WebServiceCore

/// The certificate and the key of a server, for all its connections.
final class TLSContext: Sendable {
    /// The verification of clients.
    struct Clients: Sendable {
        /// The path of a PEM file.
        let authorities: String
        let requiresCertificate: Bool
    }

    fileprivate let library: TLSLibrary
    /// OpenSSL synchronizes the use of a context by several threads.
    fileprivate nonisolated(unsafe) let context: TLSLibrary.Object

    /// - Parameters:
    ///   - certificate: The path of a PEM file.
    ///   - key: The path of a PEM file.
    ///   - clients: The verification of clients. Defaults to `nil`: no certificate is requested.
    ///   - library: The library of the system; `nil` if it is missing.
    /// - Throws: `WebServiceError.Code.tlsUnavailable`.
    init(
        certificate: String, key: String, clients: Clients? = nil, library: TLSLibrary? = .system
    ) throws {
        guard let library, let method = library.serverMethod(), let context = library.makeContext(method) else {
            throw WebServiceError(
                .tlsUnavailable, "the library libssl of OpenSSL could not be loaded; install OpenSSL 1.1.1 or 3")
        }
        let pem: CInt = 1
        guard library.useCertificate(context, certificate) == 1, library.useKey(context, key, pem) == 1 else {
            library.releaseContext(context)
            throw WebServiceError(
                .tlsUnavailable, "OpenSSL rejected the certificate or the key; pass PEM files that belong together")
        }
        if let clients, library.certificates?.configure(context, clients) != true {
            library.releaseContext(context)
            throw WebServiceError(
                .tlsUnavailable,
                "OpenSSL found no certificate in the file clientCA; pass a PEM file that contains certificates")
        }
        self.library = library
        self.context = context
    }

    deinit {
        library.releaseContext(context)
    }
}

/// The server side of TLS on one connection.
///
/// OpenSSL only reads from and writes to memory; the socket transfers the bytes. One thread may
/// receive while another one sends. While a sender waits for the client, received bytes are
/// delayed.
final class TLSStream: Sendable {
    private let context: TLSContext
    /// The objects of OpenSSL. Steps that threads may perform concurrently hold the lock, because
    /// OpenSSL does not synchronize the use of a connection.
    private nonisolated(unsafe) let objects: Objects
    private let lock = Mutex(())

    private struct Objects {
        let connection: TLSLibrary.Object
        /// The encrypted bytes that were received, and the encrypted bytes to send.
        let input: TLSLibrary.Object
        let output: TLSLibrary.Object
    }

    /// Creates the server side of a new connection.
    ///
    /// - Returns: `nil` if OpenSSL cannot allocate memory.
    init?(_ context: TLSContext) {
        let library = context.library
        guard let connection = library.makeConnection(context.context) else { return nil }
        guard let input = library.makeStream(library.memory()), let output = library.makeStream(library.memory())
        else {
            library.releaseConnection(connection)
            return nil
        }
        library.setStreams(connection, input, output)  // the connection releases them
        self.context = context
        objects = Objects(connection: connection, input: input, output: output)
    }

    deinit {
        context.library.releaseConnection(objects.connection)
    }

    private static let wantsRead: CInt = 2
    private static let maximum = 16 << 10

    /// Performs the TLS handshake.
    ///
    /// - Returns: Whether the handshake succeeded.
    func accept(over socket: LoopbackSocket) -> Bool {
        complete(over: socket) { $0.accept(objects.connection) } == 1
    }

    /// The verified certificate of the client; `nil` if it has none, or before the handshake.
    var clientCertificate: (subject: String, der: Data)? {
        context.library.certificates?.client(of: objects.connection, context.library)
    }

    /// Reads once into a buffer. Blocks until decrypted bytes are available.
    ///
    /// - Returns: The number of bytes; 0 at the end of the stream and after an error.
    func receive(into buffer: inout [UInt8], over socket: LoopbackSocket) -> Int {
        let count = buffer.withUnsafeMutableBytes { room in
            guard let start = room.baseAddress else { return 0 }
            return Int(complete(over: socket) { $0.read(objects.connection, start, CInt(clamping: room.count)) })
        }
        return max(count, 0)
    }

    /// Encrypts and sends bytes. Blocks while the client does not read.
    ///
    /// - Returns: Whether all bytes were written.
    func send(_ data: Data, over socket: LoopbackSocket) -> Bool {
        var rest = data[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Self.maximum)
            let count = piece.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return 0 }
                return Int(complete(over: socket) { $0.write(objects.connection, start, CInt(clamping: bytes.count)) })
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Sends `close_notify` (RFC 8446, section 6.1).
    func finishSending(over socket: LoopbackSocket) {
        lock.withLock { _ in
            context.library.clearErrors()
            _ = context.library.shutDown(objects.connection)
            _ = flush(to: socket)
        }
    }

    /// Repeats a step until it is complete or fails, and transfers bytes over the socket in
    /// between.
    private func complete(over socket: LoopbackSocket, _ step: (TLSLibrary) -> CInt) -> CInt {
        let library = context.library
        var buffer = [UInt8]()
        while true {
            let (result, failure, isFlushed) = lock.withLock { _ in
                library.clearErrors()
                let result = step(library)
                let failure = result > 0 ? 0 : library.failure(objects.connection, result)
                return (result, failure, flush(to: socket))
            }
            guard isFlushed else { return 0 }
            guard result <= 0, failure == Self.wantsRead else { return result }
            if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: Self.maximum) }
            let count = socket.receive(into: &buffer)
            guard count > 0 else { return 0 }
            let isWritten = buffer.withUnsafeBytes { bytes in
                lock.withLock { _ in
                    bytes.baseAddress.map { library.writeStream(objects.input, $0, CInt(count)) == CInt(count) }
                        ?? false
                }
            }
            guard isWritten else { return 0 }
        }
    }

    /// Sends the bytes that OpenSSL has written.
    private func flush(to socket: LoopbackSocket) -> Bool {
        var data = Data()
        let library = context.library
        withUnsafeTemporaryAllocation(byteCount: Self.maximum, alignment: 16) { room in
            guard let start = room.baseAddress else { return }
            while case let count = library.readStream(objects.output, start, CInt(room.count)), count > 0 {
                data.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<Int(count)]))
            }
        }
        return data.isEmpty || socket.send(data)
    }
}

extension TLSStream: Hashable {
    static func == (first: TLSStream, second: TLSStream) -> Bool { first === second }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
