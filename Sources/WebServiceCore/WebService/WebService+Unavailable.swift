import Foundation

// Members that users of other frameworks look for, each with a message that names the replacement.

extension WebService {
    /// Unavailable: use an interceptor.
    @available(*, unavailable, message: "add .headers(_:) to interceptors")
    public var headers: Headers {
        get { Headers() }
        set {}
    }

    /// Unavailable: decoders are arguments.
    @available(*, unavailable, message: "pass the decoder to decode(_:decoder:), or define it in the typed request")
    public var decoder: any BodyDecoder {
        get { JSONDecoder() }
        set {}
    }

    /// Unavailable: a logger is a delegate.
    @available(*, unavailable, message: "set passthroughDelegate to a RequestLogger, and retain the logger")
    public var logger: RequestLogger? {
        get { nil }
        set {}
    }
}
