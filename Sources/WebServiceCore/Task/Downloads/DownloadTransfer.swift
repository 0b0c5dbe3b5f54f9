import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transfer of a file by one request after another, until it is complete.
///
/// ``DownloadPlan`` decides what is requested and how a response is used.
struct DownloadTransfer {
    let task: SessionTask
    let request: Request
    let options: DownloadOptions
    /// The URL of the first request.
    let url: String
    let meter: DownloadMeter

    /// The partial file; `nil` until its name is known.
    var file: PartFile?
    var destination: DownloadDestination?
    /// The representation that the bytes in the file belong to; `nil` if there are none.
    var state: DownloadState?
    /// The number of bytes in the file, from its start.
    var length: Int64 = 0
    var resumedFrom: Int64 = 0
    var restarts = 0
    /// A Boolean value that indicates whether the next request is for the whole file.
    var needsWholeFile = false
    var connections: Int

    /// Opens the partial file, unless its name depends on the response.
    init(_ task: SessionTask, _ request: Request, _ options: DownloadOptions) throws {
        if let checksum = options.checksum, checksum.hash == nil {
            throw WebServiceError(
                .download, "the checksum is not \(2 * checksum.algorithm.length) hexadecimal digits")
        }
        guard request.method != .HEAD else {
            throw WebServiceError(.download, "the response to a HEAD request has no body to download")
        }
        self.task = task
        self.request = request
        self.options = options
        do {
            let encoded = try request.encode()
            task.context.log.didEncode(encoded)
            url = encoded.url
        } catch {
            task.context.log.didNotEncode(error.request)
            throw error
        }
        meter = DownloadMeter(task.context, bytesPerSecond: options.bytesPerSecond)
        connections = request.method == .GET ? max(1, options.connections) : 1
        switch options.place {
        case .file(let url): try open(try DownloadDestination(file: url))
        case .folder(let folder, let name?):
            guard let name = FileName.component(name) else {
                throw WebServiceError(.download, "the name of the file is empty or only consists of dots")
            }
            try open(try DownloadDestination(folder: folder, name: name))
        case .folder: break
        }
    }

    private mutating func open(_ destination: DownloadDestination) throws {
        let file = try PartFile(destination, replaces: options.existing != .fail)
        self.file = file
        self.destination = destination
        if options.existing == .replace || request.method != .GET { return }
        length = try file.length()
        state = file.state()
    }

    // MARK: Passes

    /// The result of a request and its response.
    enum Pass {
        case complete(Response)
        /// Further bytes are missing.
        case incomplete
    }

    /// An error within a body, after which the remaining bytes can be requested.
    struct Interruption: Error {
        let underlying: any Error
    }

    /// Sends requests until the file is complete, and renames it.
    mutating func run() async throws -> DownloadedFile {
        var fruitless = 0
        var lastProgress = task.context.clock.now
        while true {
            try await waitUntilResumed()
            let before = (length: length, restarts: restarts)
            do {
                if case .complete(let response) = try await pass() { return try finish(response) }
                fruitless = 0
            } catch let interruption as Interruption {
                let now = task.context.clock.now
                let isProgress = length > before.length && restarts == before.restarts
                (fruitless, lastProgress) = isProgress ? (0, now) : (fruitless + 1, lastProgress)
                let spent = Duration.nanoseconds(Int64(clamping: now - min(lastProgress, now)))
                guard
                    try await continuationPolicy?.waitToContinue(
                        request, after: interruption.underlying, attempt: max(1, fruitless), spent: spent,
                        in: task.context) == true
                else { throw interruption.underlying }
            }
        }
    }

    var continuationPolicy: (any ContinuationPolicy)? {
        (task.service.pipeline.interceptors + request.options.interceptors).lazy.compactMap {
            $0 as? any ContinuationPolicy
        }
        .first
    }

    /// Waits while the task is suspended.
    private func waitUntilResumed() async throws {
        let isResumed = Once<Bool>()
        switch task.context.gate.admit(sending: { { isResumed.set(true) } }) {
        case .granted: return
        case .refused: throw URLError(.cancelled)
        case .held: break
        }
        let isNeeded = await withTaskCancellationHandler {
            await isResumed.value
        } onCancel: {
            isResumed.set(false)
        }
        if !isNeeded { throw URLError(.cancelled) }
    }

    private mutating func pass() async throws -> Pass {
        if let state, let map = state.pieces, file != nil, !needsWholeFile,
            map.isValid, !map.isComplete, map.total == state.total, state.validator(for: DownloadState(url: url)) != nil
        {
            return try await receivePieces(of: state, map, first: nil)
        }
        let plan = plan()
        let exchange = DownloadExchange(task, request, plan, bytesPerSecond: options.bytesPerSecond)
        defer { exchange.end() }
        let response = try await exchange.response()
        guard let file = try file ?? openSuggested(response) else { return .incomplete }
        switch plan.step(status: response.status, headers: response.headers) {
        case .append(let range) where plan.offset == 0:
            return try await receiveFirst(range, of: response, file)
        case .append(let range), .overlap(let range):
            try beginPart(of: response, file)
            return try await receive(range, of: response, file)
        case .wholeFile:
            try beginWholeFile(response, plan, file)
            return try await receive(nil, of: response, file)
        case .complete:
            if isFirstBody { resumedFrom = length }
            meter.begin(length, of: length)
            return .complete(response.response)
        case .requestWholeFile(let reason):
            task.context.log.record(.retry, "\(reason), the whole file is requested")
            return requestWholeFile()
        case .fail(let reason):
            throw WebServiceError(.download, reason, response: response.response.urlResponse)
        }
    }

    /// A Boolean value that indicates whether no body was received yet.
    var isFirstBody: Bool { resumedFrom == 0 && restarts == 0 && meter.count == 0 }

    /// Causes the next request to be for the whole file, over one connection.
    mutating func requestWholeFile() -> Pass {
        (needsWholeFile, connections) = (true, 1)
        return .incomplete
    }

    private func plan() -> DownloadPlan {
        let current = DownloadState(url: url)
        guard !needsWholeFile, request.method == .GET else { return DownloadPlan(wholeFile: current) }
        // The bytes of a file with missing pieces are not those before its end.
        let continued = state?.pieces.map { $0.isValid && $0.isComplete } ?? true ? state : nil
        let plan = DownloadPlan(continuing: continued, length: length, current: current)
        guard plan.offset == nil, connections > 1 else { return plan }
        return DownloadPlan(piece: 0...PieceMap.minimumLength - 1, of: current)
    }

    /// Opens the partial file with the name that the response suggests.
    ///
    /// - Returns: `nil` if it has bytes of the same version, so only the others are requested.
    private mutating func openSuggested(_ response: StreamedResponse) throws -> PartFile? {
        guard case .folder(let folder, _) = options.place else { return nil }
        let name = FileName.suggested(
            disposition: response.headers["Content-Disposition"], url: url, default: "download")
        try open(try DownloadDestination(folder: folder, name: name))
        guard let state, state.validator(for: DownloadState(url: url)) != nil,
            state.pieces != nil || plan().offset != nil,
            DownloadState(url: url, headers: response.headers).validator == state.validator
        else { return file }
        return nil
    }
}
