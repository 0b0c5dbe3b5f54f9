import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

/// Clients that use what a test clock does not count.
enum EscapingClient: String, CaseIterable, Sendable {
    case tasks, mainActor, realSleep, asyncAfter

    static let explorer = FaultExplorer { mock in
        for path in ["/a", "/b", "/c", "/log"] { mock.on(.GET, path, .text(path)) }
        mock.on(.POST, "/log", .status(204))
    }

    func run(_ service: WebService) async throws -> String {
        switch self {
        case .tasks: try await Self.tasks(service)
        case .mainActor: try await Screen(service).load()
        case .realSleep: try await Self.sleeping(service)
        case .asyncAfter: try await Self.later(service)
        }
    }

    private static func tasks(_ service: WebService) async throws -> String {
        Task { try? await service.POST("/log").data().value }
        let first = Task { try await service.GET("/b").string().value }
        let second = Task.detached {
            let text = try await service.GET("/a").string().value
            Task { try? await service.POST("/log").data().value }
            return text
        }
        let both = [try? await first.value, try? await second.value].compactMap { $0 }
        return try await service.GET("/c").string().value + both.joined()
    }

    private static func sleeping(_ service: WebService) async throws -> String {
        for _ in 0..<2 {
            if let text = try? await service.GET("/a").string().value { return text }
            try await Task.sleep(for: .milliseconds(2))
        }
        return try await service.GET("/b").string().value
    }

    private static func later(_ service: WebService) async throws -> String {
        let first = try? await service.GET("/a").string().value
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) {
                Task {
                    continuation.resume(
                        with: await Result { try await service.GET("/b").string().value + (first ?? "") })
                }
            }
        }
    }

    @MainActor final class Screen {
        let service: WebService
        var texts: [String] = []

        init(_ service: WebService) { self.service = service }

        func load() async throws -> String {
            let log = Task { await add("/log") }
            async let b: Void = add("/b")
            async let a: Void = add("/a")
            _ = await (a, b, log.value)
            return try await service.GET("/c").string().value + texts.joined()
        }

        private func add(_ path: String) async {
            if let text = try? await service.GET(path).string().value { texts.append(text) }
        }
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

@Suite(.exclusive) struct DeterminismTests {
    @Test(
        "code that the clock does not count has the same trace in each run",
        arguments: EscapingClient.allCases, ["no fault", "GET /a#1=500", "GET /a#1=lost", "GET /a#1=stalled"])
    func oneTrace(client: EscapingClient, plan: String) async throws {
        let plan = plan == "no fault" ? FaultPlan() : FaultPlan(plan)
        var traces: [String: Int] = [:]
        for _ in 0..<amount(50, thorough: 100, soak: 1_000) {
            let run = try await EscapingClient.explorer.replay(plan) { try await client.run($0.service) }
            traces["\(run.trace)", default: 0] += 1
        }
        #expect(traces.count == 1, "\(traces.map { "\($0.value) ×\n\($0.key)" }.joined(separator: "\n"))")
    }
}
