package import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// A clock that advances only when the test advances it.
package final class ManualTimekeeper: Timekeeper {
    private let alarms = AlarmTimer()
    private let time = Mutex<UInt64>(1_000_000_000)

    package init() {}

    package var instant: UInt64 { time.withLock { $0 } }
    package var pending: Int { alarms.count }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        alarms.add(at: instant.addingSaturated(delay), target)
    }

    package func cancel(_ alarm: Alarm) {
        alarms.cancel(alarm)
    }

    package func advance(by duration: Duration) {
        let now = time.withLock { time in
            time = time.addingSaturated(duration)
            return time
        }
        alarms.fire(at: now)
    }
}

/// A session under the control of the test, which records requests and responds on demand.
package final class HandSession: Session {
    package final class Exchange: DataTask {
        package let request: any URLRequestEncodable
        package let completion: @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        private let calls = Mutex<[String]>([])
        private let onResume: @Sendable (Exchange) -> Void

        package init(
            _ request: any URLRequestEncodable,
            _ completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void,
            _ onResume: @escaping @Sendable (Exchange) -> Void
        ) {
            self.request = request
            self.completion = completion
            self.onResume = onResume
        }

        package var log: [String] { calls.withLock { $0 } }
        package var state: DataTaskState { .running }
        package func resume() {
            calls.withLock { $0.append("resume") }
            onResume(self)
        }
        package func suspend() { calls.withLock { $0.append("suspend") } }
        package func cancel() { calls.withLock { $0.append("cancel") } }

        package func respond(_ text: String = "", status: Int = 200) {
            completion(Data(text.utf8), HandSession.response(status), nil)
        }
    }

    package let exchanges = Collected<Exchange>()
    private let answers: (@Sendable (Exchange) -> Void)?

    /// - Parameter answers: Called inside `resume()`. With `nil`, the test completes the exchange.
    package init(answers: (@Sendable (Exchange) -> Void)? = nil) {
        self.answers = answers
    }

    package convenience init(text: String, status: Int = 200) {
        self.init { $0.respond(text, status: status) }
    }

    package func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        Exchange(request, completion) { [weak exchanges, answers] exchange in
            exchanges?.add(exchange)  // a strong reference would be a cycle
            answers?(exchange)
        }
    }

    package static func response(_ status: Int) -> HTTPURLResponse? {
        URL(string: "https://h/").flatMap {
            HTTPURLResponse(url: $0, statusCode: status, httpVersion: "HTTP/1.1", headerFields: nil)
        }
    }
}

extension WebService {
    /// Returns a service with the given session and clock.
    package static func make(
        _ session: any Session = HandSession(), base: String = "https://h/v1",
        delegate: (any ServicePassthroughDelegate)? = nil,
        timekeeper: (any Timekeeper)? = ManualTimekeeper()
    ) -> WebService {
        let service = WebService(baseURLString: base, passthroughDelegate: delegate, timekeeper: timekeeper)
        service.session = session
        return service
    }
}

package struct TestError: Error, Equatable {
    package var name: String

    package init(name: String = "test") {
        self.name = name
    }
}
