import Foundation
import WebServiceCore

/// The transfer of a file by successive requests, until the file is complete.
///
/// ``DownloadPlan`` decides what is requested and how a response is used.
struct DownloadTransfer {
    let work: TaskWork
    let options: DownloadOptions
    /// The URL of the first request.
    let url: String
    let meter: TransferMeter

    /// The partial file; `nil` until its name is known.
    var file: PartFile?
    var destination: DownloadDestination?
    /// The preferred name of a file that replaces no other file; `nil` if the file must have
    /// exactly the name that the caller specified.
    var preferredName: String?
    /// The representation that the bytes in the file belong to; `nil` if there are none.
    var state: DownloadState?
    /// The number of bytes in the file, from its start.
    var length: Int64 = 0
    var resumedFrom: Int64 = 0
    var restarts = 0
    /// Whether the next request must be for the whole file.
    var needsWholeFile = false
    var connections: Int

    /// Opens the partial file, unless its name depends on the response.
    init(_ work: TaskWork, _ options: DownloadOptions) throws {
        if let checksum = options.checksum, checksum.hash == nil {
            throw WebServiceError(
                .download, "the checksum must consist of \(2 * checksum.algorithm.length) hexadecimal digits")
        }
        if let rate = options.bytesPerSecond, rate < 1 {
            throw WebServiceError(
                .download, "the rate limit must be at least 1 byte per second; set bytesPerSecond to nil for no limit"
            )
        }
        let request = work.request
        guard request.method != .HEAD else {
            throw WebServiceError(.download, "the response to a HEAD request has no body to download; use GET")
        }
        self.work = work
        self.options = options
        url = try work.url()
        meter = TransferMeter(work, .download, bytesPerSecond: options.bytesPerSecond)
        connections = request.method == .GET ? max(1, options.connections) : 1
        switch options.place {
        case .file(let url): try open(named: try DownloadDestination(file: url))
        case .folder(let folder, let name?):
            guard let name = FileName.component(name) else {
                throw WebServiceError(.download, "the file name is empty or consists only of dots; pass another name")
            }
            try open(named: try DownloadDestination(folder: folder, name: name))
        case .folder: break
        }
    }

    /// Opens the partial file for a destination that the caller named.
    private mutating func open(named destination: DownloadDestination) throws {
        if options.existing == .addNumber { return try openFirst(destination) }
        try createFolder(destination)
        try open(destination, replaces: options.existing != .fail)
    }

    private func createFolder(_ destination: DownloadDestination) throws {
        if options.createsFolders { try destination.createFolder(synchronize: options.synchronizes) }
    }

    private mutating func open(_ destination: DownloadDestination, replaces: Bool) throws {
        let file = try PartFile(destination, replaces: replaces)
        self.file = file
        self.destination = destination
        if options.existing == .replace || work.request.method != .GET { return }
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

    /// Sends requests until the file is complete, and then renames the file.
    mutating func run() async throws -> DownloadedFile {
        var fruitless = FruitlessRequests(now: work.clock.now)
        while true {
            try await work.permission()
            do {
                if case .complete(let response) = try await pass() { return try finish(response) }
                fruitless.add(meter.count, now: work.clock.now)
                if fruitless.count >= FruitlessRequests.maximum, !needsWholeFile {
                    _ = requestWholeFile("the parts are too short")
                }
            } catch let interruption as Interruption {
                let now = work.clock.now
                fruitless.add(meter.count, now: now)
                guard
                    let pause = work.pauseToContinue(
                        after: interruption.underlying, attempt: fruitless.attempt, spent: fruitless.spent(now))
                else { throw interruption.underlying }
                try await work.pause(for: pause)
            }
        }
    }

    private mutating func pass() async throws -> Pass {
        if let state, let map = state.pieces, file != nil, !needsWholeFile,
            map.isValid, !map.isComplete, map.total == state.total, (map.end...map.total).contains(length),
            isContinuable(state)
        {
            return try await receivePieces(of: state, map, first: nil)
        }
        let plan = plan()
        let exchange = work.stream(plan, bytesPerSecond: options.bytesPerSecond)
        defer { exchange.end() }
        let response = try await exchange.response()
        guard let file = try file ?? openSuggested(response) else { return .incomplete }
        let head = DownloadPlan.Head(response)
        switch plan.step(for: head, known: known) {
        case .part(let range, let total) where plan.offset == 0:
            return try await receiveFirst(range, of: total, in: response, file)
        case .part(let range, let total):
            try beginPart(of: total, file)
            return try await receive(range, of: response, file)
        case .wholeFile(let total):
            try beginWholeFile(head, of: total, plan, file)
            let pass = try await receive(nil, of: response, file)
            return total == nil && plan.isRequestedLength(length) ? requestWholeFile(DownloadPlan.doubt) : pass
        case .complete:
            if isFirstBody { resumedFrom = length }
            meter.begin(length, of: length)
            return .complete(response.response)
        case .requestWholeFile(let reason):
            return requestWholeFile(reason)
        case .fail(let reason):
            throw WebServiceError(.download, reason, response: response.response)
        case .contradiction(let reason):
            try file.discard()
            throw WebServiceError(.download, reason, response: response.response)
        }
    }

    /// Whether no body has been received yet.
    var isFirstBody: Bool { resumedFrom == 0 && restarts == 0 && meter.count == 0 }

    /// Makes the next request ask for the whole file, over one connection.
    mutating func requestWholeFile(_ reason: String) -> Pass {
        work.record(.retry, "\(reason), so the whole file is requested")
        (needsWholeFile, connections) = (true, 1)
        return .incomplete
    }

    /// Returns whether the request may continue the partial file of a state.
    private func isContinuable(_ state: DownloadState) -> Bool {
        state.validator(for: DownloadState(url: url), ignoresQuery: options.ignoresQuery) != nil
    }

    /// The representation that an earlier response for the URL described; `nil` if there was none.
    private var known: DownloadState? {
        guard let state, state.isOfSameURL(DownloadState(url: url), ignoresQuery: options.ignoresQuery) else {
            return nil
        }
        return state
    }

    private func plan() -> DownloadPlan {
        let current = DownloadState(url: url)
        guard !needsWholeFile, work.request.method == .GET else { return DownloadPlan(wholeFile: current) }
        // A file with missing pieces has gaps, so its length does not indicate which bytes exist.
        let continued = state?.pieces.map { $0.isValid && $0.isComplete } ?? true ? state : nil
        let plan = DownloadPlan(
            continuing: continued, length: length, current: current, ignoresQuery: options.ignoresQuery)
        guard plan.offset == nil, connections > 1 else { return plan }
        return DownloadPlan(piece: 0...PieceMap.minimumLength - 1, of: current)
    }

    /// Opens the partial file with the name that the response suggests.
    ///
    /// - Returns: `nil` if the file already has bytes of the same version. Only the missing bytes
    ///   are then requested.
    private mutating func openSuggested(_ response: StreamedResponse) throws -> PartFile? {
        guard case .folder(let folder, _) = options.place else { return nil }
        let name = FileName.suggested(
            disposition: response.headers["Content-Disposition"], url: url, default: "download")
        try openFirst(try DownloadDestination(folder: folder, name: name))
        guard let state, isContinuable(state),
            state.pieces != nil || plan().offset != nil,
            DownloadState(url: url, headers: response.headers).validator == state.validator
        else { return file }
        return nil
    }

    /// Opens the partial file with the first name that belongs to no other file, complete or
    /// partial.
    private mutating func openFirst(_ destination: DownloadDestination) throws {
        preferredName = destination.name
        try createFolder(destination)
        var failure = WebServiceError.destinationExists
        for name in names {
            do {
                try open(destination.named(name), replaces: false)
                // No download can continue bytes without a validator.
                guard let found = file?.state(), found.validator != nil,
                    !found.isOfSameURL(DownloadState(url: url), ignoresQuery: options.ignoresQuery)
                else { return }
                file?.close()
                (file, state, length) = (nil, nil, 0)
            } catch let error as WebServiceError where error.isConflict {
                failure = error
            }
        }
        throw failure
    }

    /// The names that the file may have if no existing file may be replaced.
    var names: [String] {
        guard let preferredName else { return [] }
        return options.existing == .fail ? [preferredName] : Array(FileName.candidates(preferredName))
    }
}
