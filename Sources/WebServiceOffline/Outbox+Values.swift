public import Foundation
public import WebServiceCore

extension Outbox {
    /// The settings of an outbox.
    public struct Options: Sendable {
        /// The maximum number of requests in flight. Values below 1 count as 1. Defaults to 4.
        public var maximumConcurrentRequests = 4
        /// The pause after the first failure of an entry or of the whole outbox. It doubles with
        /// each further failure, and is shortened by up to half at random. Defaults to 1 second.
        public var firstPause = Duration.seconds(1)
        /// The maximum pause. If the server requests a longer pause with `Retry-After`, only the
        /// entry pauses longer, for up to 6 hours. A `Retry-After` that is shorter than the current
        /// pause has no effect. Defaults to 5 minutes.
        public var maximumPause = Duration.seconds(300)
        /// The number of attempts by this process after which a temporary failure counts as
        /// permanent. Attempts that found no connection are not counted. Defaults to `nil`, which
        /// means no limit.
        public var maximumAttempts: Int?
        /// The maximum number of entries and stored responses. Defaults to 10,000.
        public var maximumCount = 10_000
        /// The maximum size of a body in memory, in bytes. Defaults to 16 MiB.
        public var maximumBodyBytes = 16 << 20
        /// The maximum size of a body that is a file or contains files, in bytes. Each entry may
        /// need this much disk space, so an outbox may need ``maximumCount`` times as much.
        /// Defaults to 1 GiB.
        public var maximumFileBytes = 1 << 30
        /// The maximum number of bytes that are stored of a response's body if the request was
        /// submitted with `storesResponse`. Defaults to 64 KiB.
        public var maximumResponseBytes = 64 << 10
        /// The header fields that are stored even though their names resemble those of credentials.
        /// Defaults to none.
        public var storedFields: Set<Headers.Name> = []
        /// Returns whether an entry may be sent now, for example only if Wi-Fi is available or
        /// while the device is charging.
        ///
        /// Called in the background before each attempt, for several entries at the same time, but
        /// only after the earlier entries of the same entity have been sent or removed. An entry
        /// that may not be sent is held until ``Outbox/reevaluate()`` or ``Outbox/retry(_:)`` is
        /// called or the outbox is opened again. ``Outbox/close()`` waits for calls in progress.
        /// Defaults to `nil`, which means that entries may always be sent.
        public var canSend: (@Sendable (_ entry: Entry) async -> Bool)?
        /// The delay between a change and the reading of the folder. If the system does not report
        /// changes, this is also the interval at which the folder is read.
        package var pollInterval = Duration.seconds(1)

        /// Creates the default settings.
        public init() {}
    }

    /// A request in the outbox.
    public struct Entry: Sendable, Hashable, Identifiable {
        /// The identifier that
        /// ``Outbox/submit(_:entity:replacing:expires:storesResponse:)-(Request,_,_,_,_)``
        /// returned.
        public let id: UUID
        /// The identifier of the object that the request changes; `nil` if the request is
        /// independent of all others, or if the stored request could not be read.
        public let entity: String?
        /// The date of the submission, or the date of the error if the stored request could not be
        /// read.
        public let date: Date
        /// The key that a later submission can use to replace this entry.
        public internal(set) var key: String?
        /// The date from which the entry is no longer sent.
        public internal(set) var expirationDate: Date?
        /// Whether the response is stored; see ``Outbox/responses``.
        public internal(set) var storesResponse = false
        /// The current state.
        public internal(set) var state = State.waiting
        /// The number of attempts in this process, including one in flight. Attempts that found no
        /// connection are not counted.
        public internal(set) var attempts = 0
        /// The kind of the last failure in this process; `nil` if there was none. If the stored
        /// request cannot be read, the value is `.error(.storage)`.
        public internal(set) var lastFailure: Failure.Kind?
    }

    /// A change that ``Outbox/updates`` delivers.
    public enum Update: Sendable, Hashable {
        /// An entry was added, or its state changed.
        case entry(Entry)
        /// A damaged file was renamed.
        case damagedFile(URL)
        /// The file of an entry, or the folder, cannot be read, for example because of its
        /// permissions. It is read again after a pause. Until then, the later entries of the same
        /// entity are not sent.
        case unreadable(URL)
    }

    /// What happens to an entry after a permanent failure.
    public enum Decision: Sendable {
        /// Removes the entry.
        case drop
        /// Retains the entry. Neither the entry nor a later entry of its entity is sent until
        /// ``Outbox/retry(_:)`` is called, the entry is removed or replaced, or the outbox is
        /// opened again.
        case keep
        /// Sends another request instead, with a new `Idempotency-Key`. An expiration date that has
        /// passed does not apply to this request. If the request cannot be stored, the entry is
        /// blocked, as with ``Outbox/Decision/keep``.
        case replace(Request)
    }

    /// A permanent failure of an entry.
    public struct Failure: Sendable {
        /// The kind of a failure. It contains no secrets.
        public enum Kind: Sendable, Hashable {
            /// A response that does not show that the server has accepted the request. Its status
            /// is outside 200 to 299 or is 207, or the response is an HTML page. The associated
            /// value is the status.
            case status(Int)
            /// An error of the transport.
            case transport(URLError.Code)
            /// An error of this library.
            case error(WebServiceError.Code)
            /// An error of another type. The associated value is the name of the type.
            case other(String)
        }

        /// The entry whose request failed.
        public let entry: Entry
        /// The request that was sent, without the changes that interceptors made.
        public let request: Request
        /// The response; `nil` if there was none. If its body is incomplete or too large, ``error``
        /// contains the reason.
        public let response: Response?
        /// The error; `nil` if a complete response was received.
        public let error: (any Error)?
        /// The kind of the failure.
        public let kind: Kind
    }
}

extension Outbox.Entry {
    /// The state of an entry.
    public enum State: Sendable, Hashable {
        /// The entry waits to be sent, for example because earlier entries precede it, the maximum
        /// number of requests is in flight, the whole outbox is paused, or another process sends
        /// the entries.
        case waiting
        /// A request is in flight.
        case sending
        /// ``Outbox/Options/canSend`` has returned `false`.
        case held
        /// The request failed temporarily. Usually, it is not sent again before this date.
        case pausing(until: Date)
        /// The request failed permanently, and the decision was ``Outbox/Decision/keep``, or the
        /// replacement could not be stored.
        case blocked
        /// The request succeeded, and its entry was removed.
        case sent
        /// The entry was removed or replaced before its request succeeded, or another process sent,
        /// removed or replaced it.
        case removed
    }
}

extension WebServiceError.Code {
    /// A request was not stored because the outbox contains the maximum number of entries and
    /// responses.
    public static let outboxFull = WebServiceError.Code("outboxFull")
    /// An entry of an outbox was not sent before its expiration date.
    public static let entryExpired = WebServiceError.Code("entryExpired")
    /// A request was submitted after the outbox was closed.
    public static let outboxClosed = WebServiceError.Code("outboxClosed")
}
