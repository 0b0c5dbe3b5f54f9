/// A typed request for one page of a list, which can be used again for another one.
///
/// ```swift
/// struct BrewersRequest: HTTPServiceRequest, PagedRequest {
///     var cursor: String?
///     typealias Output = BrewersAnswer
///
///     func request(for service: WebService) -> Request { … }
///
///     func at(_ cursor: String) -> BrewersRequest { BrewersRequest(cursor: cursor) }
///     func page(of answer: BrewersAnswer) -> Page<Brewer, String> { Page(answer.brewers, next: answer.nextCursor) }
/// }
/// for try await brewer in service.pages(of: BrewersRequest()).items() { … }
/// ```
public protocol PagedRequest: ServiceRequest {
    /// What the list consists of.
    associatedtype Item: Sendable
    /// What a page is found by, such as an offset or a cursor.
    associatedtype Position: Hashable & Codable & Sendable

    /// The same request for the page at another position.
    func at(_ position: Position) -> Self

    /// The page that an answer to this request is, with the position of the next one; without one it is the last.
    ///
    /// - Throws: Whatever is wrong with the answer; the error of the page.
    func page(of output: Output) throws -> Page<Item, Position>
}

extension WebService {
    /// Makes a paginator for a list, with a typed request for each page.
    ///
    /// ```swift
    /// let brewers = service.pages(of: BrewersRequest()) { service.perform($0, cachePolicy: .serverElseCache) }
    /// ```
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - maximumEmptyPages: How many pages in a row may be empty while others follow.
    ///   - task: Performs a request in a way of your own; `nil` for ``perform(_:key:duplicates:)``.
    public func pages<Paged: PagedRequest>(
        of request: Paged, maximumEmptyPages: Int = 10, performing task: (@Sendable (_ request: Paged) -> TypedTask<Paged.Output>)? = nil
    ) -> Paginator<Paged.Item, Paged.Position> {
        .cursor(maximumEmptyPages: maximumEmptyPages) { position in
            let request = position.map(request.at) ?? request
            return (task?(request) ?? self.perform(request)).map { try request.page(of: $0) }
        }
    }
}
