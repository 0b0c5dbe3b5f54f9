import Foundation
import WebServiceCore
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Requests that are sent to the server.
extension CacheExchange {
    /// Sends a GET or QUERY request and stores the response. The validators of a stored successful
    /// response are sent, unless the request has its own condition.
    func load(_ stored: CachedResponse?) async throws -> Response {
        let plain = demands.message(request)
        var message = plain
        let isOwnCondition = request.headers[.ifNoneMatch] != nil || request.headers["If-Modified-Since"] != nil
        if let stored, stored.isSuccess, !isOwnCondition {
            message.headers[.ifNoneMatch] = stored.eTag
            message.headers["If-Modified-Since"] = stored.lastModified
            message.options[CacheConditions.self] = true
        }
        let flight = cache.beginFlight(key, clock)
        let (result, requestTime, responseTime) = await send(message)
        if let stored, let stale = try staleResponse(stored, insteadOf: result, at: responseTime) { return stale }
        let response = try result.get()
        guard response.status == 304 else {
            return store(response, flight, requestTime: requestTime, responseTime: responseTime)
        }
        guard let stored else {
            next.record(.cache, "not stored: status 304")
            return response
        }
        let updated = stored.validated(by: response, requestTime, responseTime)
        if isOwnCondition {
            receiveNotModified(response, to: stored, updated: updated, flight)
            return response
        }
        if let validated = try validatedResponse(response, to: stored, updated: updated, flight) { return validated }
        return try await reload(plain, flight)
    }

    /// Updates the stored response after a 304 response to a condition that the caller set.
    private func receiveNotModified(
        _ response: Response, to stored: CachedResponse, updated: CachedResponse?, _ flight: CacheFlight
    ) {
        // The 304 applies only if both responses have the same entity tag.
        let isSame = stored.eTag?.utf8.elementsEqual((response.header(.eTag) ?? "").utf8) == true
        if let updated, isSame { return replace(stored, by: updated, flight) }
        if updated == nil, stored.contradicts(response) { update(flight) { [selecting] in $0.remove(for: selecting) } }
        next.record(.cache, "not stored: status 304")
    }

    /// Returns the stored response after a 304 response to its validators. If the server has a
    /// different representation, removes the stored response and returns `nil`.
    private func validatedResponse(
        _ response: Response, to stored: CachedResponse, updated: CachedResponse?, _ flight: CacheFlight
    ) throws -> Response? {
        if let updated {
            if !stored.isOnlyConfirmed(by: response) { replace(stored, by: updated, flight) }
            if let validated = updated.revalidatedResponse(by: response, url: url) {
                next.record(.cache, "validated")
                try checkSize(stored)
                return adding(stored.body, to: validated)
            }
        }
        next.record(.cache, "the 304 response does not match the stored response")
        update(flight) { [selecting] in $0.remove(for: selecting) }
        return nil
    }

    /// Sends a GET or QUERY request without validators and stores the response.
    private func reload(_ plain: Request, _ flight: CacheFlight) async throws -> Response {
        let (result, requestTime, responseTime) = await send(plain)
        let response = try result.get()
        guard response.status != 304 else { throw URLError(.badServerResponse) }  // no condition was sent
        return store(response, flight, requestTime: requestTime, responseTime: responseTime)
    }

    /// Sends a HEAD request and updates the stored response with the received header fields (RFC
    /// 9111, section 4.3.5).
    func loadHead(_ stored: CachedResponse?) async throws -> Response {
        let flight = cache.beginFlight(key, clock)
        let (result, requestTime, responseTime) = await send(demands.message(request))
        if let stored, let stale = try staleResponse(stored, insteadOf: result, at: responseTime) { return stale }
        let response = try result.get()
        if let stored, response.redirects.isEmpty {
            if response.status == 200, let updated = stored.validated(by: response, requestTime, responseTime) {
                replace(stored, by: updated, flight)
            } else if response.status < 300 || [404, 410].contains(response.status) {
                update(flight) { [selecting] in $0.remove(for: selecting) }
            }
        }
        return response
    }

    private func send(
        _ message: Request
    ) async -> (Result<Response, any Error>, requestTime: Date, responseTime: Date) {
        let requestTime = clock.date
        let result = await next.result(of: message)
        return (result, requestTime, clock.date)
    }

    /// Returns the stored response in place of a server error or a connection error (RFC 5861,
    /// section 4), or if a later interceptor, such as a circuit breaker or a rate limiter, refused
    /// to send the request. Returns `nil` for any other result, or if the stored response must not
    /// be used.
    private func staleResponse(
        _ stored: CachedResponse, insteadOf result: Result<Response, any Error>, at now: Date
    ) throws -> Response? {
        switch result {
        case .success(let response): guard [500, 502, 503, 504].contains(response.status) else { return nil }
        case .failure(let error as WebServiceError):
            guard WebServiceError.Code.refusals.contains(error.code) else { return nil }
        case .failure(let error):
            guard let error = error as? URLError, RetryPolicy.defaultErrorCodes.contains(error.code) else { return nil }
        }
        guard demands.outlastsError(stored, at: now, usesHeuristics: cache.usesHeuristics) else { return nil }
        try checkSize(stored)
        next.record(.cache, "stale, in place of an error")
        return stored.response(url: url, hasBody: request.method != .HEAD, at: now).map { adding(stored.body, to: $0) }
    }

    /// Stores a response to a GET or QUERY request, or removes the stored responses that it
    /// invalidates.
    ///
    /// - Returns: The response. A streamed response is stored after its reader has received the
    ///   body.
    private func store(
        _ response: Response, _ flight: CacheFlight, requestTime: Date, responseTime: Date
    ) -> Response {
        guard demands.stores else {
            next.record(.cache, "not stored: no-store in the request")
            return response
        }
        do throws(CacheRefusal) {
            var storable = try CachedResponse(
                response, to: selecting, account: account, requestTime: requestTime, responseTime: responseTime)
            try checkSentFields(storable.selection)
            storable.origin = Origin(url)
            if response.isStreamed { return try copying(response, as: storable, flight) }
            update(flight) { [selecting, storable] in $0.insert(storable, for: selecting) }
        } catch {
            next.record(.cache, "not stored: \(error.reason)")
            let isNew =
                (200..<400).contains(response.status) && response.status != 206 || [404, 410].contains(response.status)
            if response.redirects.isEmpty, isNew { update(flight) { [selecting] in $0.remove(for: selecting) } }
        }
        return response
    }

    /// Returns a streamed response whose body is copied to a file while it is read. The response is
    /// stored when the body is complete.
    private func copying(
        _ response: Response, as storable: CachedResponse, _ flight: CacheFlight
    ) throws(CacheRefusal) -> Response {
        guard let bodies = cache.bodies else { return response }  // unreachable: the request bypassed the cache
        guard response.header(.contentType)?.isOfEventStream != true else {
            throw CacheRefusal("the response is an event stream")
        }
        let length = response.streamLength
        guard length ?? 0 <= bodies.maximumBodyBytes else { throw .tooLarge(bodies) }
        let changes = changes(flight, next.streamRecord)
        let onRefusal: @Sendable (CacheRefusal) -> Void = { [selecting] refusal in
            changes.record(.cache, "not stored: \(refusal.reason)")
            changes.make { $0.remove(for: selecting) }  // the stored response is older
        }
        let draft = BodyDraft(in: bodies, for: key, expecting: length, next.clock) { [selecting] draft in
            var storable = storable
            storable.body = .file(draft.file, nil)
            changes.make(with: draft, onRefusal: onRefusal) { [storable] in $0.insert(storable, for: selecting) }
        } onRefusal: {
            onRefusal($0)
        }
        guard let copied = response.copyingBody(to: draft) else {
            throw CacheRefusal("another cache stores the streamed body")
        }
        return copied
    }

    /// Replaces the stored response with the updated one, or removes it if it must no longer be
    /// stored. Does nothing if a newer response has been stored in the meantime.
    private func replace(_ stored: CachedResponse, by updated: CachedResponse, _ flight: CacheFlight) {
        guard demands.stores else { return next.record(.cache, "not stored: no-store in the request") }
        var replacement: CachedResponse? = updated
        do throws(CacheRefusal) {
            replacement?.selection = try CachedResponse.selection(
                updated.status, updated.headers, to: selecting, account: account)
            if let replacement { try checkSentFields(replacement.selection) }
        } catch {
            next.record(.cache, "not stored: \(error.reason)")
            replacement = nil
        }
        update(flight) { [selecting, replacement] variants in
            guard let current = variants.match(selecting), current.responseTime == stored.responseTime else { return }
            if var replacement {
                replacement.body = current.body  // the updated response may have read it from the file
                variants.insert(replacement, for: selecting)
            } else {
                variants.remove(for: selecting)
            }
        }
    }

    /// Checks that the fields that select a response were sent with the values that the cache read.
    /// After the cache read the values, the cookie jar may have received cookies, and later
    /// interceptors, the delegate or the session may have added fields.
    private func checkSentFields(_ selection: CacheSelection) throws(CacheRefusal) {
        guard account != nil || !sessionAddsCredentials else {
            throw CacheRefusal("the session adds credentials, and no account is named")
        }
        guard let sent = next.sentHeaders else { return }
        var request = request
        request.headers = sent
        let fields = CacheSelection.fields(of: request, in: selection.scope)
        let isComplete = fields == CacheSelection.fields(of: selecting, in: selection.scope)
        let cookies = selection.names.filter { $0 == "cookie" }
        guard isComplete, fields.union(cookies).allSatisfy({ request.headers[$0] == selecting.headers[$0] }) else {
            throw CacheRefusal("a header field that selects the response was changed after the cache read it")
        }
    }

    private func update(_ flight: CacheFlight, _ change: @escaping @Sendable (inout CachedVariants) -> Void) {
        changes(flight) { [next] in next.record($0, $1) }.make(change)
    }

    private func changes(
        _ flight: CacheFlight, _ record: @escaping @Sendable (Timeline.Kind, String) -> Void
    ) -> CacheChanges {
        CacheChanges(cache: cache, key: key, account: account, flight: flight, clock: clock, record: record)
    }
}

/// Changes to the stored responses for one request.
private struct CacheChanges: Sendable {
    let cache: ResponseCache
    let key: StorageKey
    let account: String?
    let flight: CacheFlight
    let clock: TaskClock
    let record: @Sendable (Timeline.Kind, String) -> Void

    /// Changes the stored responses. If the account has changed, the response could belong to
    /// either account, so the change is not made.
    func make(
        with draft: BodyDraft? = nil, onRefusal: @escaping @Sendable (CacheRefusal) -> Void = { _ in },
        _ change: @escaping @Sendable (inout CachedVariants) -> Void
    ) {
        if cache.account() != account {
            record(.cache, "not stored: the account has changed since the exchange started")
        } else if flight.isOvertaken {
            record(.cache, "not stored: the stored responses were removed while the request was in flight")
        } else if cache.update(key, flight, at: clock.date, with: draft, onRefusal: onRefusal, change) {
            return
        } else {
            record(.cache, "not stored: too many changes are pending in the storage")
        }
        draft?.discard()
    }
}

extension String {
    /// Whether a media type or a list of media types includes the type of event streams.
    var isOfEventStream: Bool { asciiLowercased().contains("text/event-stream") }
}

extension CachedResponse {
    /// Returns the stored response updated by a 304 response or by the response to a HEAD request.
    /// Returns `nil` if the received response describes a different representation (RFC 9111,
    /// sections 4.3.4 and 4.3.5).
    ///
    /// `If-None-Match` compares weakly (RFC 9110, section 13.1.2), but a response with a strong
    /// entity tag must not update a stored response with a weak one. A 304 response with such a tag
    /// confirms the stored response, which is returned unchanged.
    fileprivate func validated(by response: Response, _ requestTime: Date, _ responseTime: Date) -> CachedResponse? {
        guard response.redirects.isEmpty, response.status == 304 ? isSuccess : status == 200 else { return nil }
        if contradicts(response) { return nil }
        if isOnlyConfirmed(by: response) { return self }
        if eTag == nil || response.header(.eTag) == nil, let old = lastModified,
            let new = response.header("Last-Modified"), old != new
        {
            return nil
        }
        if response.status != 304 {
            for name in [Headers.Name("Last-Modified"), .contentLength, .eTag] {
                guard let old = headers[name], let new = response.header(name) else { continue }
                if !old.utf8.elementsEqual(new.utf8) { return nil }
            }
        }
        return freshened(by: response, requestTime: requestTime, responseTime: responseTime)
    }

    /// Returns whether a 304 response must not update the fields of the stored response.
    fileprivate func isOnlyConfirmed(by response: Response) -> Bool {
        guard response.status == 304, let old = eTag, let new = response.header(.eTag) else { return false }
        return !EntityTag.describes(new, old)
    }

    /// Returns whether a response has an entity tag that does not weakly match the stored one.
    fileprivate func contradicts(_ response: Response) -> Bool {
        guard let old = eTag, let new = response.header(.eTag) else { return false }
        return !EntityTag.isValid(new) || !EntityTag.matchesWeakly(new, old)
    }
}
