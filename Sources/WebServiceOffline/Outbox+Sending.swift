import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension Outbox {
    /// Starts as many requests as the limit permits, and reports expired entries.
    func sendNext() {
        let date = clock.date
        let (expired, started, expiration) = change { state in
            let expired = state.startExpired(at: date)
            return (expired, state.start(limit: options.maximumConcurrentRequests), state.takeExpiration())
        }
        if let expiration {
            // The delay is extended by more than the rounding error of the subtraction.
            let delay = Duration.clamping(seconds: max(0, expiration.timeIntervalSince(date)) + 0.000_001)
            _ = clock.schedule(after: delay) { [weak self] in
                self?.state.withLock { $0.endExpirationAlarm() }
                self?.sendNext()
            }
        }
        var isReleased = false
        for (item, isExpired) in expired.map({ ($0, true) }) + started.map({ ($0, false) }) {
            state.withLock { state in
                // The outbox may have been closed, or the entry removed, since `startExpired` and
                // `start` were called.
                guard !state.isEnding, state.items[item.entry.id] != nil else {
                    isReleased = true
                    state.change(item.entry.id) { $0.entry.state = .waiting }
                    return state.release(item)
                }
                let task = Task(executorPreference: clock.executor) { [self] in
                    await send(item, isExpired: isExpired)
                    self.state.withLock { $0.release(item) }
                    sendNext()
                }
                state.tasks[item.lane] = task
                state.change(item.entry.id) { $0.task = task }
            }
        }
        if isReleased { sendNext() }
    }

    /// Sends an entry, or reports that it has expired.
    private func send(_ item: OutboxState.Item, isExpired: Bool) async {
        let id = item.entry.id
        if let outcome = item.outcome { return await remove(id, as: outcome) }
        // If there is a condition, the attempt is counted after the condition has been evaluated.
        let isCounted = !isExpired && options.canSend == nil
        let uncount: @Sendable () -> Void = { [self] in
            if isCounted { state.withLock { state in _ = state.change(id) { $0.entry.attempts -= 1 } } }
        }
        let content: OutboxFolder.Content
        do {
            content = try await onQueue("") { [self] in try folder.content(of: item.name) }
        } catch {
            uncount()
            return setAsideUnreadable(item)
        }
        switch content {
        case .missing: change { $0.remove(id, as: .removed) }
        case .damaged:
            _ = try? await onQueue("") { [self] in  // does not throw
                setAside(item.name)
                change { $0.remove(id, as: .removed) }
            }
        case .request(let stored):
            var item = change { $0.complete(item, with: stored.head) }
            if item.entry.storesResponse, await hasResponse(item) { return }
            let request = stored.request(for: service)
            // If the entry could not be read before, its expiration date was unknown.
            if isExpired || item.entry.expirationDate.map({ $0 <= clock.date }) ?? false {
                uncount()
                return await fail(
                    item, request,
                    WebServiceError(
                        .entryExpired,
                        "the entry expired before it was sent; submit a new request if it is still needed",
                        request: request))
            }
            if let canSend = options.canSend {
                guard let turn = state.withLock({ $0.beginCondition(item) }) else { return }
                let isMet = await canSend(item.entry)
                guard let begun = change({ $0.begin(id, canSend: isMet && !$0.isEnding, turn: turn) }) else { return }
                item = begun
            }
            var copy: OutboxCopies.Copy?
            if let file = stored.head.file {
                let result = await Result.catching {
                    try await onQueue("") { [self] in try folder.copies.open(id, file) }
                }
                copy = try? result.get()  // both cases are handled below
                if copy == nil {
                    state.withLock { state in _ = state.change(id) { $0.entry.attempts -= 1 } }
                    guard case .success = result else { return setAsideUnreadable(item, stored.file) }
                    return await fail(
                        item, request,
                        WebServiceError(
                            .encoding,
                            "the copied body file is missing or has a different size; "
                                + "submit the request again", request: request))
                }
            }
            var noted = request
            noted.options.redirectPolicy.keepsMethodAndOrigin = true
            noted.options.interceptors.append(OutboxNote(item.entry))
            // The default deadline of a streamed response applies only until the head has arrived.
            if item.entry.storesResponse || stored.head.file != nil {
                // A large file takes longer than the default permits, so the deadline assumes 64
                // KiB per second.
                noted.options.deadline =
                    service.options.deadline ?? .seconds(600 + (stored.head.file?.size ?? 0) >> 16)
            }
            let task = service.sessionTask(request: noted)
            var isTruncated = false
            let result: Result<Response, any Error>
            do {
                result = .success(
                    item.entry.storesResponse
                        ? try await beginning(of: task, &isTruncated) : try await task.data().response)
            } catch {
                result = .failure(error)
            }
            if let copy { await release(copy, of: item) }
            await finish(item, request, result, isTruncated)
        }
    }

    /// Unlocks the copy of a body, and removes it if its entry was removed while it was being sent.
    private func release(_ copy: OutboxCopies.Copy, of item: OutboxState.Item) async {
        _ = try? await onQueue("") { [self] in  // if this fails, it is removed later as an orphan
            copy.unlock()
            try folder.removeCopies(ifMissing: item.name)
        }
    }

    /// If a killed process has stored the response of an entry, removes the entry. Returns whether
    /// the entry must not be sent now, for this reason or because the store cannot be accessed.
    private func hasResponse(_ item: OutboxState.Item) async -> Bool {
        do {
            return try await onQueue("") { [self] in
                let response = OutboxNames.response(to: item.name)
                guard try folder.contains(response) else { return false }
                try folder.flush()  // the killed process may not have flushed the response
                try folder.remove(item.name)
                change { state in
                    state.remove(item.entry.id, as: .sent)
                    state.addResponse(response)
                }
                return true
            }
        } catch {
            pause(item.entry.id, after: nil)
            return true
        }
    }

    /// Returns a response with the part of its body that is stored. The rest of the body is not
    /// received.
    private func beginning(of task: SessionTask, _ isTruncated: inout Bool) async throws -> Response {
        let stream = task.stream()
        var response = try await stream.response
        guard response.isSuccess else { return response }
        let body = try await stream.value.body
        var data = Data()
        for try await bytes in body {
            data.append(bytes)
            guard data.count > max(options.maximumResponseBytes, 0) else { continue }
            isTruncated = true
            data = data.prefix(max(options.maximumResponseBytes, 0))
            break
        }
        body.cancel()
        response = try await stream.value.response
        response.data = data
        return response
    }

    private func finish(
        _ item: OutboxState.Item, _ request: Request, _ result: Result<Response, any Error>, _ isTruncated: Bool
    ) async {
        let id = item.entry.id
        guard let kind = Failure.Kind(of: result, request, isTruncated) else {
            state.withLock { $0.outage.succeed(id) }
            // A response exists, because an entry whose response is stored is sent as a stream.
            let response = item.entry.storesResponse ? try? result.get() : nil
            return await remove(
                id, as: .sent,
                response.map {
                    StoredResponse($0, isTruncated: isTruncated, to: request, of: item.entry, date: clock.date)
                })
        }
        // An invalidated service has not sent anything.
        let isCounted = !kind.isUnconnected && kind != .error(.serviceInvalidated)
        let changed = state.withLock { state in
            state.change(id) {
                $0.entry.lastFailure = kind
                if !isCounted { $0.entry.attempts -= 1 }
            }
        }
        guard let entry = changed?.entry, !Task.isCancelled else { return pause(id, after: nil) }
        let (response, error): (Response?, (any Error)?) =
            switch result {
            case .success(let response): (response, nil)
            case .failure(let error): ((error as? WebServiceError)?.receivedResponse, error)
            }
        let isExhausted = options.maximumAttempts.map { isCounted && entry.attempts >= $0 } ?? false
        if kind.isTransient {
            let delay = response?.header(.retryAfter).flatMap { RetryAfter($0, now: clock.date)?.delay }
            beginOutage(id, kind, request, after: delay)
            if !isExhausted {
                return removeIfReplaced(id) ? () : pause(id, after: delay, isGeneral: kind.isGeneral)
            }
        } else if case .status = kind {
            state.withLock { $0.outage.succeed(id) }
        }
        await report(Failure(entry: entry, request: request, response: response, error: error, kind: kind), of: item)
    }

    /// Reports an entry that cannot be sent.
    private func fail(_ item: OutboxState.Item, _ request: Request, _ error: WebServiceError) async {
        let id = item.entry.id
        let kind = Failure.Kind.error(error.code)
        guard let entry = state.withLock({ state in state.change(id) { $0.entry.lastFailure = kind } })?.entry else {
            return
        }
        await report(Failure(entry: entry, request: request, response: nil, error: error, kind: kind), of: item)
    }

    /// Reports a permanent failure, and carries out the decision of the closure.
    private func report(_ failure: Failure, of item: OutboxState.Item) async {
        let id = failure.entry.id
        guard state.withLock({ $0.beginDecision(item) }) else { return pause(id, after: nil) }
        sendNext()
        let decision = await decide(failure)
        state.withLock { $0.endDecision(item) }
        if removeIfReplaced(id) { return }
        switch decision {
        case .drop: await remove(id, as: .removed)
        case .keep: block(id)
        case .replace(var replacement):
            // The idempotency key of the request that failed belongs only to that request.
            let key = StoredRequest.keyName
            if replacement.headers[key] == failure.request.headers[key] { replacement.headers[key] = nil }
            await replace(id, with: replacement)
        }
    }

    /// Begins a pause of the whole outbox if the failure does not concern only this entry.
    ///
    /// - Parameter requested: The minimum duration of the pause, up to `maximumPause`; `nil` if
    ///   there is none.
    private func beginOutage(
        _ id: UUID, _ kind: Failure.Kind, _ request: Request, after requested: Duration?
    ) {
        let host = kind.isUnconnected ? request.url.flatMap(Origin.init)?.host : nil
        let isOffline = host.flatMap(service.isConnected) == false
        let (now, random) = (clock.now, clock.random())
        let begun = state.withLock { state in
            state.outage.fail(id, kind, host: isOffline ? host : nil, now: now) { count in
                min(max(requested ?? .zero, pause(count, random)), options.maximumPause)
            }.map { (duration: $0, turn: state.outage.turn) }
        }
        guard let begun else { return }
        if isOffline { readSoon() }  // ends the pause when the device has a network again
        _ = clock.schedule(after: begun.duration) { [weak self] in
            self?.state.withLock { $0.outage.endPause(begun.turn) }
            self?.sendNext()
        }
    }

    /// Removes an entry from memory if another entry has replaced it while it was being sent.
    /// Returns whether the entry was removed.
    private func removeIfReplaced(_ id: UUID) -> Bool {
        change { state in state.items[id]?.isReplaced == true && state.remove(id, as: .removed) != nil }
    }

    private func block(_ id: UUID) {
        change { _ = $0.change(id) { $0.entry.state = .blocked } }
    }

    /// Replaces the request of an entry. The new request is sent immediately, or after a pause if
    /// the entry has failed before.
    private func replace(_ id: UUID, with request: Request) async {
        let date = clock.date
        let changed = state.withLock { state in
            state.change(id) { item in
                if let expiration = item.entry.expirationDate, expiration <= date { item.entry.expirationDate = nil }
            }
        }
        guard let item = changed else { return }
        do {
            let slot = try await onQueue("the entry could not be read") { [self] in
                guard case .request(let stored) = try folder.content(of: item.name) else { return nil as Int? }
                // A killed process may have replaced the entry without flushing it. After a power
                // failure, the entry would need the copy that is overwritten below.
                try folder.flush()
                return stored.head.file?.slot
            }
            let stored = try StoredRequest(request, of: item.entry, service, options, slot: slot == 0 ? 1 : 0)
            let copy = try await copyBody(of: stored)
            try await onQueue("the entry could not be replaced") { [self] in
                // The entry may have been removed in the meantime, possibly by another process.
                guard let isReleased = state.withLock({ $0.items[id] == nil ? nil : $0.isReleased }), !isReleased,
                    try folder.contains(item.name)
                else {
                    copy?.unlock()
                    return folder.copies.remove(item.name, except: slot)
                }
                try folder.replace(item.name, with: stored)
                copy?.unlock()
                folder.copies.remove(item.name, except: stored.head.file?.slot)
            }
        } catch {
            return block(id)
        }
        guard item.failures == 0 else { return pause(id, after: nil) }
        change { state in
            _ = state.change(id) { item in
                item.failures += 1
                item.entry.state = .waiting
                item.task = nil
            }
        }
    }

    /// Removes an entry and its file. If the file cannot be removed, another attempt follows after
    /// a pause.
    ///
    /// - Parameter response: The response to store instead of the entry. Defaults to `nil`, which
    ///   means the response of an earlier attempt to store one, if there is one.
    private func remove(_ id: UUID, as last: Entry.State, _ response: StoredResponse? = nil) async {
        state.withLock { state in
            _ = state.change(id) { item in
                item.outcome = last
                if let response { item.response = response }
            }
        }
        do {
            try await onQueue("the entry could not be removed") { [self] in
                guard let item = state.withLock({ $0.isReleased ? nil : $0.items[id] }) else { return }
                if let response = item.response {
                    let name = OutboxNames.response(to: item.name)
                    try folder.replace(
                        item.name, with: try response.encoded(options.storedFields), asResponse: name)
                    change { state in
                        state.remove(id, as: last)
                        state.addResponse(name)
                    }
                } else {
                    try folder.remove(item.name)
                    change { $0.remove(id, as: last) }
                }
            }
        } catch {
            pause(id, after: nil)
        }
    }

    /// Reports an entry that cannot be read, and reads it again after a pause.
    ///
    /// - Parameters:
    ///   - file: The file that cannot be read. Defaults to `nil`, which means the file of the
    ///     entry.
    ///   - isNew: Whether the entry is added to the entries in memory.
    func setAsideUnreadable(_ item: OutboxState.Item, _ file: URL? = nil, isNew: Bool = false) {
        change { state in
            if isNew { state.insert(item) }
            let isReported = item.entry.lastFailure == .error(.storage)
            _ = state.change(item.entry.id) { $0.entry.lastFailure = .error(.storage) }
            if !isReported { state.addUnreadable(file ?? folder.file(of: item.name)) }
        }
        pause(item.entry.id, after: nil)
    }

    /// Sends an entry again after a pause.
    ///
    /// - Parameters:
    ///   - requested: The minimum duration of the pause; `nil` if there is none. The entry's own
    ///     pause, which doubles with each failure of the entry, usually also applies, so a server
    ///     cannot cause an endless loop.
    ///   - isGeneral: Whether the entry pauses at least as long as the whole outbox. Defaults to
    ///     `false`.
    private func pause(_ id: UUID, after requested: Duration?, isGeneral: Bool = false) {
        let random = clock.random()
        let (now, instant) = (clock.date, clock.now)
        let paused = change { state in
            var pause = Duration.zero
            let (isClosed, end) = (state.isClosed, state.outage.end)
            // In later pauses of an outage, the failures are not attributed to the entry.
            let isOwn = !isGeneral || state.outage.isFirstPause
            let item = state.change(id) { item in
                if isOwn { item.failures += 1 }
                let rest = Duration.nanoseconds(Int64(clamping: max(end, instant) - instant))
                let own = isOwn ? self.pause(item.failures, random) : .zero
                pause = max(requested ?? .zero, isGeneral ? max(rest, own) : own)
                item.entry.state = isClosed ? .waiting : .pausing(until: now.addingTimeInterval(pause.inSeconds))
                item.turn += 1
                item.task = nil
            }
            return item.map { ($0, pause) }
        }
        guard let (item, pause) = paused else { return }
        _ = clock.schedule(after: pause) { [weak self] in self?.resume(id, turn: item.turn) }
    }

    /// Ends the pause of an entry, unless the entry has begun another attempt or pause.
    private func resume(_ id: UUID, turn: Int) {
        change { state in
            if state.items[id]?.turn == turn { state.change(id) { $0.entry.state = .waiting } }
        }
        sendNext()
    }

    /// Returns a random duration between half of the pause after a number of failures and the whole
    /// pause.
    private func pause(_ failures: Int, _ random: Double) -> Duration {
        let doubled = options.firstPause.doubled(failures - 1, upTo: options.maximumPause).inSeconds
        return .clamping(seconds: max(0, doubled) * (0.5 + 0.5 * min(max(random, 0), 1)))
    }
}

extension WebServiceError {
    /// The response to the request if its body is too large or incomplete; `nil` for any other
    /// error. An error that does not concern the body may contain the response to another request,
    /// such as a token request.
    fileprivate var receivedResponse: Response? { code == .responseTooLarge ? response : incompleteResponse }
}

extension Outbox.Failure.Kind {
    /// Creates the kind of a request's failure. Returns `nil` if the request succeeded.
    fileprivate init?(of result: Result<Response, any Error>, _ request: Request, _ isTruncated: Bool) {
        switch result {
        case .success(let response):
            guard !response.isDelivery(of: request, hasWholeBody: !isTruncated) else { return nil }
            self = .status(response.status)
        case .failure(let error as WebServiceError):
            // The server has processed the request, and its body is not needed.
            if let response = error.receivedResponse {
                guard !response.isDelivery(of: request, hasWholeBody: false) else { return nil }
                self = .status(response.status)
            } else if let cause = error.underlying as? URLError {
                // For example, a token could not be refreshed because there is no connection.
                self = .transport(cause.code)
            } else {
                self = .error(error.code)
            }
        case .failure(let error as URLError): self = .transport(error.code)
        case .failure(let error): self = .other("\(type(of: error))")
        }
    }

    /// Whether the same request may succeed later.
    fileprivate var isTransient: Bool {
        switch self {
        case .status(let status): RetryPolicy.defaultStatuses.contains(status)
        case .transport(let code): code != .badURL && code != .unsupportedURL
        case .error(let code): !Self.permanentCodes.contains(code)
        case .other: true
        }
    }

    private static let permanentCodes: Set<WebServiceError.Code> = [
        .invalidURL, .invalidMethod, .invalidHeader, .encoding, .authenticationFailed, .bodyNotReplayable,
        .interceptorOrder, .redirectRefused, .tooManyRedirects, WebServiceError.Code("destinationRefused"),
    ]
}
