import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// The replies of curl's own test cases. The command-line tool shows what each of them means.
@Suite(
    "Curl session: replies of curl's test cases", .serialized,
    .enabled(
        if: !CurlReplies.all.isEmpty && FileManager.default.isExecutableFile(atPath: "/usr/bin/curl"),
        "WEBSERVICE_CORPORA has to name a folder with curl/tests/data, and /usr/bin/curl has to be there"),
    .permit(minutes: 20))
struct CurlReplyTests {
    private static let tool = "/usr/bin/curl"

    @Test(
        "Each reply completes in time, and as an error or with the status and the body that curl reads from it",
        arguments: [false, true])
    func replies(isNormalized: Bool) async throws {
        let replies = CurlReplies.all.map { reply in
            Data(isNormalized ? CurlReplies.normalized(reply.bytes) : reply.bytes)
        }
        let server = try MockServer.forTest { request in
            guard let number = Int(request.path.dropFirst()) else { return MockResponse("next") }
            return MockResponse("", wire: .raw(replies[number]))
        }
        let service = WebService(server, try CurlSession { $0.proxy = .none })
        var (equal, refused, differences) = (0, 0, [String]())
        for (number, reply) in CurlReplies.all.enumerated() {
            var request = service.request(.GET, path: "/\(number)")
            request.options.redirectPolicy = .manual
            request.options.deadline = .seconds(30)
            let task = service.sessionTask(request: request).data().validateNothing()
            let result = await task.result
            #expect(result.code != .deadline, "\(reply.name)")
            guard case .success(let body) = result else {
                refused += 1
                continue
            }
            let response = try await task.response
            let status = response.status
            // The tool decodes more codings than the session, which only requests gzip.
            let isGzip = response.headers["Content-Encoding"]?.lowercased() == "gzip"
            let (other, code) = try await Self.read(
                "\(server.baseURLString)/\(number)", isGzip ? ["--compressed"] : [])
            if code == status && other == body {
                equal += 1
            } else {
                differences.append("\(reply.name): \(status), \(body.count) bytes; curl: \(code), \(other.count) bytes")
            }
            if number % 50 == 0 { #expect(try await service.GET("/next").string().value == "next") }
        }
        print("G5: \(equal) replies as curl reads them, \(refused) errors")
        #expect(differences == [])
        #expect(equal > 1_000)
    }

    /// - Returns: The body and the status that the command-line tool reads; 0 for an error.
    private static func read(_ url: String, _ options: [String]) async throws -> (body: Data, status: Int) {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let output = Pipe()
                        let process = ChildProcess(
                            tool,
                            ["-q", "-s", "--noproxy", "*", "--max-time", "30", "-w", "\n%{http_code}", url] + options,
                            environment: [:], input: .null, output: .pipe(output), errors: .null)
                        try process.run()
                        let bytes = output.fileHandleForReading.readDataToEndOfFile()
                        guard process.waitUntilExit() == 0, let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
                            return (Data(), 0)
                        }
                        let status = Int(String(decoding: bytes[(end + 1)...], as: UTF8.self)) ?? 0
                        return (Data(bytes[..<end]), status)
                    })
            }
        }
    }
}
