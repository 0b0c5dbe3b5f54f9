struct Brewer: Codable, Sendable {
    var name: String
}

let text = "ale"
