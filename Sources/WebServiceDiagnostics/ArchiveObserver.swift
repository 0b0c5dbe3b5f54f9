public import Foundation
public import WebServiceCore

/// An observer that writes every request of a service to one HTTP archive (HAR 1.2).
///
/// ```swift
/// service.observers = [try .archive(to: folder.appendingPathComponent("session.har"))]
/// ```
/// The file can be opened with the developer tools of a browser. It is a valid archive after each
/// entry, even if the process ends. Entries are written in the background, in the order in which
/// the requests ended. The entry of a WebSocket is written when the connection ends. It contains
/// at most the last 1,000 messages. Secrets in header fields, query values and bodies are redacted.
///
/// Memory use is bounded: while 256 entries wait to be written, further entries are omitted.
/// Entries that would exceed ``maximumBytes`` or that cannot be written, for example because the
/// disk is full, are also omitted. The archive contains the number of omitted entries.
public final class ArchiveObserver: Observer {
    /// The maximum size of the file in bytes.
    public let maximumBytes: Int

    private let bodyLimit: Int
    private let entries: AsyncStream<Entry>.Continuation
    private let state = Mutex(State())

    private struct State {
        /// The attempts in flight, by the identifier of their exchange.
        var started: [UInt64: (request: EncodedRequest, start: UInt64)] = [:]
        /// The entries of open WebSocket connections, by the identifier of their exchange.
        var connections: [UInt64: Entry] = [:]
        /// The number of entries that wait to be written.
        var pending = 0
        var omitted = 0
        /// The callers that wait until all entries have been written.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private struct Entry: Sendable {
        let attempt: ExchangeLog.Attempt
        let date: Date
        let bodies: HTTPArchive.Bodies
        /// The messages of a WebSocket.
        var messages: RecordedMessages?
    }

    private static let maximumPending = 256

    /// Creates an observer that writes to a file. An existing file is replaced.
    ///
    /// - Parameters:
    ///   - file: The file to write. A new file is accessible only to the user (0600).
    ///   - bodyLimit: The maximum size of each body to include, and of all messages of a WebSocket
    ///     together, in bytes. Bodies that are larger or that cannot be redacted are omitted.
    ///     Defaults to 0, which includes only the sizes of bodies and messages.
    ///   - maximumBytes: The maximum size of the file, in bytes. Defaults to 100 MiB.
    ///   - redaction: The rules for secrets. Defaults to ``Redaction/standard``.
    /// - Throws: The error of the file system if the file cannot be written.
    public init(
        file: URL, bodyLimit: Int = 0, maximumBytes: Int = 100 << 20, redaction: Redaction = .standard
    ) throws {
        self.bodyLimit = bodyLimit
        self.maximumBytes = maximumBytes
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        _ = FileManager.default.createFile(atPath: file.path, contents: nil, attributes: attributes)
        let handle = try FileHandle(forWritingTo: file)
        let start = HTTPArchive.start
        try handle.write(contentsOf: start + HTTPArchive.end())
        let stream: AsyncStream<Entry>
        (stream, entries) = AsyncStream.makeStream()
        Task(executorPreference: HandlerPool.shared) { [weak self] in
            let archive = HTTPArchive(redaction)
            var (position, isFirst) = (UInt64(start.count), true)
            for await entry in stream {
                var text = isFirst ? Data() : HTTPArchive.separator
                text += archive.entry(entry.attempt, (0, entry.date), entry.bodies, messages: entry.messages)
                let end = HTTPArchive.end(omitted: self?.state.withLock { $0.omitted } ?? 0)
                let length = UInt64(text.count + end.count)
                let isWritten = position + length <= maximumBytes && Self.write(text + end, to: handle, at: position)
                if isWritten { (position, isFirst) = (position + UInt64(text.count), false) }
                let omitted = self?.didWrite(isWritten) ?? 0
                if !isWritten { _ = Self.write(HTTPArchive.end(omitted: omitted), to: handle, at: position) }
                self?.didFinish()
            }
            try? handle.close()  // every entry has been written
        }
    }

    deinit {
        entries.finish()
    }

    /// Writes data at a position and truncates the file after it.
    private static func write(_ text: Data, to handle: FileHandle, at position: UInt64) -> Bool {
        do {
            try handle.seek(toOffset: position)
            try handle.write(contentsOf: text)
            try handle.truncate(atOffset: position + UInt64(text.count))
            return true
        } catch {
            return false
        }
    }

    /// Records whether an entry was written.
    ///
    /// - Returns: The number of requests that are not in the archive.
    private func didWrite(_ isWritten: Bool) -> Int {
        state.withLock { state in
            if !isWritten { state.omitted += 1 }
            return state.omitted
        }
    }

    private func didFinish() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.pending -= 1
            guard state.pending == 0 else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until the entries that this observer has received are written.
    ///
    /// Call this method before the program exits. The last event of a request can be delivered
    /// shortly after the request's task has its result.
    public func finish() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.pending > 0 { state.waiters.append(continuation) }
                return state.pending == 0
            }
            if isDone { continuation.resume() }
        }
    }

    /// Adds each attempt to the archive when the attempt ends.
    public func observe(_ event: ExchangeEvent) {
        let id = event.exchange.id
        switch event.kind {
        case .attemptStarted(_, let request):
            let replaced = state.withLock { $0.started.updateValue((request, event.nanoseconds), forKey: id) }
            withExtendedLifetime(replaced) {}
        case .attemptEnded(_, let result, let metrics):
            guard let started = state.withLock({ $0.started.removeValue(forKey: id) }) else { return }
            var attempt = ExchangeLog.Attempt(request: started.request, start: started.start)
            attempt.end(result, metrics, at: event.nanoseconds)
            let bodies = HTTPArchive.Bodies(started.request, result, limit: bodyLimit)
            var entry = Entry(attempt: attempt, date: event.exchange.date, bodies: bodies)
            guard case .success(let response) = result, response.status == 101 else { return add(entry) }
            entry.messages = RecordedMessages()
            // An interceptor may have opened another connection before.
            add(state.withLock { [entry] in $0.connections.updateValue(entry, forKey: id) })
        case .message(let message, let isReceived):
            let message = RecordedMessages.Message(
                message, isReceived: isReceived, at: event.date, limit: bodyLimit)
            state.withLock { $0.connections[id]?.messages?.add(message, limit: bodyLimit) }
        case .recorded(let entry) where entry.kind == .body: endConnection(of: id)
        case .ended(let summary) where !summary.isStreamed: endConnection(of: id)
        default: break
        }
    }

    private func endConnection(of id: UInt64) {
        add(state.withLock { $0.connections.removeValue(forKey: id) })
    }

    private func add(_ entry: Entry?) {
        guard let entry else { return }
        let isAccepted = state.withLock { state in
            let isAccepted = state.pending < Self.maximumPending
            if isAccepted { state.pending += 1 } else { state.omitted += 1 }
            return isAccepted
        }
        if isAccepted { entries.yield(entry) }
    }
}

extension Observer where Self == ArchiveObserver {
    /// Returns an observer that writes every request to an HTTP archive; see ``ArchiveObserver``.
    ///
    /// - Throws: The error of the file system if the file cannot be written.
    public static func archive(
        to file: URL, bodyLimit: Int = 0, maximumBytes: Int = 100 << 20, redaction: Redaction = .standard
    ) throws -> ArchiveObserver {
        try ArchiveObserver(file: file, bodyLimit: bodyLimit, maximumBytes: maximumBytes, redaction: redaction)
    }
}
