public import Foundation
public import WebServiceCore

extension Outbox {
    /// The settings of an outbox.
    public struct Options: Sendable {
        /// The maximum number of requests in flight; values below 1 count as 1. Defaults to 4.
        public var maximumConcurrentRequests = 4
        /// The pause after the first failure, of an entry or of the whole outbox; it doubles with
        /// each further failure. Each pause is reduced by up to half at random. Defaults to 1
        /// second.
        public var firstPause = Duration.seconds(1)
        /// The maximum pause. If the server requires a longer one with `Retry-After`, only the
        /// entry pauses longer, for up to 6 hours. A shorter one has no effect. Defaults to 5
        /// minutes.
        public var maximumPause = Duration.seconds(300)
        /// The number of attempts after which a temporary failure counts as permanent, or `nil` for
        /// no limit. Attempts without a connection are not counted. Defaults to `nil`.
        public var maximumAttempts: Int?
        /// The maximum number of entries and stored responses. Defaults to 10,000.
        public var maximumCount = 10_000
        /// The maximum size of a body in memory, in bytes. Defaults to 16 MiB.
        public var maximumBodyBytes = 16 << 20
        /// The maximum size of a body that is a file or contains files, in bytes. Each entry needs
        /// this space on the disk, so an outbox may need ``maximumCount`` times as much. Defaults
        /// to 1 GiB.
        public var maximumFileBytes = 1 << 30
        /// The number of bytes of a response's body that are stored for a request with
        /// `storesResponse`. Defaults to 64 KiB.
        public var maximumResponseBytes = 64 << 10
        /// The header fields that are stored although their names look like those of credentials.
        /// Defaults to none.
        public var storedFields: Set<Headers.Name> = []
        /// Returns whether an entry may be sent now, for example only with Wi-Fi or while the
        /// device is charging.
        ///
        /// Called in the background before each attempt, for several entries at the same time, and
        /// never before the earlier entries of the entity are sent. An entry that may not be sent
        /// is held until ``Outbox/reevaluate()`` or ``Outbox/retry(_:)`` is called, or the outbox
        /// is opened again. ``Outbox/close()`` waits for calls in progress. Defaults to `nil`:
        /// always.
        public var canSend: (@Sendable (_ entry: Entry) async -> Bool)?
        /// The time between a change by this or another process and the reading of the folder, and
        /// the interval at which it is read if the system does not notify of changes.
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
        /// The date of the submission; that of the error if the stored request has not been read.
        public let date: Date
        /// The key with which a later submission replaces this entry.
        public internal(set) var key: String?
        /// The date from which the entry is not sent.
        public internal(set) var expirationDate: Date?
        /// Whether the response is stored; see ``Outbox/responses``.
        public internal(set) var storesResponse = false
        /// The current state.
        public internal(set) var state = State.waiting
        /// The number of attempts in this process, including one in flight; those that could not
        /// connect are not counted.
        public internal(set) var attempts = 0
        /// The kind of the last failure in this process; `nil` if there was none. If the stored
        /// request cannot be read, it is `.error(.storage)`.
        public internal(set) var lastFailure: Failure.Kind?
    }

    /// A change that ``Outbox/updates`` delivers.
    public enum Update: Sendable, Hashable {
        /// An entry was added, or has another state.
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
        /// Retains the entry, and sends neither it nor a later one of its entity until
        /// ``Outbox/retry(_:)`` is called or the outbox is opened again.
        case keep
        /// Sends another request in its place, with a new `Idempotency-Key`. An expiration date
        /// that has passed does not apply to it. If the other request
        /// cannot be stored, the entry is blocked, as with ``Outbox/Decision/keep``.
        case replace(Request)
    }

    /// A permanent failure of an entry.
    public struct Failure: Sendable {
        /// The kind of a failure. It contains no secrets.
        public enum Kind: Sendable, Hashable {
            /// A response that does not show that the server has accepted the request, by its
            /// status: one outside 200 to 299, 207, or that of an HTML page.
            case status(Int)
            /// An error of the transport.
            case transport(URLError.Code)
            /// An error of this library.
            case error(WebServiceError.Code)
            /// An error of another type, by the name of the type.
            case other(String)
        }

        /// The entry.
        public let entry: Entry
        /// The request that was sent, without the changes by interceptors.
        public let request: Request
        /// The response; `nil` if there was none. If its body is incomplete or too large, ``error``
        /// specifies the reason.
        public let response: Response?
        /// The error; `nil` if a whole response was received.
        public let error: (any Error)?
        /// The kind of the failure.
        public let kind: Kind
    }
}

extension Outbox.Entry {
    /// The state of an entry.
    public enum State: Sendable, Hashable {
        /// The entry is not sent yet: earlier ones precede it, the maximum number of requests is
        /// in flight, the whole outbox pauses, or another process sends.
        case waiting
        /// A request is in flight.
        case sending
        /// ``Outbox/Options/canSend`` has returned `false`.
        case held
        /// The request is sent again after a temporary failure, but not before this date.
        case pausing(until: Date)
        /// The request has failed permanently, and the decision was ``Outbox/Decision/keep``.
        case blocked
        /// The request has succeeded, and its entry was removed.
        case sent
        /// The entry was removed or replaced before it succeeded, or another process has sent,
        /// removed or replaced it.
        case removed
    }
}

extension WebServiceError.Code {
    /// A request that was not stored because the outbox has the maximum number of entries.
    public static let outboxFull = WebServiceError.Code("outboxFull")
    /// An entry of an outbox that was not sent before its expiration date.
    public static let entryExpired = WebServiceError.Code("entryExpired")
    /// A submission after ``Outbox/close()``.
    public static let outboxClosed = WebServiceError.Code("outboxClosed")
}
