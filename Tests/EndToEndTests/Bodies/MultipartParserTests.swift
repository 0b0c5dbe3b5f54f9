import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@Suite("Multipart bodies, read by an independent parser", .permit)
struct MultipartParserTests {
    @Test(
        "An independent parser reads each part as it was added",
        .enabled(if: MultipartParser.isThere, MultipartParser.comment))
    func independentParser() async throws {
        let folder = TemporaryFolder()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        let names = sample(try Self.names(), every: 8)
        let contents = [
            Data(), Data("\r\n".utf8), Data("--".utf8), Data("\r\n--".utf8), MultipartTests.dense(10_000),
            Data(UInt8.min...UInt8.max),
            Data("\r\n--WebService-\r\n--WebService-0123456789abcdef0123456789abcdef--\r\n".utf8),
        ]
        var sent: [[MultipartParser.Part]] = []
        for number in 0..<30 {
            var form = MultipartFormData()
            var parts: [MultipartParser.Part] = []
            for (index, name) in names.enumerated() where index % 30 == number {
                let content = contents[index / 30 % contents.count]
                switch index % 3 {
                case 0:
                    form.append(String(decoding: content, as: UTF8.self), name: name)
                    parts.append(.init(name, nil, nil, Data(String(decoding: content, as: UTF8.self).utf8)))
                case 1:
                    form.append(content, name: name, fileName: name, contentType: "image/png; q=1")
                    parts.append(.init(name, name, "image/png; q=1", content))
                default:
                    form.append(file: try folder.file("\(index)", content), name: name, fileName: name)
                    parts.append(.init(name, name, "application/octet-stream", content))
                }
            }
            sent.append(parts)
            let service = WebService(baseURLString: server.baseURLString)
            #expect(await service.POST("/a").setMultipart(form).delivered().status == 201)
        }
        let read = try await MultipartParser.read(server.receivedRequests, in: folder.url)
        #expect(read.count == sent.count)
        #expect(sent.flatMap(\.self).count == names.count)
        for (read, sent) in zip(read, sent) { #expect(read == sent) }
    }

    /// Names with every scalar from U+0001 to U+00FF, and all naughty strings if the corpora are
    /// available.
    private static func names() throws -> [String] {
        var names = [
            "", "\"", "\r", "\n", "\r\n", "\\", "\\\"", "a\\\\b", "C:\\a", "a; b=\"c\"", "%22", "e\u{301}", "\"\u{301}",
            "日本 ビール", "name", "name",
        ]
        names += (UInt8(1)...255).map { String(Unicode.Scalar($0)) }
        names.append(String(String.UnicodeScalarView((UInt8(1)...255).map { Unicode.Scalar($0) })))
        if let corpora = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"] {
            let strings = try JSONDecoder().decode(
                [String].self, from: Data(contentsOf: URL(fileURLWithPath: corpora + "/blns/blns.json")))
            names += strings.filter { !$0.utf8.contains(0) }
        }
        return names
    }
}
