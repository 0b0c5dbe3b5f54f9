import Foundation

struct Brewer: Codable, Sendable {
    var name: String
}

struct Sensor: Sendable {
    func readings() -> AsyncStream<Data> { AsyncStream { $0.finish() } }
}

let sensor = Sensor()
let lines = AsyncStream<Data> { $0.finish() }
let destination = FileManager.default.temporaryDirectory.appendingPathComponent("brew.iso")
let menu = FileManager.default.temporaryDirectory.appendingPathComponent("menu.pdf")
let hash = String(repeating: "0", count: 64)
let film = FileManager.default.temporaryDirectory.appendingPathComponent("film.mp4")
