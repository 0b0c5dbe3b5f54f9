/// The defaults of requests and of services.
///
/// ``headers`` and ``options`` are copied into a request when the service creates it, with
/// ``request(_:path:pathParameters:)`` or a method such as ``GET(_:pathParameters:file:line:)``.
/// The request can change these values, and a later change of the service does not affect the
/// request. A ``Request`` or `URLRequest` that was created elsewhere has its own header fields and
/// options.
extension WebService {
    /// The header fields of the requests that the service creates. Defaults to none.
    ///
    /// They are sent only to the origin of the base URL and to ``headerOrigins``. A request for an
    /// absolute URL of another origin has none of them except `Accept`, `Accept-Encoding`,
    /// `Accept-Language` and `User-Agent`. The other fields are also removed when an interceptor,
    /// the delegate, a link to another page or a redirect changes the URL of the request to another
    /// origin.
    public var headers: Headers {
        get { core.requestDefaults.headers }
        set { core.configure { $0.headers = newValue } }
    }

    /// The origins to which ``headers`` are sent, in addition to the origin of the base URL.
    /// Defaults to none.
    public var headerOrigins: Set<Origin> {
        get { core.settings.headerOrigins }
        set { core.configure { $0.headerOrigins = newValue } }
    }

    /// The options of the requests that the service creates.
    public var options: Request.Options {
        get { core.settings.options }
        set { core.configure { $0.options = newValue } }
    }

    /// The decoder of typed requests, and of the methods of ``SessionTask`` whose `decoder` is
    /// `nil`. Defaults to a `JSONDecoder`.
    ///
    /// A method of ``SessionTask`` reads this property when the method is called. Typed requests
    /// use this decoder unless they define another one (`HTTPServiceRequest.decoder`).
    /// ``Response/decode(_:decoder:)`` has a parameter for the decoder instead.
    public var decoder: any BodyDecoder {
        get { core.decoder }
        set { core.configure { $0.decoder = newValue } }
    }

    /// The encoder of typed requests, and of ``SessionTask/setJSON(_:encoder:)`` if it is called
    /// without an encoder. Defaults to a `JSONEncoder`.
    ///
    /// `setJSON` reads this property when it is called. Typed requests use this encoder unless they
    /// define another one (`ParameterizedRequest.encoder`).
    /// ``Request/serialize(_:encoder:contentType:)`` has a parameter for the encoder instead.
    public var encoder: any BodyEncoder & Sendable {
        get { core.encoder }
        set { core.configure { $0.encoder = newValue } }
    }

    /// The session of each new service in this process. Defaults to ``FoundationSession/shared``.
    ///
    /// After a service has been created or this property has been read, the session can no longer
    /// be set.
    public static var defaultSession: any Session { DefaultSession.shared.session }

    /// Sets ``defaultSession``, which is possible only once and before the session is used.
    ///
    /// - Throws: ``WebServiceError/Code/defaultSessionInUse`` if the default session was set or
    ///   used before. The default session then remains unchanged.
    public static func setDefaultSession(_ session: any Session) throws {
        try DefaultSession.shared.set(session)
    }
}
