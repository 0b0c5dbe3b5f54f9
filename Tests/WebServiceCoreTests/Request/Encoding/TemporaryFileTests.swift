import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Bodies in temporary files", .permit)
struct TemporaryFileTests {
    @Test(
        "A body is written to an unnamed temporary file, and writing stops when it is cancelled"
    )
    func temporaryFile() throws {
        let folder = TemporaryFolder()
        let form = try MultipartFormData.make {
            $0.append(file: try folder.file("file", Data(count: 1 << 20)), name: "photo")
        }
        let source = try #require(try form.request.encode().bodySource)
        let place = folder.url.appendingPathComponent("place")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        var names: [String] = []
        var pieces = 0
        func look(_ isWanted: Bool) -> Bool {
            pieces += 1
            // An error adds a name, which fails the test.
            names += (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? ["?"]
            return isWanted
        }
        let body = try source.read(in: 1000)
        #expect(try TemporaryFile.mapping(source, in: place) { look(true) } == body)
        #expect(pieces > 4)
        #expect(names.isEmpty)
        pieces = 0
        expectFailure(.encoding, naming: ["was cancelled"]) {
            try TemporaryFile.mapping(source, in: place) { look(pieces < 2) }
        }
        #expect(pieces == 3)
        try FileHandle(forWritingTo: folder.url.appendingPathComponent("file")).truncate(atOffset: 5)
        expectFailure(.encoding, naming: ["'photo'"]) { try TemporaryFile.mapping(source, in: place) }
        #expect(!look(false))
        #expect(names.isEmpty)
        expectFailure(.encoding, naming: ["temporary file"]) {
            try TemporaryFile.mapping(source, in: place.appendingPathComponent("missing"))
        }
    }

    #if os(Linux)
    @Test(
        "A full disk while a body is written is an error, and the space is released",
        .enabled(if: SmallDisk.canMount, "requires the privilege to mount a file system"),
        arguments: [100_000, 200_000, 1 << 20])
    func fullDisk(count: Int) throws {
        let disk = try #require(SmallDisk(kilobytes: 64))
        let place = disk.url
        defer { withExtendedLifetime(disk) {} }
        let folder = TemporaryFolder()
        func body(_ count: Int) throws -> BodySource {
            let form = try MultipartFormData.make {
                $0.append(file: try folder.file("file\(count)", Data(count: count)), name: "photo")
            }
            return try #require(try form.request.encode().bodySource)
        }
        for _ in 0..<3 {
            let error = #expect(throws: WebServiceError.self) { try TemporaryFile.mapping(body(count), in: place) }
            #expect(error?.code == .encoding)
            #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
            #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
        }
        let small = try body(40_000)
        #expect(try TemporaryFile.mapping(small, in: place) == small.read(in: 1000))
    }
    #endif

    @Test(
        "A task cancelled before its body is written ends as cancelled without starting, even if the file is missing",
        arguments: [false, true])
    func cancelled(isGone: Bool) async throws {
        let folder = TemporaryFolder()
        let file = try folder.file("file", Data(count: 200_000))
        let task = Mutex<ResumableDataTask?>(nil)
        let request = try MultipartFormData.make { $0.append(file: file, name: "photo") }.request.urlRequest()
        let started = Mutex(0)
        let error = await withCheckedContinuation { continuation in
            let cancelling = Preparing(urlRequestValue: request) {
                if isGone { try FileManager.default.removeItem(at: file) }
                task.withLock { $0 }?.cancel()
            }
            let resumed = ResumableDataTask(request: cancelling) {
                continuation.resume(returning: $2)
            } start: { _, _ in
                started.withLock { $0 += 1 }
            }
            task.withLock { $0 = resumed }
            resumed.resume()
        }
        #expect((error as? URLError)?.code == .cancelled)
        #expect(started.withLock { $0 } == 0)
        task.withLock { $0 = nil }
    }
}

/// A request that calls a closure when it is encoded.
private struct Preparing: URLRequestEncodable {
    let urlRequestValue: URLRequest
    let prepare: @Sendable () throws -> Void

    func urlRequest() throws -> URLRequest {
        try prepare()
        return urlRequestValue
    }
}
