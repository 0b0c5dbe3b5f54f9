public import Foundation

/// What a service performs typed requests with.
struct TypedConfiguration: Sendable {
    var endpoints: [any ServiceEndpoint] = [HTTPEndpoint()]
    var storages: [any ResponseStorage] = []
    var storageAccount: String?
    var storageErrorObserver: (@Sendable (StorageFailure) -> Void)?
    var activity = ActivityCounter.shared
    /// Shared by clones, as the storages are.
    let order = StorageOrder()

    /// Where answers to a request are kept; `nil` when they are not.
    func place(of request: any ServiceRequest) -> StoragePlace? {
        guard let request = request as? any StorableRequest, let key = request.storageKey(account: storageAccount),
            let storage = storages.first(where: { $0.isFor(request) })
        else { return nil }
        return StoragePlace(storage: storage, key: key)
    }

    func report(_ operation: StorageFailure.Operation, _ place: StoragePlace?, _ storage: any ResponseStorage, _ error: any Error) {
        storageErrorObserver?(StorageFailure(operation: operation, key: place?.key, storage: storage, error: error))
    }
}

/// One key of one storage.
struct StoragePlace: Sendable {
    let storage: any ResponseStorage
    let key: StorageKey
}

extension WebService {
    /// Makes a service for typed requests.
    ///
    /// - Parameters:
    ///   - baseURL: See ``baseURL``.
    ///   - endpoints: See ``endpoints``.
    ///   - storages: See ``storages``.
    public convenience init(baseURL: URL? = nil, endpoints: [any ServiceEndpoint], storages: [any ResponseStorage] = []) {
        self.init(baseURL: baseURL)
        changeTyped { typed in
            typed.endpoints = endpoints
            typed.storages = storages
        }
    }

    /// What performs typed requests; the first one that supports a request serves it. One ``HTTPEndpoint`` unless set.
    public var endpoints: [any ServiceEndpoint] {
        get { typed.endpoints }
        set { changeTyped { $0.endpoints = newValue } }
    }

    /// Where successful answers to typed requests are kept; the first one that supports a request and its classification keeps its answer. None unless set.
    public var storages: [any ResponseStorage] {
        get { typed.storages }
        set { changeTyped { $0.storages = newValue } }
    }

    /// Whose answers are stored and read; `nil`, the default, for nobody's. It is part of every key, so that what one account has stored is never read by
    /// another. A request takes it when it is begun: an answer that comes after the account has changed is kept for the old one.
    public var storageAccount: String? {
        get { typed.storageAccount }
        set { changeTyped { $0.storageAccount = newValue } }
    }

    /// Hears of storages that fail, in the background; requests never fail because of them. `nil`, the default, for nobody.
    public var storageErrorObserver: (@Sendable (_ failure: StorageFailure) -> Void)? {
        get { typed.storageErrorObserver }
        set { changeTyped { $0.storageErrorObserver = newValue } }
    }

    /// How many typed requests are under way. ``ActivityCounter/shared`` unless set.
    public var activity: ActivityCounter {
        get { typed.activity }
        set { changeTyped { $0.activity = newValue } }
    }
}
