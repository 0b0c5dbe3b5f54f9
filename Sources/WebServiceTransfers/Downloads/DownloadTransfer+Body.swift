import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The bodies of the responses, and the end of the download.
extension DownloadTransfer {
    /// Prepares the file for a whole representation.
    ///
    /// - Parameter total: The length of the file; `nil` if it is unknown.
    mutating func beginWholeFile(
        _ head: DownloadPlan.Head, of total: Int64?, _ plan: DownloadPlan, _ file: PartFile
    ) throws {
        if plan.offset ?? 0 > 0 || length > 0 || needsWholeFile { restarts += 1 }
        try begin(head.isTransformed ? [:] : head.headers, total: total, file)
        meter.begin(0, of: total)
    }

    /// Receives the first part of a file. If the file is long enough, several connections download
    /// the rest.
    ///
    /// - Parameter total: The length of the file; `nil` if it is unknown.
    mutating func receiveFirst(
        _ range: ClosedRange<Int64>, of total: Int64?, in response: StreamedResponse, _ file: PartFile
    ) async throws -> Pass {
        if length > 0 { restarts += 1 }
        try begin(response.headers, total: total, file)
        meter.begin(0, of: total)
        guard var state, state.validator != nil else {
            // Without a validator, other parts cannot be joined with this part.
            guard range.upperBound + 1 == total else { return requestWholeFile("the part has no strong validator") }
            connections = 1
            return try await receive(range, of: response, file)
        }
        guard let total, total >= 5 * PieceMap.minimumLength else {
            return try await receive(range, of: response, file)
        }
        let map = PieceMap(total: total)
        state.pieces = map
        try file.store(state)
        self.state = state
        return try await receivePieces(of: state, map, first: (response, range))
    }

    /// Prepares the file for a part of a representation.
    ///
    /// - Parameter total: The length of the file; `nil` if it is unknown.
    mutating func beginPart(of total: Int64?, _ file: PartFile) throws {
        if isFirstBody { resumedFrom = length }
        state?.total = total
        if let total { try checkLength(total, file) }
        meter.begin(length, of: total)
    }

    /// Discards all bytes, and stores the state of the bytes that follow.
    private mutating func begin(_ headers: Headers, total: Int64?, _ file: PartFile) throws {
        try file.truncate(to: 0)
        (length, resumedFrom, needsWholeFile) = (0, 0, false)
        var new = DownloadState(url: url, headers: headers, total: total)
        if work.request.method != .GET { (new.eTag, new.lastModified) = (nil, nil) }
        if let total { try checkLength(total, file) }
        try file.store(new)
        state = new
    }

    /// Throws an error if the file is too long for the limit of the request or for the disk.
    private func checkLength(_ total: Int64, _ file: PartFile) throws {
        if let maximum = work.request.options.maximumResponseBytes, total > maximum {
            throw WebServiceError.tooLarge(maximum, work.request, nil)
        }
        try file.reserve(total - length)
    }

    /// Writes a body to the file.
    ///
    /// - Parameter range: The positions of the body's bytes; `nil` for a whole representation.
    mutating func receive(
        _ range: ClosedRange<Int64>?, of response: StreamedResponse, _ file: PartFile
    ) async throws -> Pass {
        let (start, retained) = (range?.lowerBound ?? 0, length)
        let last = range?.upperBound ?? state?.total.map { $0 - 1 }
        var position = start
        var bytes = response.body.makeAsyncIterator()
        while let chunk = try await next(&bytes) {
            let known = Int(clamping: min(Int64(chunk.count), max(0, length - position)))
            if known > 0, try !chunk.prefix(known).withUnsafeBytes({ try file.contains($0, at: position) }) {
                return requestWholeFile("the part differs from the existing bytes")
            }
            let new = chunk.dropFirst(known)
            position += Int64(chunk.count)
            guard position - 1 <= last ?? .max else {
                // The preceding bytes may belong to another file.
                try file.truncate(to: retained)
                length = retained
                throw WebServiceError(
                    .download, "the server sent more bytes than it announced; download the file again")
            }
            try write(new, to: file)
            try await meter.add(new.count)
        }
        guard position > last ?? -1 else {
            throw Interruption(underlying: URLError(.networkConnectionLost))
        }
        return try receivedBody(of: response, start..<position, isWhole: range == nil, file)
    }

    private func next(_ bytes: inout ResponseBody.AsyncIterator) async throws -> Data? {
        do { return try await bytes.next() } catch { throw Interruption(underlying: error) }
    }

    /// Writes bytes at the end of the file. After an error, the file contains only the bytes of
    /// earlier calls.
    private mutating func write(_ bytes: Data, to file: PartFile) throws {
        do {
            try bytes.withUnsafeBytes { try file.write($0, at: length) }
        } catch {
            try? file.truncate(to: length)  // the first error counts
            throw error
        }
        length += Int64(bytes.count)
    }

    private mutating func receivedBody(
        of response: StreamedResponse, _ range: Range<Int64>, isWhole: Bool, _ file: PartFile
    ) throws -> Pass {
        let trailers = response.body.trailers ?? [:]
        if !DownloadPlan.Head(response).isEncoded {
            if let digest = response.headers["Content-Digest"] ?? trailers["Content-Digest"] {
                try verify(DigestField.digests(digest), range, file)
            }
            if state?.digest == nil { state?.digest = response.headers["Repr-Digest"] ?? trailers["Repr-Digest"] }
        }
        return isWhole || length == state?.total ? .complete(response.response) : .incomplete
    }

    // MARK: The end

    private func verify(_ digests: [SHA2: [UInt8]], _ range: Range<Int64>, _ file: PartFile) throws {
        for (algorithm, digest) in digests where try file.hash(algorithm, of: range) != digest {
            try file.discard()
            throw WebServiceError(
                .digestMismatch,
                "the \(algorithm.rawValue) hash of the file does not match the expected hash; download the file again")
        }
    }

    func finish(_ response: Response) throws -> DownloadedFile {
        guard let file, let destination else { throw URLError(.unknown) }  // unreachable: a pass opened the file
        guard try file.length() == length else {
            try file.discard()
            throw WebServiceError(
                .download, "another program changed the partial file during the download; download the file again")
        }
        if let checksum = options.checksum, let hash = checksum.hash {
            try verify([checksum.algorithm: hash], 0..<length, file)
        }
        if let digest = state?.digest { try verify(DigestField.digests(digest), 0..<length, file) }
        let name = try file.finish(
            replaces: options.existing != .fail && preferredName == nil, otherNames: names,
            synchronize: options.synchronizes)
        return DownloadedFile(
            url: destination.named(name).url, byteCount: length, resumedFrom: resumedFrom, restarts: restarts,
            response: response)
    }
}
