import Foundation
import WebServiceInspector

// Serves an inspector for the test in a browser (scripts/lib/inspector-test). Prints the URL of the
// page, then performs the commands on standard input, one per line, and prints `done` after each:
//
//     demo           requests of an example app, with retries, an image and a failure
//     canary         requests and responses with secrets
//     hostile        header fields and bodies that try to add markup or to forge events
//     many COUNT     requests without delay
//     large SIZE     a response with a body of so many megabytes
//     one PATH       one request
//     failures       responses that fail after their head, and cancelled requests
//     bodies         bodies of several types, a redirect, and a failure with its cause
//     kinds          one exchange of each kind
//     questions      a retry, a cache hit, a slow call, a failed decoding, and sent tokens
//     phases         two requests over one connection of a CurlSession
//     exit           one request, after whose end the program exits at once
//     stream         an event stream that remains open
//     event NAME     an event of the stream
//     socket         a WebSocket that remains open until the message `close`
//     message TEXT   a message over the WebSocket, to which the server responds
//     hold           a request that is in progress until `release`
//     release
//     stop           ends the inspector
//
// Ends with standard input. The option --binary shows bodies that cannot be redacted, --many retains
// 10,000 exchanges, and --large retains 4 MiB of each body.

do {
    let has = CommandLine.arguments.contains
    let probe = try InspectorProbe(
        maximumExchanges: has("--many") ? 10_000 : 1100, bodyLimit: has("--large") ? 4 << 20 : 1 << 20,
        showsBinaryBodies: has("--binary"))
    print(probe.inspector.url.absoluteString)
    fflush(nil)
    while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        await probe.run(words.first ?? "", words.dropFirst().first)
        print("done")
        fflush(nil)
    }
    probe.inspector.stop()
} catch {
    FileHandle.standardError.write(Data("inspector-probe: \(error)\n".utf8))
    exit(1)
}
