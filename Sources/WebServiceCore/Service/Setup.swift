import Foundation

/// A closure that returns the session that an exchange uses instead of its service's session.
package typealias SessionSubstitution = @Sendable (any Session) -> any Session

/// Returns a substitution that always returns the session; `nil` if there is no session.
func substitution(by session: (any Session)?) -> SessionSubstitution? {
    guard let session else { return nil }
    return { _ in session }
}

/// The configuration of a service, prepared for use by exchanges.
///
/// A setup is immutable. The service replaces its setup with each change, and an exchange reads the
/// current one when its task is resumed.
package final class Setup: Sendable {
    /// The settings of a service.
    struct Settings: Sendable {
        var session: any Session = DefaultSession.shared.session
        var delegate: DelegateReference?
        var interceptors: [any Interceptor] = []
        var observers: [any Observer] = []
        var cookieJar: CookieJar?
        var errorMapper: (any ErrorMapper)?
        var headers = Headers()
        var headerOrigins: Set<Origin> = []
        var options = Request.Options()
        var decoder: any BodyDecoder = JSONDecoder()
        var encoder: any BodyEncoder & Sendable = JSONEncoder()
        /// The account to which the service belongs.
        var scope: AccountScope?
    }

    let settings: Settings
    private let baseOrigin: Origin?
    package let session: any Session
    /// The session, if it delivers responses in parts.
    let streamingSession: (any StreamingSession)?
    /// The interceptors of the service, and the violation of their order if there is one.
    package let order: InterceptorList
    let cookieJar: CookieJar?
    package let delegateReference: DelegateReference?
    package let observers: [any Observer]
    /// The account to which the service belongs.
    let scope: AccountScope?
    /// The header fields that are sent only to certain origins.
    let boundFields: [Request.BoundFields]
    /// The options of the requests that the service creates.
    let inheritedOptions: Request.Options

    /// - Parameter baseOrigin: The origin of the base URL of the service.
    init(_ settings: Settings, baseOrigin: Origin? = nil) {
        self.settings = settings
        self.baseOrigin = baseOrigin
        session = settings.session
        streamingSession = session as? any StreamingSession
        order = InterceptorList(settings.interceptors)
        cookieJar = settings.cookieJar
        delegateReference = settings.delegate
        observers = settings.observers
        scope = settings.scope
        let origins = settings.headerOrigins.union([baseOrigin].compactMap(\.self))
        let bound = Request.BoundFields(settings.headers, origins: origins)
        boundFields = bound.fields.isEmpty ? [] : [bound]
        inheritedOptions = settings.options.inherited
    }

    /// Returns a copy with changed settings, for one call.
    func with(_ change: (inout Settings) -> Void) -> Setup {
        var settings = settings
        change(&settings)
        return Setup(settings, baseOrigin: baseOrigin)
    }

    /// The delegate, held weakly; `nil` if there is none.
    var delegate: (any ServicePassthroughDelegate)? { delegateReference?.delegate }

    /// Whether the session can send a body while the body is being produced.
    var sendsStreams: Bool { session is any UploadingSession }

    /// Returns whether custom code that may ignore a cancellation runs before a request is sent: a
    /// body provider, an interceptor, or the sequence of a body that must be collected.
    func runsCustomCode(for request: Request) -> Bool {
        request.hasBodyProvider || !order.interceptors.isEmpty || !request.options.interceptors.isEmpty
            || request.hasStreamedBody && !sendsStreams
    }
}

/// A boxed weak reference to a delegate. The box allows the state that contains it to be moved as
/// plain memory, which is impossible with an inline weak reference.
package final class DelegateReference: Sendable {
    private struct Reference: Sendable {
        weak var delegate: (any ServicePassthroughDelegate)?
    }

    private let reference: Mutex<Reference>

    init(_ delegate: any ServicePassthroughDelegate) {
        reference = Mutex(Reference(delegate: delegate))
    }

    var delegate: (any ServicePassthroughDelegate)? { reference.withLock { $0.delegate } }
}
