public import Foundation
public import WebServiceCore
public import WebServiceDiagnostics
public import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A session that records real exchanges in a file, and replays them without a network.
///
/// ```swift
/// let cassette = try CassetteSession(file: file, mode: .once)
/// service.session = cassette
/// let brewers = try await client.brewers(in: "vermont")
/// try cassette.finish()
/// ```
/// The file is JSON with sorted names. For each exchange, it contains the method, the URL, the
/// header fields in order, the bodies (as text where possible), and the status or the code of the
/// `URLError`. Apart from header fields such as `Date`, it contains neither the date of the
/// recording nor durations.
///
/// Before the file is written, the redaction replaces the secrets in header fields, cookies,
/// queries and bodies. Equal secrets have equal placeholders, such as `redacted-1`, so a token from
/// a response is recognized in later requests. A recording is not written if a redacted value of at
/// least 8 bytes occurs elsewhere in it, if it contains a value that looks like a token, or if
/// secrets in a body cannot be recognized, for example in `application/octet-stream`. Images,
/// sounds, videos and fonts that are not text are not searched for secrets. Bodies without secrets
/// are recorded and replayed byte for byte.
///
/// An interrupted response is replayed with its head, the bytes that were received, and its error.
/// Trailer fields are replayed, and an unknown length remains unknown.
///
/// The messages of a WebSocket connection are recorded and replayed in the same order
/// (<doc:RecordingExchanges#WebSocket-connections>).
///
/// A request matches an exchange if the method, the URL and the body are equal. Secrets, header
/// fields, the order of members and the whitespace in JSON, and the boundaries of multipart bodies
/// are not compared. The parameter `matching` of the initializer changes these criteria. All
/// members may be called from any thread.
public final class CassetteSession: StreamingSession {
    /// How a cassette file is used.
    public enum Mode: Sendable, Hashable {
        /// Replays the file. Nothing is sent.
        case replay
        /// Records all exchanges, and replaces the file.
        case record
        /// Replays the file if it exists; otherwise records it.
        case once
        /// Replays the exchanges of the file. Sends all other requests and adds their exchanges to
        /// the file.
        case recordMissing
        /// Sends all requests and records nothing. The file is not read.
        case passthrough
    }

    /// The order in which exchanges are replayed.
    public enum Order: Sendable, Hashable {
        /// Each request replays the first matching exchange that has not been replayed yet.
        case byMatch
        /// Each request must match the exchange that follows the last replayed one. Use this order
        /// for requests that are sent sequentially.
        case inOrder
    }

    enum Role {
        case replaying(CassettePlayer)
        /// The player contains the existing exchanges of the file.
        case recording(CassetteRecorder, CassettePlayer?)
        case forwarding
    }

    /// The file of the cassette.
    public let file: URL
    let clock: TaskClock
    let session: any Session
    let role: Role
    private let redaction: Redaction
    private let secrets: [String]
    private let allowed: Set<String>
    private let recordsUnsearchedBodies: Bool
    private let willRecord: (@Sendable (Exchange) throws -> Exchange?)?
    /// The content of the file that the recording may replace.
    private let known: Mutex<Data?>

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - file: The file of the cassette.
    ///   - mode: How the file is used. Defaults to ``Mode/once``.
    ///   - session: The session that sends requests during a recording. Defaults to
    ///     `FoundationSession.shared`.
    ///   - order: The order of a replay. Defaults to ``Order/byMatch``.
    ///   - matching: The parts of a request that must be equal to those of a recorded request.
    ///     Defaults to the method, the URL, the query and the body.
    ///   - repeats: Whether the last matching exchange is replayed again after all matching
    ///     exchanges have been replayed. Has no effect with ``Order/inOrder``. Defaults to `false`,
    ///     which means that a further request fails.
    ///   - redaction: The rules for secrets. The file does not contain its placeholder. Defaults to
    ///     `Redaction.standard`.
    ///   - secrets: Further values to redact wherever they occur. Defaults to none.
    ///   - allowed: Values that look like tokens but are not secret. Defaults to none.
    ///   - recordsUnsearchedBodies: Whether bodies in which secrets cannot be recognized are
    ///     recorded. Defaults to `false`, which means that a recording with such a body is not
    ///     written.
    ///   - willRecord: Returns the exchange to record instead of its argument, or `nil` to omit the
    ///     exchange. ``finish(allowsUnused:)`` calls the closure after secrets have been redacted
    ///     and before the recording is searched for remaining secrets. A replay compares requests
    ///     with the changed ones, so exclude changed parts from the comparison with `matching`.
    ///     Defaults to `nil`, which records all exchanges unchanged.
    ///   - clock: The clock of the service, if it is a test clock. Defaults to `nil`.
    /// - Throws: `WebServiceError` with the code `cassette` if a file to replay cannot be read or
    ///   is damaged.
    public init(
        file: URL, mode: Mode = .once, session: any Session = FoundationSession.shared, order: Order = .byMatch,
        matching: [Criterion] = [.method, .url, .query, .body], repeats: Bool = false,
        redaction: Redaction = .standard, secrets: [String] = [], allowed: Set<String> = [],
        recordsUnsearchedBodies: Bool = false,
        willRecord: (@Sendable (_ exchange: Exchange) throws -> Exchange?)? = nil,
        clock: TestClock? = nil
    ) throws {
        self.file = file
        self.clock = TaskClock(clock)
        self.session = session
        self.redaction = redaction
        self.secrets = secrets
        self.allowed = allowed
        self.recordsUnsearchedBodies = recordsUnsearchedBodies
        self.willRecord = willRecord
        known = Mutex(mode == .record || mode == .recordMissing ? Cassette.content(of: file) : nil)
        let player = {
            CassettePlayer(
                try Cassette(contentsOf: file), name: file.lastPathComponent, order: order, repeats: repeats,
                criteria: matching
            ) { CassetteRequest($0, redaction, values: secrets, criteria: matching) }
        }
        let exists = FileManager.default.fileExists(atPath: file.path)
        switch mode {
        case .passthrough: role = .forwarding
        case .once where !exists, .recordMissing where !exists, .record: role = .recording(.init(), nil)
        case .recordMissing: role = .recording(.init(), try player())
        case .once, .replay: role = .replaying(try player())
        }
    }

    /// Whether exchanges are recorded.
    public var isRecording: Bool { if case .recording = role { true } else { false } }

    /// `.mock` for a replay; otherwise the response source of the session that sends the requests.
    public var responseSource: Response.Source {
        if case .replaying = role { .mock } else { session.responseSource }
    }

    /// Returns whether the session may add credentials to a request.
    public func addsCredentials(to url: URL) -> Bool { session.addsCredentials(to: url) }

    /// Adds the exchanges of an HTTP archive (HAR 1.2), such as one that a browser exported, to a
    /// recording.
    ///
    /// ```swift
    /// let cassette = try CassetteSession(file: file, mode: .record)
    /// try cassette.importArchive(archive) { $0.path.hasPrefix("/v1/") }
    /// try cassette.finish()
    /// ```
    /// Secrets are redacted as in other recordings. Entries that have no response or that use
    /// another protocol, such as WebSocket, are ignored. The response bodies in an archive are
    /// decoded, so their field `Content-Encoding` is removed. Exchanges that are equal to recorded
    /// ones are also added.
    ///
    /// - Parameters:
    ///   - archive: The archive file, whose size must not exceed 128 MiB.
    ///   - isIncluded: Returns whether a request is added. Defaults to a closure that includes all
    ///     requests.
    /// - Returns: The number of exchanges that were added.
    /// - Throws: `WebServiceError` with the code `cassette` if the session does not record, or if
    ///   the file cannot be read, is too large, is damaged, or lacks the body of a message; or an
    ///   error of `isIncluded`. After an error, nothing is added.
    @discardableResult
    public func importArchive(
        _ archive: URL, where isIncluded: (_ request: ReceivedRequest) throws -> Bool = { _ in true }
    ) throws -> Int {
        guard case .recording(let recorder, _) = role else {
            throw WebServiceError(
                .cassette, "an archive can be added only to a recording; create the session with mode: .record")
        }
        var exchanges: [(ReceivedRequest, CassetteRecorder.Result.Response)] = []
        for (place, entry) in try CassetteArchive(contentsOf: archive).log.entries.enumerated() {
            do {
                guard let request = try entry.received(), try isIncluded(request),
                    let response = try entry.received(url: entry.request.url ?? "")
                else { continue }
                exchanges.append((request, response))
            } catch let damage as CassetteArchive.Damage {
                throw WebServiceError(
                    .cassette, "entry \(place + 1) of the archive \(archive.lastPathComponent) \(damage.reason)")
            }
        }
        recorder.add(exchanges)
        return exchanges.count
    }

    /// Writes a recording, or verifies that a replay is complete.
    ///
    /// Call this method at the end of a test, when all requests have completed. A request without a
    /// result is not written. The file is replaced atomically, and does not change if an error is
    /// thrown.
    ///
    /// - Parameter allowsUnused: Whether exchanges that were not replayed are allowed. Defaults to
    ///   `false`.
    /// - Throws: `WebServiceError` with the code `cassetteSecret` if a value in a recording looks
    ///   like a secret or if secrets in a body cannot be recognized; `cassette` if an exchange
    ///   cannot be recorded, if the file cannot be written, if another session or process has
    ///   changed it since this session was created, or if exchanges were not replayed; or the error
    ///   of `willRecord`, of a request body that cannot be read or of a sent message that differed
    ///   from the recorded one.
    public func finish(allowsUnused: Bool = false) throws {
        switch role {
        case .forwarding: break
        case .recording(let recorder, let player):
            if let failure = player?.failure { throw failure }
            if player != nil, recorder.isEmpty { return }
            try known.withLock { known in
                let redactor = CassetteRedactor(
                    redaction, values: secrets, recordsUnsearchedBodies: recordsUnsearchedBodies,
                    addingTo: player == nil ? nil : known)
                let exchanges = try recorder.exchanges(
                    redactor, after: player?.exchanges ?? [], allowed: allowed, change: willRecord)
                known = try Cassette(exchanges).write(to: file, replacing: known)
            }
        case .replaying(let player):
            if let failure = player.failure { throw failure }
            let unused = player.unused
            guard !unused.isEmpty, !allowsUnused else { return }
            throw WebServiceError(
                .cassette,
                "exchanges of \(file.lastPathComponent) were not replayed: \(unused.joined(separator: "; ")); "
                    + "record the cassette again or call finish(allowsUnused: true)")
        }
    }

    /// Creates a task that replays an exchange, or that sends the request and records the exchange.
    ///
    /// If the reader ends a stream early, the bytes that were read are recorded.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        switch role {
        case .forwarding: return send(request, to: receiver)
        case .replaying(let player):
            return replay(to: receiver) { try player.exchange(for: Self.message(request)) }
        case .recording(let recorder, nil): return record(request, recorder, receiver)
        case .recording(let recorder, let player?):
            let cancelled = replay(to: receiver) { throw URLError(.cancelled) }
            return CassetteChoiceTask(clock, cancelled: cancelled) { [self] in
                do {
                    guard let exchange = try player.exchange(ifRecorded: Self.message(request)) else {
                        return record(request, recorder, receiver)
                    }
                    return replay(to: receiver) { exchange }
                } catch {
                    return replay(to: receiver) { throw error }
                }
            }
        }
    }

    static func message(_ request: any URLRequestEncodable) throws -> Cassette.Message {
        try SentRequest(request).readingBody().received.message(nil)
    }

    private func replay(
        to receiver: any BodyReceiver, _ find: @escaping @Sendable () throws -> Cassette.Exchange
    ) -> DeliveringTask {
        DeliveringTask(receiver, clock) { CassetteReplayTask($0, clock, find: find) }
    }

    private func record(
        _ request: any URLRequestEncodable, _ recorder: CassetteRecorder, _ receiver: any BodyReceiver
    ) -> RecordingTask {
        let number = Mutex<Int?>(nil)
        let receiver = RecordingReceiver(receiver) { result in
            if let number = number.withLock({ $0 }) { recorder.end(number, result) }
        }
        return RecordingTask(send(request, to: receiver), onCancel: receiver.didCancel) {
            guard let sent = try? SentRequest(request) else { return }  // the session reports the error
            let added = recorder.begin(sent)
            number.withLock { $0 = added }
        }
    }

    private func send(_ request: any URLRequestEncodable, to receiver: any BodyReceiver) -> any StreamTask {
        if let session = session as? any StreamingSession {
            return session.streamTask(request: request, receiver: receiver)
        }
        return DeliveringTask(receiver) { delivery in
            session.dataTask(request: request) { delivery.finish($0, $1.map(ResponseHead.init), $2) }
        }
    }
}
