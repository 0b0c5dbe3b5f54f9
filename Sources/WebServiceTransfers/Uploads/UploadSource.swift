import Foundation
import WebServiceCore

/// The file that is uploaded, open for reading.
final class UploadSource: Sendable {
    /// The number of bytes at the start of the file whose hash identifies the file.
    static let prefixLength = 64 << 10
    /// The number of bytes that are read at a time.
    static let chunkLength = 64 << 10

    let url: URL
    let contentType: String?
    let length: Int64
    private let file: Descriptor
    private let status: FileStatus
    /// The date of the last change of the file or of its status when it was opened.
    private let changed: Double

    init(_ url: URL, contentType: String?) throws(WebServiceError) {
        let path = url.path
        (self.url, self.contentType) = (url, contentType)
        do throws(SystemFailure) {
            file = try Self.open(path)
            let change = try file.change()
            (status, changed) = (change.status, change.date)
        } catch {
            throw Self.unreadable(path, error)
        }
        guard status.isRegular else {
            throw WebServiceError(.upload, "'\(path.escapingControls)' is not a regular file; pass a regular file")
        }
        length = Int64(status.size)
    }

    /// Returns the state of an upload of the file that has not begun.
    ///
    /// - Parameter request: The hash of the request.
    func state(request: String) throws(WebServiceError) -> UploadState {
        let prefix = UploadState.hash(try bytes(0..<min(length, Int64(Self.prefixLength))))
        return UploadState(
            request: request, size: length, modified: status.modified.timeIntervalSince1970, changed: changed,
            prefix: prefix)
    }

    /// Returns a body that reads a range of the file while the range is sent.
    func body(_ range: Range<Int64>, contentType: String?) -> Request.Body {
        if range.isEmpty { return .data(Data(), contentType: contentType) }
        return .stream(length: Int64(range.count), contentType: contentType) { UploadChunks(self, range) }
    }

    /// Returns the bytes of a short range.
    ///
    /// - Throws: `WebServiceError.Code.upload` if the file cannot be read or has changed.
    func bytes(_ range: Range<Int64>) throws(WebServiceError) -> Data {
        var bytes = Data(count: range.count)
        let (count, now): (Int, FileStatus)
        do {
            count = try bytes.withUnsafeMutableBytes { try file.fill($0, at: range.lowerBound) }
            now = try file.status()
        } catch {
            throw Self.unreadable(url.path, error as? SystemFailure ?? SystemFailure(call: "read", number: EIO))
        }
        guard count == range.count, now == status else { throw isChanged }
        return bytes
    }

    /// Returns whether the file begins with the bytes of a hash.
    ///
    /// - Throws: `WebServiceError.Code.upload`, and `CancellationError` if the Swift task is
    ///   cancelled.
    func begins(with hash: ContentHash) throws -> Bool {
        guard hash.length <= length else { return false }
        var found = ContentHash()
        try extend(&found, to: hash.length)
        return found == hash
    }

    /// Extends a hash of the first bytes of the file.
    func extend(_ hash: inout ContentHash, to end: Int64) throws {
        try hash.extend(to: end) { range in
            try Task.checkCancellation()
            return try bytes(range)
        }
    }

    /// Verifies that the path still refers to the file, and that no program has written to it.
    ///
    /// - Parameter mayBeRemoved: Whether the path may refer to no file.
    /// - Returns: The date of the last change of the file or of its status. If this date differs
    ///   from that of the state, the content may have changed.
    /// - Throws: `WebServiceError.Code.upload`.
    func verify(mayBeRemoved: Bool) throws(WebServiceError) -> Double {
        let found: FileChange
        do throws(SystemFailure) {
            if let now = try FileChange(path: url.path) {
                found = now
            } else {
                guard mayBeRemoved else { throw SystemFailure(call: "stat", number: ENOENT) }
                found = try file.change()
            }
        } catch {
            throw Self.unreadable(url.path, error)
        }
        guard found.status == status else { throw isChanged }
        return found.date
    }

    var isChanged: WebServiceError {
        WebServiceError(
            .upload,
            "the file '\(url.path.escapingControls)' changed while it was uploaded; upload it again when it is complete"
        )
    }

    /// Calls a closure with the bytes of a range, in chunks.
    func forEachChunk(_ range: Range<Int64>, _ body: (Data) -> Void) throws {
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let end = min(range.upperBound, offset + Int64(Self.chunkLength))
            body(try bytes(offset..<end))
            offset = end
        }
    }

    private static func open(_ path: String) throws(SystemFailure) -> Descriptor {
        try Descriptor("open") { systemOpen(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
    }

    private static func unreadable(_ path: String, _ failure: SystemFailure) -> WebServiceError {
        failure.error(.upload, "the file '\(path.escapingControls)' could not be read")
    }
}

/// The bytes of a range of the file.
struct UploadChunks: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private let source: UploadSource
    private var range: Range<Int64>

    init(_ source: UploadSource, _ range: Range<Int64>) {
        (self.source, self.range) = (source, range)
    }

    func makeAsyncIterator() -> UploadChunks { self }

    mutating func next() async throws -> Data? {
        guard !range.isEmpty else { return nil }
        let end = Swift.min(range.upperBound, range.lowerBound + Int64(UploadSource.chunkLength))
        defer { range = end..<range.upperBound }
        return try source.bytes(range.lowerBound..<end)
    }
}

/// Calls `open(2)`, for use where a member shadows that function.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
