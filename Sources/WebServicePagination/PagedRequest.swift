public import WebServiceCore
import WebServiceEndpoints

/// A typed request for one page of a list, from which the requests for the other pages are derived.
///
/// ```swift
/// struct BrewersRequest: HTTPServiceRequest, PagedRequest {
///     var cursor: String?
///     typealias Output = BrewersAnswer
///
///     func request(for service: WebService) -> Request { … }
///
///     func at(_ cursor: String) -> BrewersRequest { BrewersRequest(cursor: cursor) }
///     func page(of output: BrewersAnswer, response: Response) -> Page<Brewer, String> {
///         Page(output.brewers, next: output.nextCursor)
///     }
/// }
/// for try await brewer in service.pages(of: BrewersRequest()).items() { … }
/// ```
/// For a list whose pages are linked by the header field `Link`, the position is a `URL`:
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
    /// The page has the position of the next page, or none if it is the last page.
    ///
    /// - Parameters:
    ///   - output: The output of the request.
    ///   - response: The response; without header fields if the output was read from a storage or
    ///     comes from an endpoint that sends no request.
    /// - Throws: An error if the output is invalid; it becomes the error of the page.
    func page(of output: Output, response: Response) throws -> Page<Item, Position>
}

extension WebService {
    /// Creates a paginator for a list, with a typed request for each page.
    ///
    /// ```swift
    /// let brewers = service.pages(of: BrewersRequest()) {
    ///     service.perform($0, fetchPolicy: .serverElseCache)
    /// }
    /// ```
    /// - Parameters:
    ///   - request: The request for the first page.
    ///   - maximumEmptyPages: The maximum number of consecutive empty pages that are not the last.
    ///     Defaults to 10.
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
