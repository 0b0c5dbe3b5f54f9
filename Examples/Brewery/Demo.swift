import Foundation
import WebServiceEndpoints
import WebServiceCore
import WebServicePagination
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The steps of the demo, one exchange each.
@MainActor
struct Demo {
    /// The server cannot be reached.
    struct Unreachable: Error {
        let reason: String
    }

    let client: BreweryClient

    /// Runs all steps.
    ///
    /// - Returns: The number of steps that did not have the expected result.
    func run() async throws -> Int {
        let failures = Box(0)
        try await step("List all brewers", client.brewers(), failures) { task in
            task.responseAsBrewers { brewers in say(brewers) }
        }
        try await step("Search with a query", client.brewers(inState: "new york"), failures) { task in
            task.responseAsBrewers { brewers in say(brewers) }
        }
        let added = Box<Int?>(nil)
        try await step(
            "Add a brewer with a JSON body", client.add(Brewer(name: "Trashboat & Söhne", state: "new york")), failures
        ) { task in
            task.responseAsBrewer { brewer in
                added.value = brewer.id
                say("added \(brewer)")
            }
        }
        let id = added.value ?? 4
        try await step("Update it with a form body", client.rename(id, to: "Trashboat + Daughters"), failures) { task in
            task.responseAsBrewer { brewer in say("updated to \(brewer)") }
        }
        try await step("Delete it", client.delete(id), failures) { task in
            task.requireSuccess().updateUI { _ in say("deleted") }
        }
        try await step("Request it again: recover from a 404", client.brewer(id), failures) { task in
            task.requireSuccess()
                .recover { error in
                    guard case BreweryError.status(404) = error else { throw error }
                    return .value("recovered: no brewer has this id")
                }
                .updateUI { value in say(value as? String ?? "") }
        }
        try await step("Request a menu that is not JSON: the decoding fails", client.menu(), fails: true, failures) {
            task in
            task.responseAsBrewers { brewers in say(brewers) }
        }
        try await typed(failures)
        return failures.value
    }

    /// Runs the steps with typed tasks and `await`.
    ///
    /// They include a token refresh and a retry after a 503.
    private func typed(_ failures: Box<Int>) async throws {
        output("\nTyped: count all brewers", .bold)
        do {
            say(count(try await client.brewers().decode([Brewer].self).map(\.count).value, "brewer"))

            output(
                "\nTyped request: the list, requested twice, sent once"
                    + (client.webService.storages.isEmpty ? "" : " and stored"), .bold)
            let brewers = client.webService.createProvider(RequestProvider<BrewersRequest>.self)
            let (first, second) = (
                brewers.perform(duplicates: .join).resume(), brewers.perform(duplicates: .join).resume()
            )
            let list = try await first.value
            _ = try await second.value
            say(list)

            output("\nCache, then server: the stored list, then the response", .bold)
            await client.webService.finishStoring()
            for try await brewers in client.webService.perform(BrewersRequest(), fetchPolicy: .cacheThenServer).values {
                let age = brewers.age?.components.seconds ?? 0
                let source = brewers.isStored ? "stored \(age) s ago" : "from the server"
                say("\(count(brewers.value.count, "brewer")), \(source)")
            }

            output("\nPages: the archive, 20 brewers per page", .bold)
            var seen = 0
            for try await page in client.archive().pages(prefetch: true) {
                seen += page.items.count
                say(
                    String(repeating: "#", count: seen / 5) + String(repeating: ".", count: 9 - min(9, seen / 5))
                        + " \(count(seen, "brewer"))"
                )
            }

            output("\nDownload: a poster of one megabyte, cancelled and continued", .bold)
            try await download()

            output("\nChat: a reply as server-sent events, token by token", .bold)
            var tokens: [String] = []
            for try await token in client.chat(Chat.question) { tokens.append(token.token) }
            say(tokens.joined())
            say("\(count(tokens.count, "token")), each printed when it arrives by 'brewery chat'")

            output("\nTyped: the specials, with a token refresh and a retry after a 503", .bold)
            let authentication = Authentication(
                TokenSource({ .bearer("stale") }) { _ in
                    output("    refreshing the token")
                    return .bearer("fresh")
                })
            client.webService.interceptors = [.retry(), authentication]
            let specials = client.specials()
            say(try await specials.value)
            showTimeline(specials.task.timeline)
        } catch let error as URLError {
            throw Unreachable(reason: error.localizedDescription)
        } catch {
            say("failed: \(error)", .red)
            failures.value += 1
        }
    }

    /// Downloads a file in two parts.
    private func download() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("brewery-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes it later
        func poster(_ bytesPerSecond: Int?) -> TypedTask<DownloadedFile> {
            client.webService.GET("/poster").download(into: folder, bytesPerSecond: bytesPerSecond)
        }
        let first = poster(1_000_000)
        first.onProgress { if $0.bytesReceived > 0 { first.cancel() } }
        do { _ = try await first.value } catch let error as URLError where error.code == .cancelled {
            say("cancelled")
        }
        let file = try await poster(nil).value
        say("\(file.url.lastPathComponent): \(ProgressDisplay.size(file.byteCount))")
        say(file.resumedFrom > 0 ? "continued where the first download ended" : "downloaded at once")
    }

    /// Executes one exchange and prints it.
    ///
    /// - Parameters:
    ///   - fails: Whether the exchange is expected to fail.
    ///   - failures: Counts the exchanges that fail unexpectedly.
    private func step(
        _ title: String, _ task: ServiceTask, fails: Bool = false, _ failures: Box<Int>,
        handlers: (ServiceTask) -> ServiceTask
    ) async throws {
        let request = task.request
        let url = try request.encodeURL(adding: [:])
        output("\n\(title)", .bold)
        output("  > \(request.method) \(url)")
        let unreachable = Box<String?>(nil)
        await withCheckedContinuation { continuation in
            let task = task.response { data, response in
                let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                output("  < \(status), \(data?.count ?? 0) bytes", status < 400 ? .green : .yellow)
            }
            handlers(task)
                .updateErrorUI { error in
                    if let error = error as? URLError {
                        unreachable.value = error.localizedDescription
                    } else {
                        say("failed\(fails ? " as expected" : ""): \(error)", fails ? nil : .red)
                        if !fails { failures.value += 1 }
                    }
                }
                .metricsCollected { metrics in
                    if let time = metrics.responseTime {
                        output("  = \((time / .milliseconds(1)).formatted(.number.precision(.fractionLength(1)))) ms")
                    }
                    continuation.resume()
                }
                .resume()
        }
        if let reason = unreachable.value { throw Unreachable(reason: reason) }
    }
}

/// A value that handlers on the main actor can set.
@MainActor
private final class Box<Value> {
    var value: Value
    init(_ value: Value) { self.value = value }
}

private func say(_ text: String, _ style: Terminal.Style? = nil) {
    output("    \(text)", style)
}

/// Prints the timeline without its common indentation.
private func showTimeline(_ timeline: Timeline) {
    let lines = timeline.description.split(separator: "\n")
    let margin = lines.map { $0.prefix { $0 == " " }.count }.min() ?? 0
    for line in lines { output("  " + line.dropFirst(margin)) }
}

private func say(_ brewers: [Brewer]) {
    say("\(count(brewers.count, "brewer")): \(brewers.map(\.description).joined(separator: ",\n      "))")
}
