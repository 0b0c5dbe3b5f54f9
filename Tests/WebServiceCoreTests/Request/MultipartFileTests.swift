import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics

@testable import WebServiceCore

@Suite("Multipart bodies: files", .permit)
struct MultipartFileTests {
    /// A sequence of bytes that repeats every 251 bytes.
    private static let content = Data((0..<200_000).map { UInt8($0 % 251) })

    /// A form with text and file parts, and its expected body.
    private func mixed(_ folder: TemporaryFolder) throws -> (form: MultipartFormData, body: Data) {
        let form = try MultipartFormData.make {
            $0.append(file: try folder.file("é \".bin", Self.content), name: "a")
            $0.append("t", name: "b")
            $0.append(file: try folder.file("empty"), name: "c", fileName: "", contentType: "a/b")
            $0.append(file: try folder.file("empty"), name: "c", fileName: "x")
        }
        let separator = "--\(form.boundary)"
        var body = Data("\(separator)\r\nContent-Disposition: form-data; name=\"a\"; filename=\"é %22.bin\"\r\n".utf8)
        body += Data("Content-Type: application/octet-stream\r\n\r\n".utf8) + Self.content
        body += Data("\r\n\(separator)\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\nt\r\n".utf8)
        body += Data(
            "\(separator)\r\nContent-Disposition: form-data; name=\"c\"; filename=\"\"\r\nContent-Type: a/b\r\n\r\n\r\n"
                .utf8)
        body += Data("\(separator)\r\nContent-Disposition: form-data; name=\"c\"; filename=\"x\"\r\n".utf8)
        body += Data("Content-Type: application/octet-stream\r\n\r\n\r\n\(separator)--\r\n".utf8)
        return (form, body)
    }

    @Test("A body with files is read in chunks of any size, and its length is known in advance")
    func pieces() throws {
        let folder = TemporaryFolder.forTest()
        let (form, body) = try mixed(folder)
        let encoded = try form.request.encode()
        #expect(encoded.body == nil)
        #expect(encoded.bodyCount == body.count)
        let source = try #require(encoded.bodySource)
        for size in [1, 7, 4096, 65_536, 1 << 20] { #expect(try source.read(in: size) == body) }
    }

    @Test("Reading continues at any offset after a seek")
    func seeking() throws {
        let folder = TemporaryFolder.forTest()
        let (form, body) = try mixed(folder)
        let reader = BodyReader(try #require(try form.request.encode().bodySource))
        var room = [UInt8](repeating: 0, count: 100)
        for place in [0, body.count, 5, 100_000, 150, 200_000, body.count - 1, 0, -5, .max]
            + Array(200_000..<body.count)
        {
            reader.seek(to: place)
            let start = min(max(0, place), body.count)
            #expect(reader.offset == start)
            let count = try room.withUnsafeMutableBytes { try reader.read(into: $0) }
            #expect(Data(room.prefix(count)) == body.dropFirst(start).prefix(100))
        }
        #expect(try reader.read(into: UnsafeMutableRawBufferPointer(start: nil, count: 0)) == 0)
    }

    @Test("A body with files becomes a stream of the URLRequest, which converts back to the same request")
    func stream() throws {
        let folder = TemporaryFolder.forTest()
        let (form, body) = try mixed(folder)
        let urlRequest = try form.request.urlRequest()
        #expect(urlRequest.httpBody == nil)
        #expect(urlRequest.value(forHTTPHeaderField: "Content-Type") == form.contentType)
        let stream = try #require(urlRequest.httpBodyStream)
        for _ in 0..<2 {
            stream.open()
            #expect(stream.hasBytesAvailable)
            #expect(stream.streamError == nil)
            var read = Data()
            var room = [UInt8](repeating: 0, count: 10_000)
            while true {
                let count = stream.read(&room, maxLength: room.count)
                guard count > 0 else {
                    #expect(count == 0)
                    #expect(stream.streamStatus == .atEnd)
                    break
                }
                read += room.prefix(count)
            }
            #expect(read == body)
            stream.close()
            #expect(stream.read(&room, maxLength: 1) == -1)
        }
        var changed = urlRequest
        changed.setValue("1", forHTTPHeaderField: "X-Other")
        let again = Request(changed)
        #expect(try again.multipart?.body() == body)
        let encoded = try EncodedRequest.encoding(changed)
        #expect(!encoded.hasBodyStream)
        #expect(try encoded.bodySource?.read(in: 1000) == body)
        #expect(encoded.headers["X-Other"] == "1")
    }

    @Test(
        "A missing file, a folder, a FIFO or a URL that is not a file URL is an error that names the part")
    func unusable() throws {
        let folder = TemporaryFolder()
        let fifo = folder.url.appendingPathComponent("fifo")
        #expect(mkfifo(fifo.path, 0o600) == 0)
        let dangling = folder.url.appendingPathComponent("dangling")
        try FileManager.default.createSymbolicLink(
            at: dangling, withDestinationURL: folder.url.appendingPathComponent("nowhere"))
        var rows: [(URL, String)] = [
            (folder.url.appendingPathComponent("missing"), "No such file"), (folder.url, "a folder"),
            (fifo, "not a regular file"),
            (dangling, "No such file"), (folder.url.appendingPathComponent("a/b"), "No such file"),
            (URL(fileURLWithPath: "/dev/null"), "not a regular file"),
            (try #require(URL(string: "https://h/photo.png")), "URL"),
        ]
        // Files in /proc report a size of zero, because they are generated while they are read.
        let madeUp = URL(fileURLWithPath: "/proc/self/status")
        if FileManager.default.fileExists(atPath: madeUp.path) { rows.append((madeUp, "not a regular file")) }
        for (url, reason) in rows {
            let form = MultipartFormData.make { $0.append(file: url, name: "photo") }
            expectFailure(.encoding, naming: ["'photo'", reason]) { try form.request.encode() }
        }
        guard geteuid() != 0 else { return }  // root can read every file
        let secret = try folder.file("secret")
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: secret.path)
        expectFailure(.encoding, naming: ["'photo'", "Permission denied"]) {
            try MultipartFormData.make { $0.append(file: secret, name: "photo") }.request.encode()
        }
    }

    @Test("A file that changed after the request was encoded is an error")
    func changed() throws {
        let folder = TemporaryFolder()
        let changes: [(String, (URL) throws -> Void)] = [
            ("shrinks", { try Self.truncate($0, to: 100) }), ("grows", { try Self.truncate($0, to: 300_000) }),
            ("is replaced", { try Data(Self.content.reversed()).write(to: $0, options: .atomic) }),
            (
                "is touched",
                {
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 5)], ofItemAtPath: $0.path)
                }
            ),
            ("is removed", { try FileManager.default.removeItem(at: $0) }),
        ]
        for (what, change) in changes {
            let file = try folder.file("file", Self.content)
            let encoded = try MultipartFormData.make { $0.append(file: file, name: "photo") }.request.encode()
            let source = try #require(encoded.bodySource)
            #expect(try source.read(in: 65_536).count == source.count)
            try change(file)
            expectFailure(.encoding, naming: ["'photo'"], "\(what)") { try source.read(in: 65_536) }
            let stream = try #require(encoded.urlRequestValue.httpBodyStream)
            stream.open()
            var room = [UInt8](repeating: 0, count: 1000)
            #expect(stream.read(&room, maxLength: 1000) == -1)
            #expect(stream.streamStatus == .error)
            #expect(stream.streamError is WebServiceError)
        }
    }

    @Test(
        "A file that shrinks or grows while it is read is an error and does not end the body",
        arguments: [60_000, 200_001])
    func resized(to size: Int) throws {
        let folder = TemporaryFolder()
        let file = try folder.file("file", Self.content)
        let form = MultipartFormData.make { $0.append(file: file, name: "photo") }
        let reader = BodyReader(try #require(try form.request.encode().bodySource))
        var room = [UInt8](repeating: 0, count: 50_000)
        #expect(try room.withUnsafeMutableBytes { try reader.read(into: $0) } == 50_000)
        try Self.truncate(file, to: size)
        expectFailure(.encoding, naming: ["'photo'", "changed"]) {
            try room.withUnsafeMutableBytes { try reader.read(into: $0) }
        }
        #expect(reader.offset == 50_000)
    }

    @Test("A body whose length overflows Int is an error")
    func overflow() throws {
        var status = stat()
        status.st_mode = S_IFREG
        status.st_size = .max
        let file = BodySource.File(path: "/file", owner: "the part", status: FileStatus(status))
        var pieces = BodySource.Pieces()
        pieces.append(file)
        #expect(try pieces.source().count == .max)
        pieces.append(Data([1]))
        expectFailure(.encoding, naming: ["exceeds the range of Int"]) { try pieces.source() }
    }

    @Test("The curl command of a body with files reads the files unless it is redacted")
    func curlDescription() throws {
        let folder = TemporaryFolder()
        let file = try folder.file("it's", Self.content)
        let form = MultipartFormData.make { $0.append(file: file, name: "a", contentType: "a/b") }
        let text = form.request.curlDescription(redaction: nil)
        let quoted = "'\(file.path.replacingOccurrences(of: "'", with: #"'\''"#))'"
        let head = #"--\#(form.boundary)\015\012Content-Disposition: form-data; name="a"; filename="it\047s""#
        let open = #"{ printf -- '\#(head)\015\012Content-Type: a/b\015\012\015\012'; "#
        let command = open + #"cat \#(quoted); printf -- '\015\012--\#(form.boundary)--\015\012'; } | curl "#
        #expect(text.hasPrefix(command))
        #expect(text.contains("--data-binary '@-'"))
        #expect(text.contains("--header 'Content-Type: \(form.contentType)'"))
        #expect(text.contains("--header 'Expect:'"))
        let redacted = form.request.curlDescription()
        #expect(redacted.contains("--data-binary '[redacted]'"))
        #expect(!redacted.contains("it"))
        #expect(!redacted.contains("cat"))
    }

    private static func truncate(_ file: URL, to size: off_t) throws {
        #if canImport(Darwin)
        try #require(Darwin.truncate(file.path, size) == 0)
        #else
        try #require(Glibc.truncate(file.path, size) == 0)
        #endif
    }
}
