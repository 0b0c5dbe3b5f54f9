import Foundation

struct Brewer: Codable, Sendable {
    var name: String
}
