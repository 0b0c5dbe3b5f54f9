public import Foundation

extension Paginator where Position == URL {
    /// Pages that name the next one in the header field `Link` (RFC 8288).
    ///
    /// ```swift
    /// let brewers = Paginator.links(from: service.request(.GET, path: "/brewers")) { request in
    ///     service.sessionTask(request: request).decode([Brewer].self)
    /// }
    /// ```
    /// The request for a later page is the first one with the link as its URL: header fields, interceptors and a body stay, parameters for the URL do
    /// not, because the link holds its own. A link is followed to the first request's ``Origin`` and to `origins`, so that what the request carries
    /// stays there; any other, also one on a page that was redirected to elsewhere, is ``WebServiceError/Code/linkRefused``. Only an
    /// ``Authentication`` decides about its credentials by itself: `origins` says nothing to it.
    ///
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - relation: The type of the link that leads on, such as `prev` to go back.
    ///   - origins: Origins beside that of the first request that links may lead to. Header fields of the request go there as well.
    ///   - maximumEmptyPages: How many pages in a row may be empty while others follow.
    ///   - items: Makes the task for a request; what it throws is thrown by ``moveNext()``. A stored answer has no links, which is
    ///     ``WebServiceError/Code/linkRefused`` as well.
    public static func links(
        from request: Request, relation: String = "next", origins: Set<Origin> = [], maximumEmptyPages: Int = 10,
        items: @escaping @Sendable (_ request: Request) async throws -> TypedTask<[Item]>
    ) -> Paginator {
        let allowed = origins.union([request.url.flatMap(Origin.init)].compactMap(\.self))
        return Paginator(maximumEmptyPages: maximumEmptyPages) { position in
            if let position, !allowed(position) { throw refused("the next page lies at another origin", nil) }
            let task = try await items(position.map(request.following) ?? request)
            let found = try await task.value
            let response = try await task.response
            var page = Page(found, next: try next(response, relation, allowed), response: response)
            page.address = response.url
            return page
        }
    }

    private static func next(_ response: Response, _ relation: String, _ allowed: Set<Origin>) throws -> URL? {
        guard let here = response.url else { throw refused("an answer without header fields has no links", response) }
        guard let link = response.link(relation) else { return nil }
        guard allowed(here) else { throw refused("a page from another origin has a link", response) }
        guard let url = URL(string: link.target) else { throw refused("the link to the next page is no URL", response) }
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
    /// The same request for a URL that a server has given.
    fileprivate func following(_ url: URL) -> Request {
        var next = self
        next.url = url
        next.queryParameters = nil
        if method.encodesParametersInURL { next.parameters = nil }
        return next
    }
}
