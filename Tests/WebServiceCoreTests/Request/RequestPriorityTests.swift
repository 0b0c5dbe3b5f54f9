import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Priority of requests", .permit)
struct RequestPriorityTests {
    @Test("A request has a normal priority, which a service or the request can change")
    func values() {
        let service = WebService.make()
        #expect(service.request(.GET, path: "/x").options.priority == .normal)
        service.options.priority = .low
        #expect(service.request(.GET, path: "/x").options.priority == .low)
        let task = service.GET("/x").configure { $0.options.priority = .high }
        #expect(task.request.options.priority == .high)
        #expect([Request.Priority.low, .normal, .high].map(\.streamWeight) == [1, 16, 256])
    }

    @Test(
        "The priority is that of the task of Foundation",
        arguments: [
            (Request.Priority.low, URLSessionTask.lowPriority), (.normal, URLSessionTask.defaultPriority),
            (.high, URLSessionTask.highPriority),
        ])
    func foundation(priority: Request.Priority, expected: Float) async throws {
        var request = Request(url: "http://127.0.0.1:1/")
        request.options.priority = priority
        let tasks = Collected<URLSessionDataTask>()
        let ended = Collected<Bool>()
        let session = URLSession(configuration: .ephemeral)
        let task = ResumableDataTask(request: try request.encode(), completion: { _, _, _ in }) { request, handle in
            let task = session.dataTask(with: request) { _, _, _ in ended.add(true) }
            handle.run(task) {}
            tasks.add(task)
        }
        task.resume()
        #expect(tasks.values.map(\.priority) == [expected])
        // Not cancelled: Foundation on Linux terminates the process if a task ends at that instant.
        #expect(await ended.wait() == [true])
    }
}
