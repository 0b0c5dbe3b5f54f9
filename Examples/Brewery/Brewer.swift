import Foundation

/// A brewer in the format of the API.
struct Brewer: Codable, Sendable, Equatable {
    var id: Int?
    var name: String
    var state: String
}

extension Brewer: CustomStringConvertible {
    var description: String {
        "\(id.map { "#\($0) " } ?? "")\(name) (\(state))"
    }
}
