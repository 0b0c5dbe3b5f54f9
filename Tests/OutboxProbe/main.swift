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
//     outbox-probe PATH URL NAME ROUND COUNT [created] [terms] [finish]
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
guard arguments.count >= 5, let count = Int(arguments[4]) else {
    print("outbox-probe PATH URL NAME ROUND COUNT [created] [terms] [finish]")
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
        try await outbox.submit(
            service.request(.POST, path: path), entity: "\(arguments[2])/\(number % 3)",
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
