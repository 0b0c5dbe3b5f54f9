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
//     outbox-probe PATH URL NAME ROUND COUNT
//
// PATH is a folder, or a database if it ends with `.sqlite`. With another argument, the program first
// creates the folder.
// Submits COUNT requests, `POST /effects/NAME/ROUND/N` of the entity NAME/M, where M is N modulo 3,
// and prints `ack N` after each submission and `done` after the last one. Then it sends until its
// standard input ends. The exit status is 0 for success, 1 for an error and 2 for wrong arguments.

/// Writes a line without buffering, because the process may end before the next one.
func write(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 5, let count = Int(arguments[4]) else {
    print("outbox-probe PATH URL NAME ROUND COUNT")
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
    if arguments.count > 5 {
        try FileManager.default.createDirectory(
            at: isDatabase ? file.deletingLastPathComponent() : file, withIntermediateDirectories: true)
    }
    #if WEBSERVICE_SQLITE
    let outbox =
        try isDatabase
        ? service.outbox(inDatabase: file, options: options) : service.outbox(in: file, options: options)
    #else
    let outbox = try service.outbox(in: file, options: options)
    #endif
    for number in 0..<count {
        let path = "/effects/\(arguments[2])/\(arguments[3])/\(number)"
        try await outbox.submit(service.request(.POST, path: path), entity: "\(arguments[2])/\(number % 3)")
        write("ack \(number)")
    }
    write("done")
    _ = FileHandle.standardInput.readDataToEndOfFile()
    await outbox.close()
} catch {
    write("failed: \(error)")
    exit(1)
}
