public import Foundation

extension Paginator where Position == URL {
    /// Returns a paginator for pages whose header field `Link` contains the next page (RFC 8288).
    ///
    /// ```swift
    /// let brewers = Paginator.links(from: service.request(.GET, path: "/brewers")) { request in
    ///     service.sessionTask(request: request).decode([Brewer].self)
    /// }
    /// ```
    /// The request for a later page is the first request with the link as its URL: header fields,
    /// interceptors and the body are retained; parameters in the URL are not, because the link
    /// contains its own.
    ///
    /// A link is followed only to the ``Origin`` of the first request and to `origins`, so that the
    /// request's data is not sent elsewhere. A link to any other origin, or on a page that was
    /// redirected to another origin, fails with ``WebServiceError/Code/linkRefused``. The
    /// credentials of an ``Authentication`` are controlled by its own ``Authentication/origins``,
    /// not by this parameter.
    ///
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - relation: The relation type of the link to follow, such as `prev` to page backward.
    ///     Defaults to `next`.
    ///   - origins: The origins, in addition to that of the first request, that links may lead to.
    ///     The header fields of the request are sent there as well.
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages that are not the last.
    ///     Defaults to 10.
    ///   - items: Returns a task for a request; ``moveNext()`` rethrows its errors. A response read
    ///     from a storage has no links and fails with ``WebServiceError/Code/linkRefused``.
    public static func links(
        from request: Request, relation: String = "next", origins: Set<Origin> = [], maximumEmptyPages: Int = 10,
        items: @escaping @Sendable (_ request: Request) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        let allowed = origins.union([request.url.flatMap(Origin.init)].compactMap(\.self))
        return Paginator(maximumEmptyPages: maximumEmptyPages) { position in
            if let position, !allowed(position) {
                throw refused("the next page is at an origin other than the allowed ones", nil)
            }
            let task = try await items(position.map(request.following) ?? request)
            let found = try await task.value
            let response = try await task.response
            var page = Page(found, next: try next(response, relation, allowed), response: response)
            page.address = response.url
            return page
        }
    }

    private static func next(_ response: Response, _ relation: String, _ allowed: Set<Origin>) throws -> URL? {
        guard let here = response.url else { throw refused("a response without header fields has no links", response) }
        guard let link = response.link(relation) else { return nil }
        guard allowed(here) else { throw refused("the page with the link was redirected to another origin", response) }
        guard let url = URL(string: link.target) else {
            throw refused("the link to the next page is not a valid URL", response)
        }
        return url
    }

    private static func refused(_ message: String, _ response: Response?) -> WebServiceError {
        WebServiceError(.linkRefused, message, response: response?.urlResponse, body: response?.data)
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
