public import Foundation
public import WebServiceCore

extension Paginator where Position == URL {
    /// Returns a paginator for pages whose `Link` header field contains the next page (RFC 8288).
    ///
    /// ```swift
    /// let brewers = Paginator.links(from: service.request(.GET, path: "/brewers")) { request in
    ///     service.sessionTask(request: request).decode([Brewer].self)
    /// }
    /// ```
    /// The request for a later page is the first request with the link as its URL. The header
    /// fields, the interceptors and the body are retained. Parameters in the URL are not retained,
    /// because the link contains its own.
    ///
    /// A link is followed only to the `Origin` of the first request and to `origins`, so the
    /// request's data is not sent elsewhere. A link to any other origin fails with
    /// `WebServiceError.Code.linkRefused`, and so does a link on a page that was redirected to
    /// another origin. The credentials of an `Authentication` are controlled by its own
    /// `Authentication.origins`, not by this parameter.
    ///
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - relation: The relation type of the link to follow, such as `prev` to page backward.
    ///     Defaults to `next`.
    ///   - origins: The origins, in addition to that of the first request, that links may lead to.
    ///     The request's header fields are also sent there, except those of `WebService.headers`
    ///     that are limited to an origin. Defaults to none.
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages, not counting the last
    ///     page. Defaults to 10.
    ///   - items: Returns a task for a request. If it throws an error, ``moveNext()`` throws the
    ///     same error, or `URLError.cancelled` for a `CancellationError`. A response that was read
    ///     from a storage has no links and fails with `WebServiceError.Code.linkRefused`.
    public static func links(
        from request: Request, relation: String = "next", origins: Set<Origin> = [], maximumEmptyPages: Int = 10,
        items: @escaping @Sendable (_ request: Request) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        let allowed = origins.union([request.url.flatMap(Origin.init)].compactMap(\.self))
        return Paginator(maximumEmptyPages: maximumEmptyPages) { position in
            if let position, !allowed(position) {
                throw Response.refused(Response.otherOrigin, nil)
            }
            let task = try await items(position.map(request.following) ?? request)
            let found = try await task.value
            let response = try await task.response
            var page = Page(found, next: try response.pageLink(relation, allowed), response: response)
            page.address = response.url
            return page
        }
    }

}

extension Response {
    /// Returns the target of a link to another page of a list (RFC 8288), for a ``PagedRequest``.
    ///
    /// Only links to the origin of the request and to `origins` are returned, because the request
    /// for the next page contains the header fields of the service.
    ///
    /// - Parameters:
    ///   - relation: The relation type of the link. Defaults to `next`.
    ///   - origins: The origins, in addition to that of the request, that links may lead to.
    ///     Defaults to none.
    /// - Returns: `nil` if there is no such link.
    /// - Throws: `WebServiceError.Code.linkRefused` if the link leads to another origin or is not a
    ///   URL, if the page with the link was redirected to another origin, or if the response has no
    ///   header fields.
    public func pageLink(_ relation: String = "next", origins: Set<Origin> = []) throws -> URL? {
        let first = redirects.first ?? url
        let allowed = origins.union([first.flatMap(Origin.init)].compactMap(\.self))
        guard let next = try pageLink(relation, allowed) else { return nil }
        guard allowed(next) else {
            throw Self.refused(Self.otherOrigin, self)
        }
        return next
    }

    fileprivate func pageLink(_ relation: String, _ allowed: Set<Origin>) throws -> URL? {
        guard let url else {
            throw Self.refused("a response without header fields has no links; request the page from the server", self)
        }
        guard let link = link(relation) else { return nil }
        guard allowed(url) else {
            throw Self.refused(
                "the page with the link was redirected to another origin; add that origin to 'origins' if it is "
                    + "trusted",
                self)
        }
        guard let target = URL(string: link.target) else {
            throw Self.refused("the link to the next page is not a valid URL", self)
        }
        return target
    }

    fileprivate static let otherOrigin =
        "the next page is at an origin that is not allowed; add that origin to 'origins' if it is trusted"

    fileprivate static func refused(_ message: String, _ response: Response?) -> WebServiceError {
        WebServiceError(.linkRefused, message, response: response)
    }
}

extension Set<Origin> {
    fileprivate func callAsFunction(_ url: URL) -> Bool {
        Origin(url).map(contains) ?? false
    }
}

extension Request {
    /// Returns the same request for a URL received from the server.
    fileprivate func following(_ url: URL) -> Request {
        var next = self
        next.url = url
        next.queryParameters = nil
        if encodesParametersInURL { next.parameters = nil }
        return next
    }
}
