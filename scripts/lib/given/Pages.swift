struct Visits: Codable, Sendable {
    var visits: [String]
    var next: String?
}
