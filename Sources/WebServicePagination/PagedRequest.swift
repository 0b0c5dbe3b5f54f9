public import WebServiceCore
import WebServiceEndpoints

/// A typed request for one page of a list. The requests for the other pages are derived from it.
///
/// ```swift
/// struct BrewersRequest: HTTPServiceRequest, PagedRequest {
///     var cursor: String?
///     typealias Output = BrewersResponse
///
///     func request(for service: WebService) -> Request { … }
///
///     func at(_ cursor: String) -> BrewersRequest { BrewersRequest(cursor: cursor) }
///     func page(of output: BrewersResponse, response: Response) -> Page<Brewer, String> {
///         Page(output.brewers, next: output.nextCursor)
///     }
/// }
/// for try await brewer in service.pages(of: BrewersRequest()).items() { … }
/// ```
/// If the header field `Link` links the pages of a list, the position is a `URL`:
/// ```swift
/// func page(of output: [Brewer], response: Response) throws -> Page<Brewer, URL> {
///     Page(output, next: try response.pageLink())
/// }
/// ```
public protocol PagedRequest: ServiceRequest {
    /// The type of an item in the list.
    associatedtype Item: Sendable
    /// The type that identifies a page, such as an offset or a cursor.
    associatedtype Position: Hashable & Codable & Sendable

    /// Returns the same request for the page at another position.
    func at(_ position: Position) -> Self

    /// Returns the page that the output contains.
    ///
    /// The page has the position of the next page, or no position if it is the last page.
    ///
    /// - Parameters:
    ///   - output: The output of the request.
    ///   - response: The response. It has no header fields if the output was read from a storage or
    ///     comes from an endpoint that sends no request.
    /// - Throws: An error if the output is invalid. It becomes the error of the page.
    func page(of output: Output, response: Response) throws -> Page<Item, Position>
}

extension WebService {
    /// Returns a paginator that sends a typed request for each page of a list.
    ///
    /// ```swift
    /// let brewers = service.pages(of: BrewersRequest()) {
    ///     service.perform($0, fetchPolicy: .serverElseCache)
    /// }
    /// ```
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages, not counting the last
    ///     page. Defaults to 10.
    ///   - task: Returns a task for a request. Defaults to `nil`, which means
    ///     `perform(_:key:duplicates:)`.
    public func pages<Paged: PagedRequest>(
        of request: Paged, maximumEmptyPages: Int = 10,
        performing task: (@Sendable (_ request: Paged) -> TypedTask<Paged.Output>)? = nil
    ) -> Paginator<Paged.Item, Paged.Position> {
        .cursor(maximumEmptyPages: maximumEmptyPages) { position in
            let request = position.map(request.at) ?? request
            return (task?(request) ?? self.perform(request)).mapWithResponse { try request.page(of: $0, response: $1) }
        }
    }
}
