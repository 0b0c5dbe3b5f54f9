import Foundation
public import WebServiceCore
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension WebService {
    /// Creates a task for a typed request.
    ///
    /// The task starts when it is resumed or awaited.
    ///
    /// The first endpoint that supports the request fetches and processes the response. If the
    /// request is storable and succeeds, the response is then stored. The task retains the service
    /// until the task completes, so a request of a temporary service can be awaited. If both the
    /// service and the task of a request in flight are deallocated, the request ends with
    /// `URLError.cancelled`.
    ///
    /// In addition to the errors of the endpoint, the task can fail with
    /// `WebServiceError.Code.noEndpoint`, `WebServiceError.Code.duplicateRequest`,
    /// `WebServiceError.Code.unexpectedOutput` and `URLError.cancelled`. The request defines which
    /// statuses count as success. The task's `validate` methods can only restrict them further.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - key: A key that identifies the request for lookups and comparisons. Defaults to `nil`,
    ///     which means that the request identifies itself.
    ///   - duplicates: What to do if an equal request is in flight when the task is resumed.
    ///     Defaults to `DuplicateMode.allow`.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        task(request, key, duplicates, configure: nil)
    }

    /// Creates a task for a typed request with options for this call; see
    /// `perform(_:key:duplicates:)`.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - key: See `perform(_:key:duplicates:)`.
    ///   - duplicates: See `perform(_:key:duplicates:)`. Tasks that join share the exchange and the
    ///     options of the call that started it.
    ///   - configure: A closure that changes each `Request` that the endpoint sends for this call,
    ///     for example its timeouts, priority, tags or header fields. It is called in the
    ///     background, after `request(for:)`.
    @_disfavoredOverload  // prefers `completion` for a trailing closure
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        configuring configure: @escaping @Sendable (_ request: inout WebServiceCore.Request) -> Void
    ) -> TypedTask<Request.Output> {
        task(request, key, duplicates, configure: configure)
    }

    private func task<Request: ServiceRequest>(
        _ request: Request, _ key: (any Hashable & Sendable)?, _ duplicates: DuplicateMode,
        configure: (@Sendable (inout WebServiceCore.Request) -> Void)?
    ) -> TypedTask<Request.Output> {
        let outcome = TypedResult<Request.Output>()
        return TypedTask(core, providing: outcome, type: Request.self, owner: TaskOwner(self)) { [core] task in
            let id = core.observe(task, Request.self)
            core.begin(
                request, id: id, core.typed.configuration, key: key.map(RequestKey.init), duplicates: duplicates,
                configure: configure, task: task
            ) { outcome.take($0, task, isJoined: $0.id != id) }
        }
    }
}

extension ServiceCore {
    /// Sets the delegate and the observers of the task of a typed request.
    ///
    /// - Returns: The identifier of the request.
    func observe(_ task: SessionTask, _ type: any ServiceRequest.Type) -> UInt64 {
        let (setup, id) = (setup, EventQueue.makeID())
        task.observe(setup.delegateReference)
        task.observe(by: setup.observers, nil, type: type, id: id)
        return id
    }

    /// Starts a typed request when its task is resumed for the first time. It fails the task, joins
    /// an existing flight, or starts a new one.
    ///
    /// - Parameters:
    ///   - id: The identifier of the request (``observe(_:_:)``).
    ///   - configure: A closure that changes the requests of the endpoint; `nil` if there are no
    ///     changes.
    ///   - deliver: A closure that delivers the response to the task and returns whether the task
    ///     accepted it.
    func begin(
        _ request: any ServiceRequest, id: UInt64, _ typed: TypedConfiguration, key: RequestKey?,
        duplicates: DuplicateMode, configure: (@Sendable (inout Request) -> Void)? = nil, task: SessionTask,
        deliver: @escaping @Sendable (RequestRegistry.Delivery) -> Bool
    ) {
        let shared = request as? SharedRequest
        let endpoints = shared == nil ? typed.endpoints : [SharedEndpoint()]
        guard let endpoint = endpoints.first(where: { $0.supports(request) }) else {
            let message = "no endpoint supports \(type(of: request)); add one to 'endpoints'"
            task.complete(.failure(WebServiceError(.noEndpoint, message)))
            return
        }
        let place = typed.place(of: request)
        let recorder = FlightRecorder(task)
        let context = EndpointContext(id: id, core: self, flight: recorder, configure: configure)
        let flight = RequestRegistry.Flight(
            id: context.id, request, key: key, account: typed.storageAccount, storageKey: place?.key
        ) { turn in
            HandlerPool.startImmediately(on: self.clock.work) {
                if let turn, await !turn.value { return }
                // Tasks of other deadline scopes may also wait for the response.
                await DeadlineScope.$current.withValue(nil) {
                    await self.fly(request, to: endpoint, in: context, place: place, typed)
                }
            }
        }
        switch typed.registry.enter(flight, duplicates, RequestRegistry.Waiter(task: task, deliver: deliver)) {
        case .starts(let last):
            task.attach(RequestRegistry.Ticket(registry: typed.registry, flight: flight.id, waiter: flight.id))
            if let last { task.record(.queued, related: last) }
            typed.registry.start(flight)
        case .waits(let id):
            task.record(.joined, related: id)
            task.attach(RequestRegistry.Ticket(registry: typed.registry, flight: id, waiter: flight.id))
        case .duplicate(let isOfSameType):
            let name = shared?.summary ?? "\(type(of: request))"
            let message =
                isOfSameType
                ? "\(key == nil ? "an equal request" : "a request with the same key") is in flight: \(name); "
                    + "use .join instead of .reject to share its response"
                : "a request of another type with the same key is in flight and cannot share its response with "
                    + "\(name); use another key"
            task.complete(.failure(WebServiceError(.duplicateRequest, message)))
        }
    }

    /// Executes a flight: fetches and processes the response, delivers the result to every waiter,
    /// and stores it.
    private func fly(
        _ request: any ServiceRequest, to endpoint: any ServiceEndpoint, in context: EndpointContext,
        place: StoragePlace?, _ typed: TypedConfiguration
    ) async {
        let activity = endpoint.countsAsActivity ? typed.activity : nil
        activity?.add(1)
        var rawData: (any RawDataSource)?
        let result: Result<any Sendable, any Error>
        do {
            let fetched = try await endpoint.fetch(request, in: context)
            rawData = fetched
            let value = try await PerformingService.$core.withValue(self) {
                try await endpoint.process(fetched, of: request, isFromStorage: false)
            }
            result = .success(try request.output(value))
        } catch {
            result = .failure(Self.completed(error, context.flight.exchange))
        }
        activity?.add(-1)

        let date = clock.date
        let storable = rawData?.isStorable == false ? nil : place
        let isWanted = storable.map { _ in Once<Bool>() }
        // The change is scheduled before any waiter receives the result, so a subsequent read finds
        // the stored value.
        var refusal: WebServiceError?
        let ended = typed.registry.end(
            context.id, isSuccess: (try? result.get()) != nil  // the error is delivered below
        ) { [rawData] flight in
            guard let storable, let isWanted, case .success(let output) = result else { return }
            do throws(WebServiceError) {
                try typed.order.change(storable.key) {
                    guard await isWanted.value, flight.waiters.values.contains(where: { !$0.task.isCancelRequested })
                    else { return }
                    await self.store(
                        output, rawData, of: request, in: storable, date: date, typed,
                        recordingIn: context.flight)
                }
            } catch {
                refusal = error
            }
        }
        if let refusal, let storable {
            typed.report(refusal, of: .store, key: storable.key, in: storable.storage)
            context.flight.starter.record(.storage, "not stored: \(refusal.message)")
        }
        guard let flight = ended else { return }
        let exchange = context.flight.exchange
        let response: Result<Response, any Error>
        switch result {
        case .failure(let error) where rawData == nil: response = .failure(error)
        default: response = exchange?.result ?? .success(Response(body: nil, source: .endpoint, attempts: 0))
        }
        let delivery = RequestRegistry.Delivery(
            id: flight.id, result: result, response: response, exchange: exchange)
        let isAccepted = flight.waiters.values.reduce(false) { $1.deliver(delivery) || $0 }
        isWanted?.set(isAccepted)
    }

    /// Returns the error, with the request of the exchange added if it is missing.
    private static func completed(_ error: any Error, _ exchange: FlightRecorder.Sent?) -> any Error {
        if error is CancellationError { return URLError(.cancelled) }
        guard var known = error as? WebServiceError, known.request == nil else { return error }
        known.request = exchange?.request
        return known
    }
}

extension ServiceRequest {
    /// Returns a value from an endpoint as the output of the request.
    func output(_ value: any Sendable) throws -> Output {
        guard let output = value as? Output else {
            throw WebServiceError(
                .unexpectedOutput, "the endpoint returned \(type(of: value)) for \(Self.self) instead of \(Output.self)"
            )
        }
        return output
    }
}
