public import Foundation
public import WebServiceCore

extension OAuth {
    /// Begins a log-in on a device without a browser (RFC 8628).
    ///
    /// ```swift
    /// let device = try await oauth.deviceAuthorization(scopes: ["profile"])
    /// print("Open \(device.verificationURL) and enter \(device.userCode).")
    /// let tokens = try await device.tokens()
    /// ```
    /// - Parameter scopes: The requested scopes; by default, those that the server chooses.
    /// - Throws: `WebServiceError.Code.invalidServerMetadata` if the server has no usable
    ///   endpoint, `WebServiceError.Code.authorizationRefused`,
    ///   `WebServiceError.Code.invalidAuthorization` if the response is invalid, or an error of
    ///   ``metadata()`` or of the request.
    public func deviceAuthorization(scopes: [String] = []) async throws -> DeviceAuthorization {
        let endpoint = try await endpoint(\.deviceAuthorizationEndpoint, "device authorization endpoint")
        _ = try await self.endpoint(\.tokenEndpoint, "token endpoint")  // fails before the user logs in
        let start = peer.clock
        let (instant, date) = (start.now, start.date)
        let kind = ServerDocument.Kind(name: "device authorization response")
        let document = try await send(["scope": scopes.joinedScopes], to: endpoint, kind)
        return try DeviceAuthorization(self, document, since: instant, date)
    }

    /// A log-in on a device without a browser that is in progress.
    ///
    /// Show ``userCode`` and ``verificationURL`` to the user, and await ``tokens()``. The
    /// description of this type omits all values.
    public struct DeviceAuthorization: Sendable {
        /// The maximum time that a user has to log in, even if the server allows more.
        private static let maximumLifetime = Duration.seconds(3600)

        /// The code that the user enters, in visible ASCII and spaces, such as `WDJB-MJHT`.
        public let userCode: String
        /// The URL that the user opens on another device.
        public let verificationURL: URL
        /// The verification URL with the code, for example for a QR code; `nil` if there is none.
        public let completeVerificationURL: URL?
        /// The date at which the code expires, which is at most one hour after the request.
        public let expires: Date

        private let oauth: OAuth
        private let deviceCode: String
        private let interval: Duration
        /// The instant at which the code expires.
        private let end: UInt64

        fileprivate init(_ oauth: OAuth, _ document: ServerDocument, since start: UInt64, _ date: Date) throws {
            self.oauth = oauth
            deviceCode = try document.required("device_code", document.token)
            userCode = try document.required("user_code", document.string)
            verificationURL = try document.required("verification_uri") { try document.url($0, oauth.peer) }
            completeVerificationURL = try document.url("verification_uri_complete", oauth.peer)
            let lifetime = min(try document.required("expires_in", document.seconds), Self.maximumLifetime)
            expires = date.addingTimeInterval(lifetime.inSeconds)
            end = start.addingSaturated(lifetime)
            interval = max(try document.seconds("interval") ?? .seconds(5), .seconds(1))
        }

        /// Waits until the user has logged in, and returns the tokens.
        ///
        /// Polls the server at the interval that it requires. The interval grows by 5 seconds with
        /// each `slow_down` and doubles after a transport error, status 429, or a status of 500 or
        /// above. To end the wait, cancel the task.
        ///
        /// - Throws: `WebServiceError.Code.authorizationExpired` when the code expires;
        ///   `WebServiceError.Code.authorizationRefused`, for example with `access_denied`;
        ///   `WebServiceError.Code.invalidAuthorization`; or another error of the request, for
        ///   example after a cancellation.
        public func tokens() async throws -> Tokens {
            let clock = oauth.peer.clock
            var interval = interval
            while clock.now.addingSaturated(interval) < end {
                try await clock.sleep(for: interval)
                do {
                    return try await oauth.requestTokens([
                        "grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": deviceCode,
                    ])
                } catch let error as WebServiceError {
                    switch error.authorizationFailure?.code {
                    case "authorization_pending": break
                    case "slow_down": interval += .seconds(5)
                    case "expired_token": throw Self.expired
                    case _ where error.status.map { $0 == 429 || $0 >= 500 } ?? false: interval = interval * 2
                    default: throw error
                    }
                } catch is URLError where !Task.isCancelled {
                    interval = interval * 2
                }
            }
            throw Self.expired
        }

        private static let expired = WebServiceError(
            .authorizationExpired,
            "the device code expired before the user logged in; start a new log-in")
    }
}

extension OAuth.DeviceAuthorization: RedactedReflectable {
    /// A description without values.
    public var description: String { "an authorization of a device in progress" }
}
