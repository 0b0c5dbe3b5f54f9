public import Foundation

/// The exchange that an ``ExchangeEvent`` belongs to: a ``SessionTask``, typed request or read of a
/// storage.
public final class ObservedExchange: Sendable {
    /// The identifier, unique among the exchanges of this process.
    ///
    /// The identifier of a typed request is ``EndpointContext/id``.
    public let id: UInt64

    /// The identifier of the exchange on whose behalf this one is sent; `nil` if there is none.
    ///
    /// The parent is the typed request whose endpoint sends the exchange, the download that the
    /// request belongs to, or the exchange whose stored response is validated in the background
    /// (`stale-while-revalidate`). A shared response belongs to the typed request that was started
    /// first (``Timeline/Event/related``).
    public let parent: UInt64?

    /// The request of the task, before the interceptors; `nil` for a typed request and the read of
    /// a storage.
    public let request: Request?

    /// A Boolean value that indicates whether the exchange consists of other exchanges
    /// (``parent``): a typed request, the read of a storage, or a download.
    public let isComposite: Bool

    /// The type of a typed request.
    private let type: (any Sendable.Type)?

    /// The date when the task was resumed.
    public let date: Date

    init(
        id: UInt64, parent: UInt64?, request: Request?, type: (any Sendable.Type)?, isComposite: Bool, date: Date
    ) {
        self.id = id
        self.parent = parent
        self.request = request
        self.type = type
        self.isComposite = isComposite
        self.date = date
    }

    /// A description that is safe to log: the type of a typed request, or the method and the URL
    /// without its query.
    public var name: String { type.map { "\($0)" } ?? request?.description ?? "" }

    /// The value of a tag of the request (``Request/Options``).
    ///
    /// Defaults to the ``RequestTagKey/defaultValue`` of its key.
    public subscript<Key: RequestTagKey>(key: Key.Type) -> Key.Value {
        request?.options[key] ?? Key.defaultValue
    }
}
