public import WebServiceCore
public import WebServiceStorage

/// Typed requests whose type is not known at compile time, such as the elements of a list of `any
/// ServiceRequest`.
///
/// `ServiceResponse.convert(to:)` and `ServiceResponse.convert(for:)` restore the type of the
/// value. If the type of a request is known, the compiler prefers the generic methods.
extension WebService {
    /// Creates a task for a request of any type; see `perform(_:key:duplicates:)`.
    @_disfavoredOverload
    public func perform(
        _ request: any ServiceRequest, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<any Sendable> {
        erased(request, key, duplicates)
    }

    /// Starts a request of any type.
    ///
    /// The closure is called once with the result, on the main actor.
    @_disfavoredOverload
    @discardableResult
    public func perform(
        _ request: any ServiceRequest, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<any Sendable>) -> Void
    ) -> TypedTask<any Sendable> {
        erased(request, key, duplicates).observeOnMain({ $0 }, { completion(ServiceResponse($0)) }).resume()
    }

    /// Starts a request of any type.
    ///
    /// The delegate, which is held weakly, receives the result once, on the main actor.
    @_disfavoredOverload
    @discardableResult
    public func perform(
        _ request: any ServiceRequest, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        delegate: any ServiceDelegate
    ) -> TypedTask<any Sendable> {
        perform(request, key: key, duplicates: duplicates) { [weak delegate] response in
            delegate?.serviceDidRespond(response, to: request, key: key, isFromStorage: false)
        }
    }

    /// Creates a task that reads the stored response to a request of any type; see
    /// `stored(_:maximumAge:_:)`.
    @_disfavoredOverload
    public func stored(
        _ request: any StorableRequest, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<any Sendable>> {
        erasedStored(request, maximumAge, dependency)
    }

    /// Reads the stored response to a request of any type immediately; see
    /// `stored(_:maximumAge:_:)`.
    ///
    /// The closure is called once with the result, on the main actor.
    @_disfavoredOverload
    @discardableResult
    public func stored(
        _ request: any StorableRequest, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<SourcedValue<any Sendable>>) -> Void
    ) -> TypedTask<SourcedValue<any Sendable>> {
        erasedStored(request, maximumAge, dependency).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Reads the stored response to a request of any type immediately; see
    /// `stored(_:maximumAge:_:)`.
    ///
    /// The delegate, which is held weakly, receives the result and the key once, on the main actor.
    /// If `onlyData` is `true`, it does not receive errors and cancellations.
    @_disfavoredOverload
    @discardableResult
    public func stored(
        _ request: any StorableRequest, key: (any Hashable & Sendable)? = nil, maximumAge: Duration? = nil,
        _ dependency: StorageReadDependency = .independent, onlyData: Bool = false, delegate: any ServiceDelegate
    ) -> TypedTask<SourcedValue<any Sendable>> {
        stored(request, maximumAge: maximumAge, dependency) { [weak delegate] response in
            if onlyData, response.data == nil { return }
            delegate?.serviceDidRespond(response.map(\.value), to: request, key: key, isFromStorage: true)
        }
    }

    private func erased<Request: ServiceRequest>(
        _ request: Request, _ key: (any Hashable & Sendable)?, _ duplicates: DuplicateMode
    ) -> TypedTask<any Sendable> {
        let task: TypedTask<Request.Output> = perform(request, key: key, duplicates: duplicates)
        return task.map { $0 }
    }

    private func erasedStored<Request: StorableRequest>(
        _ request: Request, _ maximumAge: Duration?, _ dependency: StorageReadDependency
    ) -> TypedTask<SourcedValue<any Sendable>> {
        readStored(request, maximumAge: maximumAge, dependency) {
            SourcedValue($0.value, source: $0.source, age: $0.age, date: $0.date)
        }
    }
}
