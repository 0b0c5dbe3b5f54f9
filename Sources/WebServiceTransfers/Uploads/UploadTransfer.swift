import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The upload of a file by successive requests, until the server has the whole file.
///
/// Each step creates the upload on the server, asks for its offset, or appends a piece.
/// `UploadTransfer+Creation.swift` contains the creation, `UploadRequests.swift` the requests and
/// fields in which the protocols differ, and `UploadTransfer+File.swift` the detection of changes
/// to the file.
struct UploadTransfer {
    /// The maximum number of times that an upload starts over.
    static let maximumRestarts = 3

    let requests: UploadRequests
    var work: TaskWork { requests.work }
    var `protocol`: UploadProtocol { requests.protocol }
    let source: UploadSource
    let file: UploadStateFile
    let meter: TransferMeter
    let preferredPiece: Int64
    /// The value of `Upload-Metadata`; `nil` if the caller has passed none.
    let metadata: String?
    /// Whether the server may be asked for its capabilities.
    let sendsOptions: Bool
    /// Whether the caller has passed the URL of the upload. If so, only the caller may create
    /// another upload or end this one.
    let isGiven: Bool
    /// Whether the state is already stored when the transfer begins.
    private var isStored = false

    var state: UploadState
    var limits: UploadLimits {
        get { state.limits }
        set { state.limits = newValue }
    }
    /// The number of bytes that the server has; `nil` if the server must be asked for it.
    var offset: Int64?
    /// The largest offset that the server has returned.
    var acknowledged: Int64 = 0
    /// The maximum size of a piece after the server has rejected a larger one.
    var reducedPiece: Int64?
    /// The capabilities of the server; `nil` before the server was asked for them.
    var capabilities: Capabilities?
    /// Whether the server of tus does not know the length yet.
    var isLengthDeferred = false
    /// The number of bytes that the server had from an earlier upload; `nil` before the server was
    /// asked for it.
    var resumedFrom: Int64?
    var restarts = 0
    /// Set when the upload cannot be completed, for example because the resource that processes the
    /// whole file has responded with an error.
    let isOver = OnceFlag()
    /// Whether the server has created an upload that cannot be continued. The upload is then ended
    /// on the server.
    var isUnusable = false
    /// Whether a session has opened the file by its path, which may have referred to another file.
    var isOpenedAgain = false
    var fruitless: FruitlessRequests
    /// The number of bytes, from the start of the file, that are known to be those that were sent.
    /// The limit applies only to an upload that was created earlier.
    var verified = Int64.max

    init(_ work: TaskWork, _ options: UploadOptions) throws {
        requests = try UploadRequests(work, options.protocol)
        metadata = try options.metadataField()
        preferredPiece = Int64(max(1, options.pieceSize))
        (sendsOptions, isGiven) = (options.sendsOptions, options.location != nil)
        let given = try options.location.map { [requests] in
            try requests.location([$0.absoluteString], from: requests.url)
        }
        source = try UploadSource(
            requests.file, contentType: work.request.headers[.contentType] ?? requests.contentType)
        let listing = requests.listing
        meter = TransferMeter(work, .upload, of: source.length)
        fruitless = FruitlessRequests(now: work.clock.now)
        state = try source.state(request: listing.request)
        state.listing = listing
        file = try UploadStateFile(requests.file, in: options.folder, request: listing.request)
        if let stored = file.stored(), !isGiven || stored.location == given {
            let isSame = try resume(stored)
            if isGiven, !isSame {
                throw WebServiceError(
                    .upload, "the file has changed since its upload began; create another upload for it")
            }
            isStored = stored == state
        }
        if let given { state.location = given }
    }

    /// The capabilities of a server, which determine the request that creates the upload.
    enum Capabilities: Equatable {
        /// The server does not support the protocol, or it is unknown whether it does. The whole
        /// file is sent in one request.
        case ordinary
        /// The file is sent in pieces.
        case pieces
        /// The file is sent in pieces, the first of them in the request that creates the upload.
        case firstPieceAtCreation

        /// Whether the file is sent in pieces. The first piece may be the whole file.
        var isPartial: Bool { self != .ordinary }
    }

    // MARK: Steps

    /// The result of a request and its response.
    enum Step {
        case complete(Response)
        /// Further requests are needed.
        case incomplete
    }

    /// Sends requests until the server has the whole file, and removes the state.
    mutating func run() async throws -> UploadedFile {
        if let expires = state.expires, expires <= work.clock.date, !isGiven { try startOver("the upload has expired") }
        // If the folder cannot be written, the task fails before a request is sent.
        if !isStored { try file.store(state) }
        while true {
            try await work.permission()
            if case .complete(let response) = try await step() { return try finish(response) }
        }
    }

    /// Executes one step, and pauses after an error that the `RetryPolicy` retries.
    private mutating func step() async throws -> Step {
        do {
            guard let location = state.location else { return try await create() }
            guard let offset else { return try await retrieveOffset(location) }
            return try await append(location, offset)
        } catch {
            offset = nil
            if isUnusable, !isGiven { _ = try? await requests.end(state.location, file) }  // the first error counts
            if isOver.isSet || isUnusable { try file.remove() }
            fruitless.add(acknowledged, countsAgain: true, now: work.clock.now)
            // Without an upload on the server, a request for the whole file may have had an effect.
            let isWhole = try capabilities == .firstPieceAtCreation && pieceSize() >= source.length
            let isIdempotent = state.location != nil || capabilities?.isPartial == true && !isWhole
            // A tus upload whose first piece is the whole file is created with POST, regardless of
            // the method of the task.
            guard !isOver.isSet, !isUnusable, isIdempotent || !isWhole || `protocol` == .draft,
                let pause = work.pauseToContinue(
                    after: Self.isLocked(error) ? URLError(.networkConnectionLost) : error, attempt: fruitless.attempt,
                    spent: fruitless.spent(work.clock.now),
                    isIdempotent: isIdempotent)
            else { throw error }
            let requested = (error as? WebServiceError)?.retryAfter(now: work.clock.date) ?? .zero
            try await work.pause(for: max(pause, requested))
            return .incomplete
        }
    }

    /// Returns whether a server rejects a request because it has not yet detected that an earlier
    /// connection was lost.
    private static func isLocked(_ error: any Error) -> Bool { (error as? WebServiceError)?.status == 423 }

    private mutating func create() async throws -> Step {
        switch `protocol` {
        case .draft: try await createDraft()
        case .tus: try await createTus()
        }
    }

    /// Requests the offset from the server.
    private mutating func retrieveOffset(_ location: String) async throws -> Step {
        var request = try requests.resource(.HEAD, location)
        request.options.cachePolicy = .reloadIgnoringLocalCacheData
        let response = try await work.send(request, accepting: { requests.missing.contains($0.status) })
        if requests.missing.contains(response.status) {
            try startOver("the server no longer has the upload (status \(response.status))", response)
            return .incomplete
        }
        if let length = requests.length(in: response.headers), length != source.length {
            try startOver("the upload on the server has another length")
            return .incomplete
        }
        guard let found = requests.offset(in: response.headers) else {
            throw violation("the server returned no valid offset of the upload", response)
        }
        guard found <= verified else {
            try startOver("the file may have changed since the upload was interrupted")
            return .incomplete
        }
        try note(response.headers)
        try accept(found, response)
        isLengthDeferred = `protocol` == .tus && response.headers["Upload-Defer-Length"] == "1"
        if resumedFrom == nil {
            resumedFrom = found
            fruitless.add(found, isWhole: true, now: work.clock.now)
        }
        meter.begin(found)
        return try completed(by: response, at: found) ? .complete(response) : .incomplete
    }

    /// Returns whether the server has completed the upload.
    private func completed(by response: Response, at offset: Int64) throws -> Bool {
        switch `protocol` {
        case .tus: return offset == source.length && !isLengthDeferred
        case .draft:
            guard response.headers.uploadComplete == true else { return false }
            guard offset == source.length else { throw earlyCompletion(response) }
            return true
        }
    }

    /// Appends the next piece.
    private mutating func append(_ location: String, _ offset: Int64) async throws -> Step {
        try verify()
        let range = offset..<(offset + min(source.length - offset, try pieceSize()))
        try extendContent(to: range.upperBound)
        let request = try await appending(range, at: location)
        meter.begin(offset)
        let response = try await work.send(
            request,
            accepting: { Self.isContinued($0, orOver: isOver) || $0.status == 403 && `protocol` == .tus },
            progress: meter.receiver(from: offset))
        switch response.status {
        case 403:
            // tus defines this status of a missing upload only for HEAD.
            _ = try await retrieveOffset(location)
            guard state.location == nil else {
                throw work.mappedError(for: response) ?? WebServiceError.unacceptable(response, work.request)
            }
        case 404, 410:
            try startOver("the server no longer has the upload (status \(response.status))", response)
        case 413:
            self.offset = nil
            try reducePiece(range, response)
        case 409, 460:
            work.record(.retry, "the server rejected the piece (status \(response.status)); the offset is requested")
            self.offset = nil
            try stall(isWhole: false, response)
        default:
            try note(response.headers)
            return try appended(range, response)
        }
        return .incomplete
    }

    /// Returns whether the upload continues after an error status.
    ///
    /// - Parameter isOver: Set for an error of the resource that processes the whole file.
    static func isContinued(_ response: Response, orOver isOver: OnceFlag) -> Bool {
        if response.headers.uploadComplete == true, !response.isSuccess {
            _ = isOver.set()
            return false
        }
        return [404, 409, 410, 413, 460].contains(response.status)
    }

    /// Uses the response to a piece that was appended.
    private mutating func appended(_ range: Range<Int64>, _ response: Response) throws -> Step {
        let found = requests.offset(in: response.headers)
        switch `protocol` {
        case .draft:
            // A response without the field does not complete the upload, even after the last piece.
            let isLast = range.upperBound == source.length
            if response.headers.uploadComplete == true {
                guard isLast else { throw earlyCompletion(response) }
                return .complete(response)
            }
            let new = found ?? range.upperBound
            guard new <= range.upperBound else { throw wrongOffset(response) }
            try accept(new, response)
            if isLast, new == source.length { offset = nil }
            try stall(isWhole: new >= range.upperBound && !(isLast && range.isEmpty), response)
        case .tus:
            guard let new = found, new <= range.upperBound else { throw wrongOffset(response) }
            try accept(new, response)
            isLengthDeferred = false
            if new == source.length { return .complete(response) }
            try stall(isWhole: new == range.upperBound, response)
        }
        return .incomplete
    }

    /// Ends the upload, because the server cannot have the whole file.
    func earlyCompletion(_ response: Response) -> WebServiceError {
        _ = isOver.set()
        return violation("the server completed the upload before it had the whole file", response)
    }

    func wrongOffset(_ response: Response) -> WebServiceError {
        violation("the server returned a wrong offset after a piece", response)
    }

    // MARK: State

    /// Sets the offset that the server has returned.
    ///
    /// - Throws: `WebServiceError.Code.upload` if the offset is beyond the end of the file or below
    ///   an earlier offset.
    mutating func accept(_ new: Int64, _ response: Response) throws {
        guard new <= source.length else {
            isUnusable = true
            throw violation("the server returned an offset beyond the end of the file", response)
        }
        guard new >= acknowledged else {
            throw violation("the server returned an offset below an earlier one", response)
        }
        (offset, acknowledged) = (new, new)
    }

    /// Counts a request that did not complete the upload.
    mutating func stall(isWhole: Bool, _ response: Response) throws {
        fruitless.add(acknowledged, isWhole: isWhole, countsAgain: true, now: work.clock.now)
        guard fruitless.count < FruitlessRequests.maximum else {
            throw violation(
                "\(FruitlessRequests.maximum) consecutive requests made no progress; try again later", response)
        }
    }

    /// Discards the state of the upload, so that the next request creates a new one.
    ///
    /// - Parameter response: The response of a server that no longer has the upload.
    /// - Throws: An error after too many restarts, or if the caller has passed the URL.
    mutating func startOver(_ reason: String, _ response: Response? = nil) throws {
        if isGiven, let response {
            if [404, 410].contains(response.status) { _ = isOver.set() }
            throw WebServiceError.unacceptable(response, work.request)
        }
        guard !isGiven else {
            throw WebServiceError(.upload, "\(reason), so the upload cannot be continued; create another one")
        }
        restarts += 1
        guard restarts <= Self.maximumRestarts else {
            throw WebServiceError(
                .upload, "\(reason), although the upload started over \(Self.maximumRestarts) times; upload it later")
        }
        work.record(.retry, "\(reason), so the upload starts over")
        (offset, acknowledged, resumedFrom) = (nil, 0, nil)
        (state.location, state.expires) = (nil, nil)
        meter.begin(0)
        try file.store(state)
    }

    /// Stores the URL of the upload that the server has created.
    mutating func created(_ location: String) throws {
        (resumedFrom, verified) = (0, .max)
        state.location = location
        try file.store(state)
    }

    /// Applies the limits of a response, and stores the date at which the upload expires.
    mutating func note(_ headers: Headers) throws {
        let new = `protocol` == .draft ? UploadLimits(headers) : nil
        limits = new ?? limits
        let expires: Date? =
            switch `protocol` {
            case .draft: new?.maximumAge.map { work.clock.date.addingTimeInterval(Double($0)) }
            case .tus: headers["Upload-Expires"].flatMap { HTTPDate.parse($0, now: work.clock.date) }
            }
        guard let expires, abs(expires.timeIntervalSince(state.expires ?? .distantPast)) > 60 else { return }
        state.expires = expires
        if state.location != nil { try file.store(state) }
    }

    /// Returns the size of the next piece.
    mutating func pieceSize() throws -> Int64 {
        do {
            let piece = try limits.piece(of: source.length, preferred: preferredPiece)
            return max(min(piece, reducedPiece ?? .max), 1)
        } catch {
            isUnusable = state.location != nil
            throw error
        }
    }

    /// Reduces the size of the pieces after a response with status 413.
    mutating func reducePiece(_ range: Range<Int64>, _ response: Response) throws {
        if let new = UploadLimits(response.headers), `protocol` == .draft { limits = new }
        let sent = Int64(range.count)
        let half = limits.maximumAppend.map { min($0, sent) } ?? sent
        let next = half < sent ? half : sent / 2
        guard next >= max(min(limits.minimumAppend ?? 0, sent), 1),
            half < sent || next >= UploadLimits.minimumHalvedPiece
        else { throw WebServiceError.unacceptable(response, work.request) }
        work.record(.retry, "the server rejected \(sent) bytes, so at most \(next) are sent")
        reducedPiece = next
        // A server could otherwise reduce the pieces by one byte each time.
        if next > sent / 2 { try stall(isWhole: false, response) }
    }

    // MARK: The end

    private mutating func finish(_ response: Response) throws -> UploadedFile {
        let location = state.location.flatMap { URL(string: $0) }
        try file.remove()
        try verify(isLast: true)
        meter.begin(source.length)
        return UploadedFile(
            byteCount: source.length, resumedFrom: resumedFrom ?? 0, restarts: restarts, location: location,
            response: response)
    }

    func violation(_ message: String, _ response: Response) -> WebServiceError {
        WebServiceError(.upload, message, response: response)
    }
}

extension WebServiceError {
    /// Returns the error for a status that is not acceptable.
    static func unacceptable(_ response: Response, _ request: Request) -> WebServiceError {
        WebServiceError(
            .unacceptableStatus, "the server responded with \(response.statusText)", request: request,
            response: response)
    }
}
