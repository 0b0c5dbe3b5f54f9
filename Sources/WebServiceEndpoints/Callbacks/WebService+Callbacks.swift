public import WebServiceCore
public import WebServiceStorage

/// Typed requests and storage reads that deliver their result to a closure or a delegate. An
/// `async` function awaits the task instead.
extension WebService {
    /// Starts a typed request; see `perform(_:key:duplicates:)`.
    ///
    /// The closure is called once with the result, on the main actor.
    ///
    /// - Returns: A task that can be used to cancel the request or to add handlers.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Starts a typed request; see `perform(_:key:duplicates:)`.
    ///
    /// The delegate, which is held weakly, receives the result once, on the main actor.
    ///
    /// - Returns: A task that can be used to cancel the request or to add handlers.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        delegate: any ServiceDelegate
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates) { [weak delegate] response in
            delegate?.serviceDidRespond(response.convert(), to: request, key: key, isFromStorage: false)
        }
    }

    /// Reads the stored response to a request immediately; see `stored(_:maximumAge:_:)`.
    ///
    /// The closure is called once with the result, on the main actor.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<SourcedValue<Request.Output>>) -> Void
    ) -> TypedTask<SourcedValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Reads the stored response to a request immediately; see `stored(_:maximumAge:_:)`.
    ///
    /// The delegate, which is held weakly, receives the result and the key once, on the main actor.
    /// If `onlyData` is `true`, it does not receive errors and cancellations.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, maximumAge: Duration? = nil,
        _ dependency: StorageReadDependency = .independent, onlyData: Bool = false, delegate: any ServiceDelegate
    ) -> TypedTask<SourcedValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency) { [weak delegate] response in
            let response = response.map { $0.value as any Sendable }
            if onlyData, response.data == nil { return }
            delegate?.serviceDidRespond(response, to: request, key: key, isFromStorage: true)
        }
    }
}
