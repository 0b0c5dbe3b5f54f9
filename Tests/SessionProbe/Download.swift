import Foundation
import WebServiceCore
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Downloads a file, for tests that kill the process.
///
/// - Returns: The exit status: 0 for success, 1 for an error.
func probeDownload(_ url: String, to path: String, connections: Int) async throws -> Int32 {
    let service = WebService(baseURLString: url)
    #if WEBSERVICE_CURL
    service.session = try CurlSession()
    #endif
    let file = try await service.GET(url).download(to: URL(fileURLWithPath: path), connections: connections).value
    tell("\(file.byteCount) \(peakMemory ?? "0")")
    return 0
}

/// The peak of the resident memory in KiB, on Linux.
var peakMemory: Substring? {
    let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    return status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?.split(separator: " ").dropFirst().first
}

/// Returns when a duration has elapsed.
func elapse(_ duration: Duration) async {
    let nanoseconds = Int(max(duration, .zero) / .nanoseconds(1))
    await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { continuation.resume() }
    }
}

/// Downloads a file, and sends other requests over the same session in the meantime.
///
/// Prints the longest duration of a request in milliseconds.
func probeLatency(_ url: String, to path: String, beside other: String) async throws -> Int32 {
    let service = WebService(baseURLString: url)
    #if WEBSERVICE_CURL
    service.session = try CurlSession()
    #endif
    let download = service.GET(url).download(to: URL(fileURLWithPath: path))
    download.resume()
    var longest = Duration.zero
    var count = 0
    while download.task.state != .completed {
        let start = ContinuousClock.now
        _ = try await service.GET(other).data().value
        longest = max(longest, start.duration(to: .now))
        count += 1
        await elapse(.milliseconds(20))
    }
    _ = try await download.value
    tell("\(longest / .milliseconds(1)) \(count)")
    return 0
}
