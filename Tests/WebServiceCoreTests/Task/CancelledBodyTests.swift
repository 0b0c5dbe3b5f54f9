import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

/// Verifies when the body of a cancelled request is deallocated.
@Suite("Bodies of cancelled requests", .permit)
struct CancelledBodyTests {
    enum Place: CaseIterable { case beforeResume, interceptor, provider, retryPause, inFlight, suspended }

    @Test("A cancelled request deallocates its body at every stage of the pipeline", arguments: Place.allCases)
    func freed(place: Place) async throws {
        let freed = Collected<String>()
        let waiting = Collected<Void>()
        do {
            let session = MockSession()
            var silence = MockResponse(statusCode: place == .retryPause ? 503 : 200)
            if place != .retryPause { silence.wire = .noResponse }
            let answer = silence
            session.addStub { _ in
                waiting.add(())
                return answer
            }
            let clock = ManualTimekeeper()
            let service = WebService.make(session, timekeeper: clock)
            let task = service.PUT("/x")
            let never: @Sendable () async throws -> Void = {
                waiting.add(())
                try await TaskClock(clock).sleep(for: .seconds(1_000))
            }
            task.setBody(.watched { freed.add("freed") })
            switch place {
            case .beforeResume, .inFlight: break
            case .suspended:
                task.intercepted(
                    by: .closure { [weak task] request, next in
                        task?.suspend()
                        waiting.add(())
                        return try await next(request)
                    })
            case .interceptor:
                task.intercepted(
                    by: .closure { request, next in
                        try await never()
                        return try await next(request)
                    })
            case .provider:
                let body = task.request.body
                task.setBody {
                    try await never()
                    return body ?? Data()
                }
            case .retryPause: service.interceptors = [RetryPolicy(pause: { _ in try await never() })]
            }
            if place != .beforeResume {
                task.resume()
                await waiting.wait(for: place == .retryPause ? 2 : 1)
            }
            #expect(freed.values.isEmpty)
            task.cancel()
        }
        #expect(await freed.wait() == ["freed"])
    }

    @Test(
        "FoundationSession deallocates the bodies of 200 cancelled uploads, in flight or waiting for a connection"
    )
    func foundation() async throws {
        let listener = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .noResponse
            return response
        }
        let count = 200
        let freed = Collected<Int>()
        do {
            let service = WebService(baseURLString: listener.baseURLString)
            let tasks = (0..<count).map { number in service.PUT("/x").setBody(.watched { freed.add(number) }).resume() }
            for task in tasks { task.cancel() }
        }
        #expect(Set(await freed.wait(for: count)) == Set(0..<count))
    }
}
