import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

extension WebService {
    /// A service over a CurlSession.
    convenience init(_ server: MockServer, _ session: CurlSession) {
        self.init(baseURLString: server.baseURLString)
        self.session = session
    }

    /// A service over a CurlSession, both with a test clock.
    convenience init(_ server: MockServer, _ clock: TestClock) throws {
        self.init(baseURLString: server.baseURLString, clock: clock)
        session = try CurlSession(timekeeper: clock)
    }
}

extension CurlSession {
    convenience init(_ change: (inout Configuration) -> Void) throws {
        var configuration = Configuration()
        change(&configuration)
        try self.init(configuration: configuration)
    }
}

extension MockResponse {
    init(_ data: Data, wire: Wire = .fixedLength) {
        self.init(statusCode: 200, data: data)
        self.wire = wire
    }

    init(_ text: String, wire: Wire = .fixedLength) {
        self.init(Data(text.utf8), wire: wire)
    }
}

extension MockServer {
    /// Starts a server that looks all names up (RFC 8484), for the duration of the test. Their
    /// address is 127.0.0.1.
    static func namesOnLoopback() throws -> MockServer {
        try forTest { request in
            // A query for an address of IPv4 (RFC 1035, section 4.1) receives 127.0.0.1.
            let query = [UInt8](request.body)
            guard query.count > 16 else { return MockResponse(statusCode: 400) }
            let isIPv4 = query[query.count - 3] == 1
            var answer = Array(query[..<2]) + [0x81, 0x80, 0, 1, 0, isIPv4 ? 1 : 0, 0, 0, 0, 0] + query[12...]
            if isIPv4 { answer += [0xC0, 0x0C, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] }
            var response = MockResponse(statusCode: 200, data: Data(answer))
            response.headers["Content-Type"] = "application/dns-message"
            return response
        }
    }
}

extension Result {
    var error: Failure? { if case .failure(let error) = self { error } else { nil } }
    var urlErrorCode: URLError.Code? { (error as? URLError)?.code }
    var code: WebServiceError.Code? { (error as? WebServiceError)?.code }
}

/// A value that closures change on other threads.
final class Box<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock { $0 } }

    func change(_ change: @Sendable (inout Value) -> Void) { state.withLock { change(&$0) } }

    func withValue<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        state.withLock { body(&$0) }
    }
}

/// The system resources of the process, or 0 if the system does not report them.
enum Resources {
    static var descriptors: Int { count("/proc/self/fd") }
    static var threads: Int { count("/proc/self/task") }

    /// In bytes.
    static var residentMemory: Int { bytes("VmRSS:") }

    static func bytes(_ field: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""  // 0, as documented
        let line = text.split(separator: "\n").first { $0.hasPrefix(field) }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
    }

    private static func count(_ folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
    }
}
