import Foundation

struct Brewer: Codable, Sendable {
    var name: String
}

let text = "ale"
let folder = FileManager.default.temporaryDirectory
