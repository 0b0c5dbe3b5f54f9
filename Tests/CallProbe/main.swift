import Foundation
import WebServiceCore
import WebServiceCurl
import WebServiceEndpoints

// Sends requests one after another, for scripts/lib/call-budgets, which starts each of them:
//
//     call-probe get|handler|perform|canary <URL> <warm-up> <number of requests>
//
// `canary` is `get` with one more allocation, one more lock and one more system call.

let arguments = CommandLine.arguments
guard arguments.count == 5, let warmUp = Int(arguments[3]), let count = Int(arguments[4]) else {
    print("call-probe get|handler|perform|canary <URL> <warm-up> <number of requests>")
    exit(2)
}
let service = WebService(baseURLString: arguments[2])
service.session = try CurlSession()
let recorder = CallRecorder(warmUp: warmUp, count: count)

struct BodyRequest: HTTPServiceRequest, Hashable {
    typealias Output = Data
    func request(for service: WebService) -> Request { service.request(.GET, path: "/") }
}

/// Sends requests, each of them in the handler of the previous one.
@Sendable func sendInHandlers(_ remaining: Int, _ completed: CheckedContinuation<Void, any Error>) {
    guard remaining > 0 else { return completed.resume() }
    recorder.begin()
    service.GET("/").data().onCompletion { result in
        if case .failure(let error) = result { return completed.resume(throwing: error) }
        sendInHandlers(remaining - 1, completed)
    }.resume()
}

let lock = Mutex(0)
let mode = arguments[1]
switch mode {
case "get", "canary":
    for _ in 0..<warmUp + count {
        recorder.begin()
        _ = try await service.GET("/").data().value
        guard mode == "canary" else { continue }
        free(malloc(1_234))
        lock.withLock { $0 += 1 }
        _ = getuid()
    }
case "perform":
    for _ in 0..<warmUp + count {
        recorder.begin()
        _ = try await service.perform(BodyRequest()).value
    }
case "handler": try await withCheckedThrowingContinuation { sendInHandlers(warmUp + count, $0) }
default: exit(2)
}
recorder.report()
