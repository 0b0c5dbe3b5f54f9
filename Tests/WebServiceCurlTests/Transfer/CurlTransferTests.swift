import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: life of a transfer", .permit)
struct CurlTransferTests {
    private final class Receiver: BodyReceiver {
        let results = Collected<URLError.Code?>()
        private let onHead: @Sendable () -> Void

        init(onHead: @escaping @Sendable () -> Void = {}) { self.onHead = onHead }

        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) { onHead() }
        func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand { .more }
        func didSend(_ byteCount: Int64, of length: Int64?) {}

        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
            results.add(result.urlErrorCode)
        }
    }

    @Test(
        "A cancelled request that the loop has not begun is released at once, even while the loop is busy")
    func cancelledWhileWaiting() async throws {
        let server = try MockServer { _ in MockResponse("") }
        defer { server.stop() }
        let session = try CurlSession()
        let request = Request(url: server.baseURLString)
        let (isBusy, isOver) = (Collected<Void>(), DispatchSemaphore(value: 0))
        let busy = Receiver {
            isBusy.add(())
            _ = isOver.wait(timeout: .now() + 60)
        }
        let running = session.streamTask(request: request, receiver: busy)
        running.resume()
        await isBusy.wait()

        weak var released: Receiver?
        var tasks: [any StreamTask] = []
        do {
            let receiver = Receiver()
            released = receiver
            for _ in 0..<100 { tasks.append(session.streamTask(request: request, receiver: receiver)) }
            for task in tasks {
                task.resume()
                task.cancel()
            }
            #expect(receiver.results.values == Array(repeating: .cancelled, count: 100))
        }
        #expect(released == nil)
        #expect(tasks.map(\.state) == Array(repeating: .completed, count: 100))
        isOver.signal()
        #expect(await busy.results.wait() == [nil])
        #expect(server.receivedRequests.count == 1)
    }

    @Test("A cancelled request in flight completes once, and its connection is closed")
    func cancelledInFlight() async throws {
        let server = try MockServer { _ in MockResponse("", wire: .noResponse) }
        defer { server.stop() }
        let session = try CurlSession()
        let receiver = Receiver()
        let task = session.streamTask(request: Request(url: server.baseURLString), receiver: receiver)
        task.resume()
        await eventually("the request arrives") { server.receivedRequests.count == 1 }
        for _ in 0..<2 { task.cancel() }
        #expect(await receiver.results.wait() == [.cancelled])
        session.close(.cancelling)
        #expect(receiver.results.values == [.cancelled])
        #expect(task.state == .completed)
    }

    @Test("Cancelling a transfer again, or after its end, has no effect")
    func cancelledAgain() async throws {
        let server = try MockServer { _ in MockResponse("") }
        defer { server.stop() }
        let session = try CurlSession()
        let (cancelled, complete) = (Receiver(), Receiver())
        let first = session.streamTask(request: Request(url: server.baseURLString), receiver: cancelled)
        for _ in 0..<2 { first.cancel() }
        first.resume()
        let second = session.streamTask(request: Request(url: server.baseURLString), receiver: complete)
        for _ in 0..<2 { second.resume() }
        #expect(await complete.results.wait() == [nil])
        second.cancel()
        session.close()
        #expect(cancelled.results.values == [.cancelled])
        #expect(complete.results.values == [nil])
        #expect(server.receivedRequests.count == 1)
    }
}
