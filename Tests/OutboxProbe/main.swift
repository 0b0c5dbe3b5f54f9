import Foundation
import WebServiceCore
import WebServiceOffline

#if WEBSERVICE_CURL
import WebServiceCurl
#endif
#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Submits requests to an outbox in a separate process, for tests that kill the process:
//
//     outbox-probe PATH URL NAME ROUND COUNT [created] [terms] [finish] [files]
//
// PATH is a folder, or a database if it ends with `.sqlite`. With `created`, the program first
// creates the folder.
// Submits COUNT requests, `POST /effects/NAME/ROUND/N` of the entity NAME/M, where M is N modulo 3,
// and prints `ack N` after each submission and `done` after the last one. Then it sends until its
// standard input ends.
// With `terms`, the responses of NAME/0 are stored, those of NAME/1 replace each other, and those
// of NAME/2 expire after up to 20 milliseconds. The program prints `got PATH` for each response,
// with its body, `removed PATH` after it has removed the response, and `expired PATH` for a request
// that it drops.
// With `finish`, SIGTERM finishes the outbox, after which the program prints `finished` with the
// result, and ends.
// With `files`, each request of NAME/0 and NAME/1 has a body: a file, which the program then
// overwrites, with the path of the request, repeated up to 300,000 bytes for odd numbers.
//
//     outbox-probe upload PATH URL FILE
//
// Submits a request whose body is FILE, sends it, and prints the growth of the memory in KiB: of the
// largest resident size, after an outbox has sent a request without a body.
//
//     outbox-probe log-out FOLDER
//
// Completes the log-outs in the parent of FOLDER, opens an account in FOLDER, writes files, logs out,
// and prints `done` or the error.
//
// The exit status is 0 for success, 1 for an error and 2 for wrong arguments.

/// Writes a line without buffering, because the process may end before the next one.
nonisolated func write(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

/// Opens an account, writes files, and logs out.
func logOut(in folder: URL) async throws {
    try Account.finishLogOuts(in: folder.deletingLastPathComponent())
    let account = try Account(in: folder)
    let nested = account.file("a/b")
    try FileManager.default.createDirectory(at: nested, withIntermediateDirectories: true)
    try Data("secret".utf8).write(to: nested.appendingPathComponent("token"))
    try account.writeCookies()  // flushes the names in the folder
    try await account.logOut()
}

/// Finishes the outbox when the process receives SIGTERM, and then ends the process.
nonisolated func finishOnTermination(_ outbox: Outbox) -> any DispatchSourceSignal {
    signal(SIGTERM, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
    source.setEventHandler {
        Task.detached {
            write("finished \(await outbox.finish(within: .seconds(60)))")
            exit(0)
        }
    }
    source.activate()
    return source
}

/// Submits a request with a file, waits until it is sent, and returns the growth of the largest
/// resident size in KiB.
func upload(_ file: URL, _ path: String, _ url: String) async throws -> Int {
    func send(_ body: Request.Body) async throws {
        let service = WebService(baseURLString: url)
        #if WEBSERVICE_CURL
        service.session = try CurlSession()  // the server reads one request of each connection
        #endif
        let outbox = try service.outbox(in: URL(fileURLWithPath: path))
        var request = service.request(.PUT, path: "/")
        request.content = body
        let updates = outbox.updates
        let id = try await outbox.submit(request)
        for await case .entry(let entry) in updates where entry.id == id && entry.state == .sent { break }
        await outbox.close()
    }
    try await send(.data(Data([0])))
    let before = largestResidentSize()
    try await send(.file(file))
    return largestResidentSize() - before
}

/// The largest resident size of this process in KiB.
func largestResidentSize() -> Int {
    let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)  // 0 without the file
    return status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?.split(separator: " ").dropFirst().first
        .flatMap { Int($0) } ?? 0
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.count == 2, arguments[0] == "log-out" {
    do {
        try await logOut(in: URL(fileURLWithPath: arguments[1]))
        write("done")
        exit(0)
    } catch {
        write("failed: \(error)")
        exit(1)
    }
}
if arguments.count == 4, arguments[0] == "upload" {
    do {
        write("\(try await upload(URL(fileURLWithPath: arguments[3]), arguments[1], arguments[2]))")
        exit(0)
    } catch {
        write("failed: \(error)")
        exit(1)
    }
}
guard arguments.count >= 5, let count = Int(arguments[4]) else {
    print("outbox-probe PATH URL NAME ROUND COUNT [created] [terms] [finish] [files]")
    exit(2)
}
do {
    let service = WebService(baseURLString: arguments[1])
    #if WEBSERVICE_CURL
    service.session = try CurlSession()
    #endif
    var options = Outbox.Options()
    options.firstPause = .milliseconds(5)
    options.maximumPause = .milliseconds(20)
    options.pollInterval = .milliseconds(20)
    let file = URL(fileURLWithPath: arguments[0])
    let isDatabase = file.pathExtension == "sqlite"
    let (isCreated, hasTerms) = (arguments.dropFirst(5).contains("created"), arguments.contains("terms"))
    let hasFiles = arguments.contains("files")
    let parent = isDatabase ? file.deletingLastPathComponent() : file
    let source = parent.deletingLastPathComponent().appendingPathComponent("source-\(arguments[2])")
    if isCreated {
        try FileManager.default.createDirectory(
            at: isDatabase ? file.deletingLastPathComponent() : file, withIntermediateDirectories: true)
    }
    let onFailure: @Sendable (Outbox.Failure) async -> Outbox.Decision = { failure in
        guard failure.kind == .error(.entryExpired) else { return .keep }
        write("expired \(failure.request.url?.path ?? "")")
        return .drop
    }
    #if WEBSERVICE_SQLITE
    let outbox =
        try isDatabase
        ? service.outbox(inDatabase: file, options: options, onFailure: onFailure)
        : service.outbox(in: file, options: options, onFailure: onFailure)
    #else
    let outbox = try service.outbox(in: file, options: options, onFailure: onFailure)
    #endif
    let termination = arguments.contains("finish") ? finishOnTermination(outbox) : nil
    defer { withExtendedLifetime(termination) {} }
    if hasTerms {
        Task {
            for try await stored in outbox.responses {
                let path = String(decoding: stored.response.data, as: UTF8.self)
                write("got \(path)")
                try await outbox.removeResponse(of: stored.id)
                write("removed \(path)")
            }
        }
    }
    for number in 0..<count {
        let path = "/effects/\(arguments[2])/\(arguments[3])/\(number)"
        var request = service.request(.POST, path: path)
        if hasFiles, number % 3 < 2 {
            let bytes = Data(String(repeating: path + "\n", count: number % 2 == 0 ? 1 : 300_000 / path.count).utf8)
            try bytes.write(to: source)
            request.content = .file(source)
        }
        defer { if hasFiles { try? Data("overwritten".utf8).write(to: source) } }  // the server would notice it
        try await outbox.submit(
            request, entity: "\(arguments[2])/\(number % 3)",
            replacing: hasTerms && number % 3 == 1 ? "key" : nil,
            expires: hasTerms && number % 3 == 2 ? Date(timeIntervalSinceNow: .random(in: 0...0.02)) : nil,
            storesResponse: hasTerms && number % 3 == 0)
        write("ack \(number)")
    }
    write("done")
    _ = FileHandle.standardInput.readDataToEndOfFile()
    await outbox.close()
} catch let error as WebServiceError where error.code == .outboxClosed {
    while true { pause() }  // until the outbox has finished
} catch {
    write("failed: \(error)")
    exit(1)
}
