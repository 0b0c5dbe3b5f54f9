import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Forks while a server, a session and a storage are in use:
///
///     session-probe fork foundationSession|curlSession exec|exit
///
/// The child executes a program that lists its descriptors and the TCP sockets of the machine
/// (`exec`), or exits (`exit`), after the session has refused a request of the child. The parent
/// then completes the request in flight and a new one, and stores an entry. Prints the results of
/// both processes.
func probeFork(_ kind: String, _ ending: String) async throws {
    let gate = DispatchSemaphore(value: 0)
    let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
    let server = try MockServer { request in
        if request.path == "/slow" {
            arrival.yield()
            _ = gate.wait(timeout: .now() + 60)
        }
        return MockResponse(statusCode: 200, data: Data(request.path.utf8))
    }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fork-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }  // a leftover in the temporary folder
    let key = StorageKey(identifier: "key")
    let storage = try FileStorage(folder: folder)
    try await storage.store(StorageEntry(.raw(Data("value".utf8)), date: Date(timeIntervalSince1970: 0)), for: key)
    let service = WebService(baseURLString: server.baseURLString)
    let refusal = Refusal()
    var refused: (any StreamTask)?
    switch kind {
    case "foundationSession": service.session = FoundationSession()
    #if WEBSERVICE_CURL
    case "curlSession":
        let session = try CurlSession()
        service.session = session
        refused = session.streamTask(request: Request(url: server.baseURLString), receiver: refusal)
    #endif
    default: return tell("unknown session")
    }
    tell("before: \(try await service.GET("/fast").string().value)")
    let slow = service.GET("/slow").string().resume()
    for await _ in arrivals { break }

    // Swift does not import `fork`, because few functions are safe in the child of a multithreaded
    // process.
    guard let symbol = dlsym(nil, "fork") else { return tell("no fork") }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
    let child = fork()
    if child == 0 {
        alarm(60)  // terminates a child that hangs
        if ending == "exec" {
            let script =
                "for f in /proc/self/fd/*; do readlink $f; done; "
                + "awk '{ print \"tcp:[\" $10 \"]\" }' /proc/net/tcp /proc/net/tcp6"
            let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(script), nil]
            execv("/bin/sh", arguments)
            _exit(127)
        }
        refused?.resume()
        if refused != nil, refusal.code?.description != "sessionClosed" { _exit(1) }
        exit(0)
    }
    let status = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            var status: Int32 = 0
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            continuation.resume(returning: status)
        }
    }
    tell("child: status \(status)")
    gate.signal()
    tell("parent: \(try await slow.value) \(try await service.GET("/fast").string().value)")
    try await storage.store(StorageEntry(.raw(Data("newer".utf8)), date: Date(timeIntervalSince1970: 0)), for: key)
    if let data = try await storage.entry(for: key)?.data { tell("stored: \(String(decoding: data, as: UTF8.self))") }
    server.stop()
}

/// Records the error of a request.
private final class Refusal: BodyReceiver {
    private let state = Mutex<WebServiceError.Code?>(nil)

    var code: WebServiceError.Code? { state.withLock { $0 } }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {}
    func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand { .more }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        if case .failure(let error as WebServiceError) = result { state.withLock { $0 = error.code } }
    }
}
