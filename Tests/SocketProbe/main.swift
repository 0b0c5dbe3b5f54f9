// Runs the cases of the Autobahn test suite for WebSocket clients (`scripts/autobahn`), or measures
// the memory of a reader that stops, see Reader.swift.
//
//   socket-probe URL [CERTIFICATE]
//   socket-probe reader URL

import Foundation
import WebServiceCore
import WebServiceCurl
import WebServiceSockets

guard CommandLine.arguments.count > 1 else {
    print("usage: socket-probe URL [CERTIFICATE] | reader URL")
    exit(2)
}
if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "reader" {
    try await readLate(CommandLine.arguments[2])
    exit(0)
}
let base = CommandLine.arguments[1]
var configuration = CurlSession.Configuration()
if CommandLine.arguments.count > 2 { configuration.tls.trustedCertificatesFile = CommandLine.arguments[2] }
let service = WebService(baseURL: nil)
service.session = try CurlSession(configuration: configuration)
var options = WebSocket.Options()
options.pingInterval = nil
options.maximumMessageBytes = 64 << 20

/// Sends each message back, until the connection ends.
func echo(_ path: String) async {
    do {
        let socket = try await service.webSocket(base + path, options: options)
        for try await message in socket.messages {
            switch message {
            case .text(let text): try await socket.send(text)
            case .data(let data): try await socket.send(data)
            }
        }
    } catch {
        // Many cases end with an error: the server reports what it observed.
    }
}

let first = try await service.webSocket(base + "/getCaseCount").messages.first { _ in true }
guard case .text(let text)? = first, let count = Int(text) else {
    print("the server has sent no number of cases")
    exit(1)
}
print("\(CurlSession.library), \(count) cases")
for number in 1...count {
    await echo("/runCase?case=\(number)&agent=WebService")
    if number.isMultiple(of: 50) { print("\(number) cases") }
}
await echo("/updateReports?agent=WebService")
