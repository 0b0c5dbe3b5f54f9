import Foundation
import SystemCrypto
import WebServiceCore
import WebServiceFields

/// The creation of an upload on the server.
extension UploadTransfer {
    // MARK: Draft

    /// Creates an upload of the draft.
    ///
    /// A file that needs several requests is sent in pieces only if the server supports the draft.
    /// Otherwise, one request contains the whole file, as an ordinary request does, and a server
    /// that supports the draft can respond with an interim head.
    mutating func createDraft() async throws -> Step {
        if capabilities == nil {
            if source.length <= preferredPiece {
                capabilities = .ordinary
            } else if sendsOptions {
                try await discoverDraft()
            } else {
                capabilities = .firstPieceAtCreation
            }
        }
        let isWhole = capabilities == .ordinary
        let range = 0..<(isWhole ? source.length : min(source.length, try pieceSize()))
        var request = work.request
        request.uploadsPart = true
        requests.addVersion(to: &request)
        let isLast = range.upperBound == source.length
        request.headers["Upload-Complete"] = isLast ? "?1" : "?0"
        request.headers["Upload-Length"] = "\(source.length)"
        if !isWhole || source.length <= preferredPiece { try extendContent(to: range.upperBound) }
        if isWhole {
            isOpenedAgain = true
        } else {
            request.headers["Content-Digest"] = nil  // that of the whole file
            request.content = source.body(range, contentType: source.contentType)
        }
        let (response, interim) = try await sendCreation(request)
        if response.status == 413 {
            try await reduceCreation(range, response)
            return .incomplete
        }
        let isComplete = response.headers.uploadComplete
        let final = response.head?.locations ?? []
        if isComplete == true, !isLast { throw earlyCompletion(response) }
        if isComplete ?? isLast { return .complete(response) }
        try note(response.headers)
        let location = try final.isEmpty ? nil : requests.location(final, from: response.head?.url ?? requests.url)
        guard let created = location ?? interim, interim ?? created == created else {
            isUnusable = interim != nil
            throw violation("the server returned no URL of the upload, or two different URLs", response)
        }
        if created != interim { try self.created(created) }
        let new = requests.offset(in: response.headers) ?? range.upperBound
        guard new <= range.upperBound else { throw wrongOffset(response) }
        try accept(new, response)
        fruitless.add(acknowledged, isWhole: true, now: work.clock.now)
        if isLast { offset = nil }
        meter.begin(acknowledged)
        return .incomplete
    }

    /// Sends the request that creates the upload, and stores the URL that an interim head contains
    /// while the request is sent.
    ///
    /// - Returns: The response and the URL in the interim head, if there was one.
    private mutating func sendCreation(_ request: Request) async throws -> (Response, interim: String?) {
        let (heads, continuation) = AsyncStream.makeStream(of: ResponseHead.self, bufferingPolicy: .bufferingOldest(1))
        let interim = UploadInterim(length: source.length) { continuation.yield($0) }
        async let reply = { [work, meter, isOver] in
            defer { continuation.finish() }
            return try await work.send(
                request, accepting: { Self.isContinued($0, orOver: isOver) && $0.status == 413 },
                progress: meter.receiver(from: 0), interim: { try interim.receive($0) })
        }()
        for await head in heads {
            try note(head.headers)
            try created(try requests.location(head.locations, from: head.url))
        }
        do {
            return (try await reply, state.location)
        } catch let error as WebServiceError where error.code == .upload {
            isUnusable = state.location != nil
            throw error
        }
    }

    /// Asks the server whether it supports the draft, and for its limits.
    private mutating func discoverDraft() async throws {
        var request = requests.bare(.OPTIONS)
        requests.addVersion(to: &request)
        let response = try await work.send(request, accepting: { _ in true })
        capabilities = .ordinary
        let found = UploadLimits(response.headers)
        // A server without limits declares only the media type of pieces.
        guard response.isSuccess, found != nil || response.headers.acceptsPartialUpload else { return }
        limits = found ?? UploadLimits()
        if limits.minimumSize ?? 0 <= source.length { capabilities = .firstPieceAtCreation }
        _ = try pieceSize()
    }

    /// Sends the file in smaller pieces after a response with status 413.
    private mutating func reduceCreation(_ range: Range<Int64>, _ response: Response) async throws {
        if sendsOptions, UploadLimits(response.headers) == nil, limits == UploadLimits() {
            try await discoverDraft()
            guard capabilities != .ordinary else { throw WebServiceError.unacceptable(response, work.request) }
        }
        try reducePiece(range, response)
        _ = try pieceSize()
        capabilities = .firstPieceAtCreation
    }

    // MARK: tus

    /// Creates an upload of tus, or sends an ordinary request if the server does not support tus.
    mutating func createTus() async throws -> Step {
        if capabilities == nil { if sendsOptions { try await discoverTus() } else { capabilities = .pieces } }
        guard capabilities != .ordinary else { return try await sendOrdinary() }
        let piece = try pieceSize()
        let hasContent = capabilities == .firstPieceAtCreation && source.length > 0
        let range = 0..<(hasContent ? min(source.length, piece) : 0)
        var request = work.request
        request.method = .POST
        request.uploadsPart = true
        requests.addVersion(to: &request)
        request.headers["Upload-Length"] = "\(source.length)"
        request.headers[.contentType] = nil
        request.headers["Content-Digest"] = nil
        if let metadata { request.headers["Upload-Metadata"] = metadata }
        try extendContent(to: range.upperBound)
        request.content = hasContent ? source.body(range, contentType: Self.tusContentType) : .none
        let response = try await work.send(request, accepting: { _ in false }, progress: meter.receiver(from: 0))
        try note(response.headers)
        try created(try requests.location(response.head?.locations ?? [], from: response.head?.url ?? requests.url))
        let found = hasContent ? requests.offset(in: response.headers) : 0
        guard found ?? 0 <= range.upperBound else {
            throw violation("the server returned a wrong offset after a piece", response)
        }
        try accept(found ?? 0, response)
        if found == source.length { return .complete(response) }
        fruitless.add(acknowledged, isWhole: true, now: work.clock.now)
        if found == nil { offset = nil }
        return .incomplete
    }

    /// Sends the request of the task to a server that has not declared that it supports tus.
    ///
    /// A tus server that OPTIONS requests do not reach rejects that request with status 412.
    private mutating func sendOrdinary() async throws -> Step {
        let isRejected = { (response: Response) in
            response.status == 412 && Self.versions(response.headers).contains("1.0.0")
        }
        let response = try await work.send(work.request, accepting: isRejected, progress: meter.receiver(from: 0))
        guard isRejected(response) else { return .complete(response) }
        work.record(.retry, "the server requires tus (status 412), so the file is sent in pieces")
        capabilities = .pieces
        meter.begin(0)
        return .incomplete
    }

    private static func versions(_ headers: Headers) -> [String] {
        headers.tusList(headers["Tus-Version"] == nil ? "Tus-Resumable" : "Tus-Version")
    }

    /// Returns whether a status means that the server does not support OPTIONS. The upload then
    /// continues without OPTIONS.
    private static func refusesOptions(_ status: Int) -> Bool {
        status == 501 || (400..<500).contains(status) && ![401, 407, 408, 421, 423, 425, 429].contains(status)
    }

    /// Asks the server for its version, its extensions and its limit.
    private mutating func discoverTus() async throws {
        let response = try await work.send(
            requests.bare(.OPTIONS), accepting: { Self.refusesOptions($0.status) })
        let versions = Self.versions(response.headers)
        guard response.isSuccess, versions.contains("1.0.0") else { return capabilities = .ordinary }
        let extensions = response.headers.tusList("Tus-Extension")
        guard extensions.isEmpty || extensions.contains("creation") else {
            throw violation("the server does not support the tus extension 'creation'", response)
        }
        limits.maximumSize = response.headers.tusInteger("Tus-Max-Size")
        if extensions.contains("checksum") {
            let names = response.headers.tusList("Tus-Checksum-Algorithm")
            state.checksum = HashFunction.preferred(in: names)?.rawValue
        }
        // A checksum is defined only for a piece that is appended.
        capabilities =
            extensions.contains("creation-with-upload") && state.checksum == nil ? .firstPieceAtCreation : .pieces
    }
}

/// The interim heads of the request that creates an upload of the draft.
final class UploadInterim: Sendable {
    private let length: Int64
    private let location = Mutex<String?>(nil)
    private let onLocation: @Sendable (ResponseHead) -> Void

    /// - Parameters:
    ///   - length: The length of the file.
    ///   - onLocation: A closure that is called with the first head that contains the URL of the
    ///     upload.
    init(length: Int64, onLocation: @escaping @Sendable (ResponseHead) -> Void) {
        (self.length, self.onLocation) = (length, onLocation)
    }

    /// Receives an interim head, on a thread of the session.
    ///
    /// - Throws: `WebServiceError.Code.upload` if the limits of the server exclude the file, or if
    ///   the server returns a second URL. The request then ends.
    func receive(_ head: ResponseHead) throws {
        let headers = head.headers
        guard head.status == 104,
            headers.uploadInteger("Upload-Draft-Interop-Version") == UploadRequests.interopVersion
        else { return }
        if let value = headers[.location] {
            let first = location.withLock { location -> String? in
                defer { location = location ?? value }
                return location
            }
            if first == nil { onLocation(head) }
            if first ?? value != value {
                throw WebServiceError(.upload, "the server returned two different URLs for the upload")
            }
        }
        _ = try UploadLimits(headers)?.piece(of: length, preferred: length)
    }
}
