import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceOffline

@Suite("Processes with an outbox are killed", .permit(minutes: isSoak ? 60 : 3))
struct OutboxKillTests {
    private let scratch = TemporaryFolder.forTest().url

    @Test(
        "No request of a killed process is lost, has two effects, or overtakes another",
        arguments: OutboxPlace.allCases)
    func kills(_ place: OutboxPlace) async throws {
        let effects = Effects()
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        var random = SeededGenerator(seed: 1)
        var acknowledged: [String] = []
        for round in 0..<amount(6, thorough: 25, soak: 1_000) {
            let probe = OutboxProbe(outbox, server, "a", round, count: 6)
            acknowledged += try await probe.kill(at: .random(using: &random), effects)
        }
        #expect(try await effects.drain(place, outbox, server) == [])
        effects.expect(acknowledged)
    }

    @Test(
        "Two processes with one outbox lose no request when they are killed, with files and without",
        arguments: OutboxPlace.allCases, [false, true])
    func twoProcesses(_ place: OutboxPlace, _ hasFiles: Bool) async throws {
        let effects = Effects(checksBodies: hasFiles)
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        var random = SeededGenerator(seed: 2)
        var acknowledged: [String] = []
        for round in 0..<amount(4, thorough: 10, soak: 500) {
            let (first, second) = (
                OutboxProbe(outbox, server, "a", round, count: 6, hasFiles: hasFiles),
                OutboxProbe(outbox, server, "b", round, count: 6, hasFiles: hasFiles)
            )
            let instant = Instant.random(using: &random)
            try second.process.run()
            async let others = second.lines { $0 == "done" }
            acknowledged += try await first.kill(at: instant, effects)
            let survivors = try await others
            acknowledged += survivors
            // The other process takes over if the first one has sent.
            if round % 2 == 0 { await effects.wait(for: survivors) }
            second.process.send(SIGKILL)
            second.process.waitUntilExit()
        }
        #expect(try await effects.drain(place, outbox, server) == [])
        effects.expect(acknowledged)
        #expect(effects.changed == [])
        let folder = place == .folder ? outbox : outbox.deletingLastPathComponent()
        #expect(try names(in: folder).filter { $0.hasSuffix(".body") } == [])
    }

    @Test(
        "Two processes that are killed while both submit lose no request",
        arguments: OutboxPlace.allCases)
    func bothProcesses(_ place: OutboxPlace) async throws {
        let effects = Effects()
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        var random = SeededGenerator(seed: 3)
        var acknowledged: [String] = []
        for round in 0..<amount(4, thorough: 10, soak: 500) {
            let first = OutboxProbe(outbox, server, "a", round, count: 12)
            let second = OutboxProbe(outbox, server, "b", round, count: 12)
            let counts = (Int.random(in: 1...12, using: &random), Int.random(in: 1...12, using: &random))
            async let paths = first.kill(at: .submission(counts.0), effects)
            let others = try await second.kill(at: .submission(counts.1), effects)
            acknowledged += try await paths + others
        }
        #expect(try await effects.drain(place, outbox, server) == [])
        effects.expect(acknowledged)
    }

    @Test(
        "A process that finishes its outbox after SIGTERM loses no request and sends none twice",
        arguments: OutboxPlace.allCases)
    func finishes(_ place: OutboxPlace) async throws {
        let effects = Effects()
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        var random = SeededGenerator(seed: 5)
        var acknowledged: [String] = []
        for round in 0..<amount(6, thorough: 100, soak: 500) {
            let probe = OutboxProbe(outbox, server, "a", round, count: 6, finishes: true)
            let instant =
                switch Instant.random(using: &random) {
                case .submission(let count): Instant.submission(max(count, 1))  // the program handles the signal
                case let request: request
                }
            let (status, paths) = try await probe.end(at: instant, effects) { $0.send(SIGTERM) }
            #expect(status == 0)
            #expect(probe.otherLines.values == ["finished true"])
            acknowledged += paths
        }
        #expect(try await effects.drain(place, outbox, server) == [])
        effects.expect(acknowledged)
        #expect(effects.repeated == [])
    }

    @Test(
        "Killed processes lose no file, send no other bytes, and leave no copy",
        .permit(minutes: isThorough ? 60 : 3), arguments: OutboxPlace.allCases)
    func files(_ place: OutboxPlace) async throws {
        let effects = Effects(checksBodies: true)
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        let folder = place == .folder ? outbox : outbox.deletingLastPathComponent()
        var random = SeededGenerator(seed: 6)
        var acknowledged: [String] = []
        var remaining = 0
        for round in 0..<amount(8, thorough: 150, soak: 1_000) {
            let probe = OutboxProbe(outbox, server, "a", round, count: 9, hasTerms: round % 2 == 0, hasFiles: true)
            acknowledged += try await probe.kill(at: .random(using: &random), effects)
            remaining += try names(in: folder).count { $0.hasSuffix(".body") }
        }
        let failures = Collected<Outbox.Failure.Kind>()
        var options = Outbox.Options()
        options.firstPause = .milliseconds(1)
        let last = try place.outbox(of: WebService(baseURLString: server.baseURLString), at: outbox, options: options) {
            failures.add($0.kind)
            return .drop
        }
        await eventually { await last.entries.isEmpty }
        await last.close()
        #expect(await last.damagedFiles == [])
        #expect(Set(failures.values).subtracting([.error(.entryExpired)]) == [])
        #expect(effects.changed == [])
        let paths = effects.paths
        #expect(Set(paths).count == paths.count)
        // Those of other entities may have expired or been replaced.
        #expect(effects.missing(acknowledged.filter { Effects.entity($0) == "a/0" }) == [])
        #expect(try names(in: folder).filter { $0.hasSuffix(".body") } == [])
        if isThorough {
            print("\(place): \(acknowledged.count) acknowledged, \(paths.count) effects, \(remaining) copies remained")
        }
    }

    @Test(
        "Killed processes lose no response, no replacement and no report of an expired request",
        .permit(minutes: isThorough ? 60 : 3), arguments: OutboxPlace.allCases)
    func terms(_ place: OutboxPlace) async throws {
        let effects = Effects()
        let server = try MockServer.forTest { try effects.respond(to: $0) }
        let outbox = place.url(in: scratch)
        var random = SeededGenerator(seed: 4)
        var acknowledged: [String] = []
        var lines: [String] = []
        for round in 0..<amount(12, thorough: 150, soak: 1_000) {
            let probe = OutboxProbe(outbox, server, "a", round, count: 9, hasTerms: true)
            // At least half of the processes submit all of their requests.
            let instant = Bool.random(using: &random) ? Instant.random(using: &random) : .submission(9)
            acknowledged += try await probe.kill(at: instant, effects)
            lines += probe.otherLines.values
        }
        let expired = Collected<String>()
        var options = Outbox.Options()
        options.firstPause = .milliseconds(1)
        let last = try place.outbox(
            of: WebService(baseURLString: server.baseURLString), at: outbox, options: options
        ) { failure in
            expired.add(failure.request.url?.path ?? "")
            return failure.kind == .error(.entryExpired) ? .drop : .keep
        }
        await eventually { await last.entries.isEmpty }
        #expect(await last.damagedFiles == [])
        var responses: [String] = []
        for name in last.state.withLock(\.responses) {
            let id = try #require(OutboxNames.id(of: name))
            let stored = try #require(try await last.response(of: id))
            responses.append(String(decoding: stored.response.data, as: UTF8.self))
        }
        await last.close()

        let paths = effects.paths
        #expect(Set(paths).count == paths.count)
        func part(_ number: Int, _ paths: [String]) -> [String] { paths.filter { Effects.entity($0) == "a/\(number)" } }
        func values(_ word: String) -> [String] {
            lines.filter { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
        }
        for number in 0..<3 {
            let orders = part(number, paths).map(Effects.order)
            #expect(orders == orders.sorted())
        }
        // Each response is delivered, and not again after its removal.
        let (got, removed) = (values("got"), values("removed"))
        #expect(Set(part(0, acknowledged)).subtracting(paths) == [])
        #expect(Set(part(0, acknowledged)).subtracting(got + responses) == [])
        #expect(Set(got + responses).subtracting(part(0, paths)) == [])
        #expect(Set(removed).intersection(responses) == [])
        #expect(Set(removed).count == removed.count)
        for path in Set(removed) {
            #expect(lines.lastIndex(of: "got \(path)") ?? 0 < lines.firstIndex(of: "removed \(path)") ?? 0)
        }
        // The last one, or a later one, was sent.
        let replacements = part(1, acknowledged).map(Effects.order).max() ?? 0
        #expect(part(1, paths).map(Effects.order).max() ?? 0 >= replacements)
        #expect(Set(part(2, acknowledged)).subtracting(paths + values("expired") + expired.values) == [])
        if isThorough {
            print(
                "\(place): \(acknowledged.count) acknowledged, \(paths.count) effects, \(removed.count) responses removed, "
                    + "\(responses.count) left, \(Set(values("expired") + expired.values).count) expired")
        }
    }
}

/// When a process is killed.
enum Instant {
    /// After a number of submissions.
    case submission(Int)
    /// During a request: before or after its effect.
    case request(Int, hasEffect: Bool)

    static func random(using random: inout SeededGenerator) -> Instant {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: .submission(Int.random(in: 0...6, using: &random))
        case 1: .request(Int.random(in: 1...6, using: &random), hasEffect: true)
        default: .request(Int.random(in: 1...6, using: &random), hasEffect: false)
        }
    }
}

/// The effects of a server that recognizes requests by their key.
final class Effects: Sendable {
    private struct State {
        var keys: Set<String> = []
        var paths: [String] = []
        /// The paths of the requests whose body is not theirs.
        var changed: [String] = []
        /// The keys of the requests with a response that removes their entries.
        var delivered: Set<String> = []
        /// The paths of the requests that were sent again after such a response.
        var repeated: [String] = []
        var requestCount = 0
        var trap: Trap?

        /// What happens at a request.
        struct Trap {
            var count: Int
            var hasEffect: Bool
            var kill: @Sendable () -> Bool
        }
    }

    private let state = Mutex(State())
    private let checksBodies: Bool

    /// - Parameter checksBodies: Whether the requests have files; see ``body(_:)``.
    init(checksBodies: Bool = false) { self.checksBodies = checksBodies }

    /// The paths of the effects, in order.
    var paths: [String] { state.withLock(\.paths) }
    var requestCount: Int { state.withLock(\.requestCount) }
    var repeated: [String] { state.withLock(\.repeated) }
    var changed: [String] { state.withLock(\.changed) }

    /// Returns the body that the program `outbox-probe` copies from a file.
    static func body(_ path: String) -> Data {
        let number = order(path) % 1_000
        guard number % 3 < 2 else { return Data() }
        return Data(String(repeating: path + "\n", count: number % 2 == 0 ? 1 : 300_000 / path.count).utf8)
    }

    static func entity(_ path: String) -> String {
        let parts = path.split(separator: "/")
        return "\(parts[1])/\((Int(parts[3]) ?? 0) % 3)"
    }

    static func order(_ path: String) -> Int {
        let parts = path.split(separator: "/")
        return (Int(parts[2]) ?? 0) * 1_000 + (Int(parts[3]) ?? 0)
    }

    func set(_ count: Int, hasEffect: Bool, _ kill: @escaping @Sendable () -> Bool) {
        state.withLock { $0.trap = State.Trap(count: count, hasEffect: hasEffect, kill: kill) }
    }

    func respond(to request: ReceivedRequest) throws -> MockResponse {
        guard let key = request.headers["Idempotency-Key"] else { return .status(400) }
        let (number, trap) = state.withLock { state in
            state.requestCount += 1
            if checksBodies, request.body != Self.body(request.path) { state.changed.append(request.path) }
            if state.delivered.contains(key) { state.repeated.append(request.path) }
            state.trap?.count -= 1
            let isDue = state.trap.map { $0.count <= 0 } ?? false
            return (state.requestCount, isDue ? state.trap.take() : nil)
        }
        if trap?.hasEffect == false { spring(trap) }
        defer { if trap?.hasEffect == true { spring(trap) } }
        // Every seventh request fails before its effect, and every eleventh after it.
        if number % 7 == 0 { return .status(503) }
        state.withLock { state in
            if state.keys.insert(key).inserted { state.paths.append(request.path) }
            if number % 11 != 0 { state.delivered.insert(key) }
        }
        return MockResponse(statusCode: number % 11 == 0 ? 502 : 201, data: Data(request.path.utf8))
    }

    /// Kills the process, or waits for another request if it has not started: this one was sent by an
    /// earlier process.
    private func spring(_ trap: State.Trap?) {
        guard let trap, !trap.kill() else { return }
        state.withLock { $0.trap = trap }
    }

    func wait(for paths: [String]) async {
        await eventually { Set(paths).isSubset(of: self.paths) }
    }

    /// Sends the remaining requests, and returns the damaged files.
    @discardableResult
    func drain(_ place: OutboxPlace, _ url: URL, _ server: MockServer) async throws -> [URL] {
        var options = Outbox.Options()
        options.firstPause = .milliseconds(1)
        let service = WebService(baseURLString: server.baseURLString)
        // A `URLSession` may wait for its timeout if a connection has ended (defect F13). Two such
        // requests in succession must not exceed the limit of this test.
        service.options.timeout = .seconds(20)
        let recorder = EventRecorder()
        service.observers = [recorder]
        let outbox = try place.outbox(of: service, at: url, options: options)
        if await !becomesTrue({ await outbox.entries.isEmpty }) {
            let entries = await outbox.entries.map { "\($0)" }
            let events = recorder.events.values.map { event in
                "\(event.date) exchange \(event.exchange.id) \(event.time): \(EventRecorder.line(event))"
            }
            let files = try names(in: place == .folder ? url : url.deletingLastPathComponent())
            let lines = entries + files + events.suffix(200)
            Issue.record("entries remain at \(Date()):\n\(lines.joined(separator: "\n"))")
        }
        let damaged = await outbox.damagedFiles
        await outbox.close()
        return damaged
    }

    /// Returns the requests without an effect.
    func missing(_ acknowledged: [String]) -> [String] { Set(acknowledged).subtracting(paths).sorted() }

    /// Expects that no request was lost, that none had two effects, and that those of each entity
    /// had theirs in order.
    func expect(_ acknowledged: [String]) {
        let paths = paths
        #expect(missing(acknowledged) == [])
        #expect(Set(paths).count == paths.count)
        // The numbers of an entity are one modulo 3.
        for entity in Set(paths.map(Effects.entity)) {
            let numbers = paths.filter { Effects.entity($0) == entity }.map(Effects.order)
            #expect(numbers == numbers.sorted())
        }
        if isSoak { print("\(acknowledged.count) acknowledged, \(paths.count) effects, \(requestCount) requests") }
    }
}

/// The program `outbox-probe`, which is in the folder of the test executable.
struct OutboxProbe {
    let process: ChildProcess
    private let name: String
    private let round: Int
    private let input = Pipe()
    private let output = Pipe()
    /// The lines other than `ack` and `done`.
    let otherLines = Collected<String>()

    /// - Parameters:
    ///   - outbox: The URL of the folder, or of the database.
    ///   - createsFolder: Whether the program creates the folder before it opens the outbox.
    init(
        _ outbox: URL, _ server: MockServer, _ name: String, _ round: Int, count: Int,
        createsFolder: Bool = false, hasTerms: Bool = false, finishes: Bool = false,
        hasFiles: Bool = false, environment: [String: String] = [:]
    ) {
        self.name = name
        self.round = round
        process = ChildProcess(
            programPath("outbox-probe"),
            [outbox.path, server.baseURLString, name, "\(round)", "\(count)"] + (createsFolder ? ["created"] : [])
                + (hasTerms ? ["terms"] : []) + (finishes ? ["finish"] : []) + (hasFiles ? ["files"] : []),
            environment: ["SWIFT_BACKTRACE": "enable=no", "HOME": outbox.deletingLastPathComponent().path].merging(
                environment
            ) { $1 },
            input: .pipe(input),
            output: .pipe(output), errors: .null)
    }

    /// Runs the process and closes its input when it has submitted its requests, so that it ends.
    func finish() async throws -> (status: Int32, paths: [String]) {
        try process.run()
        let paths = try await lines { $0 == "done" }
        try input.fileHandleForWriting.close()
        return (try await blocking { [process] in process.waitUntilExit() }, paths)
    }

    /// Runs and kills the process, and returns the paths of the requests that it had submitted.
    func kill(
        at instant: Instant, _ effects: Effects,
        by kill: @escaping @Sendable (ChildProcess) -> Void = { $0.send(SIGKILL) }
    ) async throws -> [String] {
        try await end(at: instant, effects, by: kill).paths
    }

    /// Runs the process, ends it, and returns its exit status and the paths of the requests that it
    /// had submitted.
    ///
    /// - Parameter end: A closure that sends a signal to the process.
    func end(
        at instant: Instant, _ effects: Effects, by end: @escaping @Sendable (ChildProcess) -> Void
    ) async throws -> (status: Int32, paths: [String]) {
        switch instant {
        case .submission(let count):
            try process.run()
            if count == 0 { end(process) }
            // The process may submit further requests before it ends.
            let paths = try await lines { [process] line in
                if line == "ack \(count - 1)" { end(process) }
                return false
            }
            return (process.waitUntilExit(), paths)
        case .request(let count, let hasEffect):
            effects.set(count, hasEffect: hasEffect) { [process] in
                guard process.isRunning else { return false }
                end(process)
                return true
            }
            try process.run()
            let paths = try await lines { _ in false }
            return (process.waitUntilExit(), paths)
        }
    }

    /// Returns the paths of the requests that the process submits, up to a line or its end.
    func lines(until isLast: @escaping @Sendable (String) -> Bool) async throws -> [String] {
        try await blocking { [name, round, output, otherLines] in
            var rest = Data()
            var paths: [String] = []
            while case let more = output.fileHandleForReading.availableData, !more.isEmpty {
                rest += more
                var isComplete = false
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = String(decoding: rest[..<end], as: UTF8.self)
                    rest = Data(rest[(end + 1)...])
                    if line.hasPrefix("ack ") {
                        paths.append("/effects/\(name)/\(round)/\(line.dropFirst(4))")
                    } else if line != "done" {
                        otherLines.add(line)
                    }
                    isComplete = isComplete || isLast(line)
                }
                if isComplete { break }
            }
            return paths
        }
    }
}
