import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The examples of the specifications. The lengths of the draft's examples are divided by 1,000.
@Suite("Examples of the upload protocols", .permit)
struct UploadExampleTests {
    private typealias Step = ScriptedServer.Step

    private static let draft = ["Upload-Draft-Interop-Version": "8"]
    private static let tus = ["Tus-Resumable": "1.0.0"]
    private static let supported = Step("OPTIONS /upload", status: 204, ["Upload-Limit": "min-size=0"])

    private let folder = TemporaryFolder()

    /// Runs uploads against a script, and returns the result of the last one.
    private func run(
        _ steps: [Step], _ kind: UploadProtocol, _ path: String, length: Int,
        piece: Int, uploads: Int = 1, headers: [String: String] = [:], retries: Bool = false, ends: Bool = false
    ) async throws -> Result<UploadedFile, any Error> {
        let server = try ScriptedServer(steps)
        let service = WebService(server.server.baseURLString, session: try UploadSession.best.session())
        if retries { service.interceptors = [.retry(baseDelay: .zero)] }
        let file = try folder.file("file name.jpg", UploadFixture.content(length))
        var result: Result<UploadedFile, any Error> = .failure(URLError(.unknown))
        for _ in 0..<uploads {
            result = await service.POST(path).setHeaders(headers).setBody(file: file)
                .upload(resuming: kind, pieceSize: piece).result
        }
        if ends {
            #expect(try await service.POST(path).setBody(file: file).endUpload(resuming: kind).value)
        }
        #expect(server.failures == [])
        return result
    }

    private func append(
        _ path: String, at offset: Int, _ length: Int, isLast: Bool, _ status: Int = 204,
        _ response: [String: String] = ["Upload-Complete": "?0"], body: String = ""
    ) -> Step {
        let fields = [
            "Upload-Offset": "\(offset)", "Upload-Complete": isLast ? "?1" : "?0",
            "Content-Type": "application/partial-upload", "Content-Length": "\(length)",
        ]
        return Step(
            "PATCH \(path)", fields.merging(Self.draft) { $1 }, length: length, status: status, response, body: body)
    }

    // MARK: Draft

    #if WEBSERVICE_CURL
    @Test("Overview, example 1: the offset is retrieved after an interruption, and the rest appended")
    func overview1() async throws {
        let creation = Step("POST /project/123/files", ["Upload-Complete": "?1"], length: 100, status: 500)
        let result = try await run(
            [
                Step(creation, interim: [["Location": "/uploads/abc"]]),
                Step("HEAD /uploads/abc", Self.draft, status: 204, ["Upload-Offset": "60"]),
                append("/uploads/abc", at: 60, 40, isLast: true, 200, ["Upload-Complete": "?1"], body: "done"),
            ], .draft, "/project/123/files", length: 100, piece: 100, retries: true)
        #expect(try result.get().response.data == Data("done".utf8))
    }
    #endif

    @Test("Overview, example 2: a series of parts, interrupted and resumed")
    func overview2() async throws {
        let result = try await run(
            [
                Self.supported,
                Step(
                    "POST /upload", ["Upload-Complete": "?0", "Upload-Length": "100"], length: 30, status: 201,
                    ["Location": "/uploads/abc"]),
                append("/uploads/abc", at: 30, 30, isLast: false),
                append("/uploads/abc", at: 60, 30, isLast: false).lost(),
                Step("HEAD /uploads/abc", Self.draft, status: 204, ["Upload-Offset": "65"]),
                append("/uploads/abc", at: 65, 30, isLast: false),
                append("/uploads/abc", at: 95, 5, isLast: true, 200, ["Upload-Complete": "?1"]),
            ], .draft, "/upload", length: 100, piece: 30, uploads: 2)
        #expect(try result.get().resumedFrom == 65)
    }

    @Test("Creation, example A: the whole file in the initial request")
    func creationA() async throws {
        var step = Step(
            "POST /project/123/files",
            [
                "Upload-Complete": "?1", "Upload-Length": "123456", "Content-Length": "123456",
                "Content-Disposition": #"inline; filename="file name.jpg"; filename*=UTF-8''file%20name.jpg"#,
                "Upload-Draft-Interop-Version": "8",
            ], length: 123_456, status: 200,
            [
                "Location": "https://example.com/upload/b530ce8ff", "Upload-Complete": "?1",
                "Upload-Limit": "max-size=1234567", "Content-Type": "application/json",
            ], body: #"{"attachmentId": "b530ce8ff"}"#)
        step = Step(
            step,
            interim: [
                ["Location": "https://example.com/upload/b530ce8ff", "Upload-Limit": "max-size=1234567"],
                ["Upload-Offset": "23456"],
            ])
        let result = try await run(
            [step], .draft, "/project/123/files", length: 123_456, piece: 200_000,
            headers: [
                "Content-Disposition": #"inline; filename="file name.jpg"; filename*=UTF-8''file%20name.jpg"#
            ])
        #expect(try result.get().response.data == Data(#"{"attachmentId": "b530ce8ff"}"#.utf8))
    }

    @Test("Creation, example B: a part in the initial request")
    func creationB() async throws {
        var step = Step(
            "POST /upload",
            ["Upload-Complete": "?0", "Content-Length": "23456", "Upload-Length": "123456"], length: 23_456,
            status: 201,
            ["Location": "/upload/3fd4994ad", "Upload-Complete": "?0", "Upload-Limit": "max-size=1234567"])
        step = Step(step, interim: [["Location": "/upload/3fd4994ad"]])
        let rest = (1..<6).map { index in
            append(
                "/upload/3fd4994ad", at: index * 23_456, min(23_456, 123_456 - index * 23_456), isLast: index == 5,
                index == 5 ? 200 : 204, ["Upload-Complete": index == 5 ? "?1" : "?0"])
        }
        let result = try await run([Self.supported, step] + rest, .draft, "/upload", length: 123_456, piece: 23_456)
        #expect(try result.get().restarts == 0)
    }

    #if WEBSERVICE_CURL
    @Test("Creation, example C: a server error after an interim response is resumed")
    func creationC() async throws {
        var step = Step(
            "POST /upload", ["Upload-Complete": "?1", "Content-Length": "123456", "Upload-Length": "123456"],
            length: 123_456, status: 500)
        step = Step(step, interim: [["Location": "/upload/0587fa44b"]])
        let result = try await run(
            [
                step, Step("HEAD /upload/0587fa44b", Self.draft, status: 204, ["Upload-Offset": "100000"]),
                append("/upload/0587fa44b", at: 100_000, 23_456, isLast: true, 200, ["Upload-Complete": "?1"]),
            ], .draft, "/upload", length: 123_456, piece: 200_000, retries: true)
        #expect(try result.get().resumedFrom == 0)
    }
    #endif

    @Test("Creation, example D: content that cannot be decoded ends the upload")
    func creationD() async throws {
        var step = Step(
            "POST /upload-gzip",
            [
                "Upload-Complete": "?0", "Content-Length": "23456", "Upload-Length": "123456",
                "Content-Encoding": "gzip",
            ],
            length: 23_456, status: 400, ["Upload-Complete": "?1"])
        step = Step(step, interim: [["Location": "/upload/6723cdf37"]])
        let result = try await run(
            [Step("OPTIONS /upload-gzip", status: 204, ["Upload-Limit": "min-size=0"]), step], .draft, "/upload-gzip",
            length: 123_456, piece: 23_456, headers: ["Content-Encoding": "gzip"], retries: true)
        #expect(throws: WebServiceError.self) { try result.get() }
        #expect(try names(in: folder.url) == ["file name.jpg"])
    }

    @Test("Offset retrieval, and append examples A and B")
    func appendExamples() async throws {
        let result = try await run(
            [
                Self.supported,
                Step(
                    "POST /upload", ["Upload-Complete": "?0"], length: 34_567, status: 201,
                    ["Location": "/upload/c35e2cd29"]),
                self.append("/upload/c35e2cd29", at: 34_567, 34_567, isLast: false).lost(),
                Step(
                    "HEAD /upload/c35e2cd29", Self.draft, status: 204,
                    [
                        "Upload-Complete": "?0", "Upload-Offset": "35000", "Upload-Length": "100000",
                        "Upload-Limit": "max-age=3600", "Cache-Control": "no-store",
                    ]),
                Step(
                    self.append("/upload/c35e2cd29", at: 35_000, 34_567, isLast: false),
                    interim: [["Upload-Offset": "41728"]]
                ),
                self.append(
                    "/upload/c35e2cd29", at: 69_567, 30_433, isLast: true, 200,
                    ["Upload-Complete": "?1", "Content-Type": "application/json"], body: #"{"metadata":{}}"#),
            ], .draft, "/upload", length: 100_000, piece: 34_567, uploads: 2)
        #expect(try result.get().resumedFrom == 35_000)
        #expect(try result.get().response.data == Data(#"{"metadata":{}}"#.utf8))
    }

    @Test("Cancellation")
    func cancellation() async throws {
        let result = try await run(
            [
                Self.supported,
                Step(
                    "POST /upload", ["Upload-Complete": "?0"], length: 40, status: 201,
                    ["Location": "/upload/5688a431c"]),
                append("/upload/5688a431c", at: 40, 40, isLast: false).lost(),
                Step("DELETE /upload/5688a431c", Self.draft, status: 204),
            ], .draft, "/upload", length: 100, piece: 40, ends: true)
        #expect(throws: URLError.self) { try result.get() }
    }

    @Test("Problem types: a mismatching offset and an inconsistent length")
    func problems() async throws {
        let types = "https://iana.org/assignments/http-problem-types#"
        let mismatch = """
            {"type":"\(types)mismatching-upload-offset",
            "title":"offset from request does not match offset of resource",
            "expected-offset":50,"provided-offset":40}
            """
        let inconsistent = """
            {"type":"\(types)inconsistent-upload-length","title":"inconsistent length values for upload"}
            """
        let problem = ["Content-Type": "application/problem+json", "Upload-Complete": "?0"]
        let result = try await run(
            [
                Self.supported,
                Step("POST /upload", ["Upload-Complete": "?0"], length: 40, status: 201, ["Location": "/u"]),
                append(
                    "/u", at: 40, 40, isLast: false, 409, problem.merging(["Upload-Offset": "50"]) { $1 },
                    body: mismatch),
                Step("HEAD /u", Self.draft, status: 204, ["Upload-Offset": "50"]),
                append("/u", at: 50, 40, isLast: false, 400, problem, body: inconsistent),
            ], .draft, "/upload", length: 100, piece: 40)
        let error = #expect(throws: WebServiceError.self) { try result.get() }
        #expect(error?.status == 400)
        #expect(error?.body == Data(inconsistent.utf8))
    }

    // MARK: tus

    private static let patch = tus.merging(["Content-Type": "application/offset+octet-stream"]) { $1 }

    private func patch(_ offset: Int, _ length: Int, _ more: [String: String] = [:], expires: String? = nil) -> Step {
        var response = ["Tus-Resumable": "1.0.0", "Upload-Offset": "\(offset + length)"]
        response["Upload-Expires"] = expires
        let fields = ["Upload-Offset": "\(offset)", "Content-Length": "\(length)"]
        return Step(
            "PATCH /files/24e533e02ec3bc40c387f1a0e460e216",
            Self.patch.merging(fields) { $1 }.merging(more) { $1 }, length: length, status: 204, response)
    }

    private func options(_ extensions: String, _ more: [String: String] = [:]) -> Step {
        Step(
            "OPTIONS /files", ["Tus-Resumable": ""], status: 204,
            ["Tus-Resumable": "1.0.0", "Tus-Version": "1.0.0,0.2.2,0.2.1", "Tus-Extension": extensions]
                .merging(more) { $1 })
    }

    private func creation(_ length: Int, _ fields: [String: String] = [:], _ more: [String: String] = [:]) -> Step {
        Step(
            "POST /files", Self.tus.merging(["Upload-Length": "100"]) { $1 }.merging(fields) { $1 }, length: length,
            status: 201,
            ["Location": "/files/24e533e02ec3bc40c387f1a0e460e216", "Tus-Resumable": "1.0.0"].merging(more) { $1 })
    }

    @Test("tus: options, creation with metadata, an interruption, the offset and the rest")
    func tusCore() async throws {
        let metadata = "filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential"
        let result = try await run(
            [
                options("creation,expiration", ["Tus-Max-Size": "1073741824"]),
                creation(0, ["Upload-Metadata": metadata, "Content-Length": "0", "Content-Type": ""]),
                patch(0, 100).lost(),
                Step(
                    "HEAD /files/24e533e02ec3bc40c387f1a0e460e216", Self.tus, status: 200,
                    ["Upload-Offset": "70", "Tus-Resumable": "1.0.0"]),
                patch(70, 30, expires: "Wed, 25 Jun 2014 16:00:00 GMT"),
            ], .tus, "/files", length: 100, piece: 1_000, uploads: 2, headers: ["Upload-Metadata": metadata])
        #expect(try result.get().resumedFrom == 70)
    }

    @Test("tus: creation with upload")
    func tusCreationWithUpload() async throws {
        let type = ["Content-Type": "application/offset+octet-stream", "Content-Length": "5"]
        let result = try await run(
            [options("creation,creation-with-upload"), creation(5, type, ["Upload-Offset": "5"])]
                + stride(from: 5, to: 100, by: 5).map { patch($0, 5) },
            .tus, "/files", length: 100, piece: 5)
        #expect(try result.get().byteCount == 100)
    }

    @Test("tus: the checksum of a piece")
    func tusChecksum() async throws {
        let server = try ScriptedServer([
            options("creation,checksum", ["Tus-Checksum-Algorithm": "md5,sha1,crc32"]),
            Step(
                "POST /files", ["Upload-Length": "11"], status: 201,
                ["Location": "/files/17f44dbe1c4bace0e18ab850cf2b3a83", "Tus-Resumable": "1.0.0"]),
            Step(
                "PATCH /files/17f44dbe1c4bace0e18ab850cf2b3a83",
                ["Upload-Checksum": "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "Upload-Offset": "0", "Content-Length": "11"],
                length: 11, status: 204, ["Tus-Resumable": "1.0.0", "Upload-Offset": "11"]),
        ])
        let service = WebService(server.server.baseURLString, session: try UploadSession.best.session())
        let file = try folder.file("hello", Data("hello world".utf8))
        _ = try await service.POST("/files").setBody(file: file).upload(resuming: .tus).value
        #expect(server.failures == [])
    }

    @Test("tus: termination")
    func tusTermination() async throws {
        _ = try await run(
            [
                options("creation,termination"), creation(0), patch(0, 40).lost(),
                Step(
                    "DELETE /files/24e533e02ec3bc40c387f1a0e460e216", Self.tus, status: 204,
                    ["Tus-Resumable": "1.0.0"]),
            ], .tus, "/files", length: 100, piece: 40, ends: true)
    }

    @Test("tus: a server of another version receives an ordinary request")
    func tusVersion() async throws {
        let result = try await run(
            [
                Step("OPTIONS /files", status: 204, ["Tus-Version": "0.2.2", "Tus-Resumable": "0.2.2"]),
                Step("POST /files", ["Tus-Resumable": ""], length: 100, status: 201),
            ], .tus, "/files", length: 100, piece: 40)
        #expect(try result.get().response.status == 201)
    }
}
