import WebServiceCore
import WebServiceEndpoints
import WebServiceStorage

/// A brewer.
struct Brewer: Codable, Hashable, Sendable, Identifiable {
    var id: Int
    var name: String
    var state: String
}

/// The request for one brewer. Its value is stored, so that it can be shown before the server has
/// responded.
struct BrewerRequest: ParameterizedRequest, ValueStorableRequest, Hashable {
    typealias Output = Brewer

    var id: Int

    var path: String { "/brewers/{id}" }
    var pathParameters: Parameters { ["id": id] }
    var storageIdentifier: String? { "brewer \(id)" }
}
