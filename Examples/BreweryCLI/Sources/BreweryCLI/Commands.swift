import ArgumentParser
import Foundation
import WebServiceCore

struct List: BreweryCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the brewers, one per line.")

    @OptionGroup var options: ServiceOptions
    @Option(help: "Only the brewers of this state.")
    var state: String?
    @Option(help: "The maximum number of brewers.")
    var limit: Int?

    func run(_ client: BreweryClient, _ console: Console) async throws {
        var count = 0
        // Each page is requested when the loop reaches it, so a limit saves requests.
        for try await brewer in client.brewers(in: state).items() {
            console.print("\(brewer.id)\t\(brewer.name)\t\(brewer.state)")
            count += 1
            if count == limit { break }
        }
    }

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit needs a positive number") }
    }
}

struct Show: BreweryCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one brewer.")

    @OptionGroup var options: ServiceOptions
    @Argument(help: "The number of the brewer.")
    var id: Int

    func run(_ client: BreweryClient, _ console: Console) async throws {
        let brewer = try await client.brewer(id).value
        console.print("\(brewer.name) (\(brewer.state))")
    }
}

struct PlaceOrder: BreweryCommand {
    static let configuration = CommandConfiguration(
        commandName: "order", abstract: "Orders beer.",
        discussion: "The token is read from the variable BREWERY_TOKEN; the token of --demo is 'demo'.")

    @OptionGroup var options: ServiceOptions
    @Argument(help: "The number of the brewer.")
    var id: Int
    @Option(help: "The number of kegs.")
    var kegs = 1

    func run(_ client: BreweryClient, _ console: Console) async throws {
        // The arguments of a process are visible to other users, so a token is not one of them.
        guard let token = console.environment["BREWERY_TOKEN"], !token.isEmpty else {
            throw Failure(exitCode: .noPermission, reason: "set the variable BREWERY_TOKEN to your token")
        }
        let receipt = try await client.order(Order(brewer: id, kegs: kegs), token: token).value
        console.print("order \(receipt.number)")
    }
}

struct Download: BreweryCommand {
    static let configuration = CommandConfiguration(
        abstract: "Downloads the poster, and continues an interrupted download.")

    @OptionGroup var options: ServiceOptions
    @Option(help: "The file.")
    var to = "poster.bin"

    func run(_ client: BreweryClient, _ console: Console) async throws {
        let task = client.poster(to: URL(fileURLWithPath: to)).resume()
        for await progress in task.progress {
            console.status("\(Int((progress.fractionReceived ?? 0) * 100)) %")
        }
        console.status(nil)
        let file = try await task.value
        console.print("\(file.url.lastPathComponent): \(file.byteCount) bytes")
    }
}

struct Watch: BreweryCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the changes on tap until Ctrl-C.")

    @OptionGroup var options: ServiceOptions
    @Option(help: "Stop after this number of changes.")
    var count: Int?

    func run(_ client: BreweryClient, _ console: Console) async throws {
        var seen = 0
        for try await tapping in client.tappings() {
            console.print("tap \(tapping.tap): \(tapping.beer)")
            seen += 1
            if seen == count { return }  // leaving the loop closes the connection
        }
    }
}
