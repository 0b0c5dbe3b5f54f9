import Foundation
import WebServiceCore
import WebServicePagination
import WebServiceTransfers

/// A brewer.
struct Brewer: Codable, Hashable, Sendable {
    var id: Int
    var name: String
    var state: String
}

/// An order of beer.
struct Order: Codable, Hashable, Sendable {
    var brewer: Int
    var kegs: Int
}

/// The confirmation of an order.
struct Receipt: Codable, Hashable, Sendable {
    var number: Int
}

/// A change of the beer on tap.
struct Tapping: Codable, Hashable, Sendable {
    var tap: Int
    var beer: String
}

/// The requests of the brewery API.
///
/// Each method returns a task or a sequence. Awaiting its value, or reading its first element,
/// sends the request.
struct BreweryClient: Sendable {
    let service: WebService

    /// Returns the brewers, page by page.
    func brewers(in state: String?) -> Paginator<Brewer, Int> {
        .offset(itemsPerPage: 20, end: .shortPage) { [service] offset, limit in
            service.GET("/brewers")
                .setQueryParameters(["state": state, "offset": offset, "limit": limit])
                .decode([Brewer].self)
        }
    }

    func brewer(_ id: Int) -> TypedTask<Brewer> {
        service.GET("/brewers/{id}", pathParameters: ["id": id]).decode(Brewer.self)
    }

    func order(_ order: Order, token: String) -> TypedTask<Receipt> {
        service.POST("/orders").setJSON(order).intercepted(by: .bearer(token)).decode(Receipt.self)
    }

    /// Returns a download, which continues an interrupted one to the same file.
    func poster(to file: URL) -> TypedTask<DownloadedFile> {
        service.GET("/poster").download(to: file)
    }

    /// Returns the changes on tap. After an interruption, the stream continues after the last
    /// event.
    func tappings() -> ServerSentEvent.Stream<Tapping> {
        service.GET("/tappings").events(Tapping.self, .reconnecting(baseDelay: .milliseconds(100)))
    }
}
