import Foundation
import TestSupport
import WebServiceCore

/// A clock that advances only when the test advances it.
final class ManualTimekeeper: Timekeeper {
    private let alarms = AlarmTimer()
    private let time = Mutex<UInt64>(1_000_000_000)

    var instant: UInt64 { time.withLock { $0 } }
    var pending: Int { alarms.count }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        alarms.add(at: instant.addingSaturated(delay), target)
    }

    func cancel(_ alarm: Alarm) {
        alarms.cancel(alarm)
    }

    func advance(by duration: Duration) {
        let now = time.withLock { time in
            time = time.addingSaturated(duration)
            return time
        }
        alarms.fire(at: now)
    }
}

/// A session under the control of the test, which records requests and responds on demand.
final class HandSession: Session {
    final class Exchange: DataTask {
        let request: any URLRequestEncodable
        let completion: @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        private let calls = Mutex<[String]>([])
        private let onResume: @Sendable (Exchange) -> Void

        init(
            _ request: any URLRequestEncodable,
            _ completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void,
            _ onResume: @escaping @Sendable (Exchange) -> Void
        ) {
            self.request = request
            self.completion = completion
            self.onResume = onResume
        }

        var log: [String] { calls.withLock { $0 } }
        var state: DataTaskState { .running }
        func resume() {
            calls.withLock { $0.append("resume") }
            onResume(self)
        }
        func suspend() { calls.withLock { $0.append("suspend") } }
        func cancel() { calls.withLock { $0.append("cancel") } }

        func respond(_ text: String = "", status: Int = 200) {
            completion(Data(text.utf8), HandSession.response(status), nil)
        }
    }

    let exchanges = Collected<Exchange>()
    private let answers: (@Sendable (Exchange) -> Void)?

    /// - Parameter answers: Called inside `resume()`. With `nil`, the test completes the exchange.
    init(answers: (@Sendable (Exchange) -> Void)? = nil) {
        self.answers = answers
    }

    convenience init(text: String, status: Int = 200) {
        self.init { $0.respond(text, status: status) }
    }

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        Exchange(request, completion) { [weak exchanges, answers] exchange in
            exchanges?.add(exchange)  // a strong reference would be a cycle
            answers?(exchange)
        }
    }

    static func response(_ status: Int) -> HTTPURLResponse? {
        URL(string: "https://h/").flatMap {
            HTTPURLResponse(url: $0, statusCode: status, httpVersion: "HTTP/1.1", headerFields: nil)
        }
    }
}

extension WebService {
    /// Returns a service with the given session and clock.
    static func make(
        _ session: any Session = HandSession(), base: String = "https://h/v1",
        delegate: (any ServicePassthroughDelegate)? = nil,
        timekeeper: (any Timekeeper)? = ManualTimekeeper()
    ) -> WebService {
        let service = WebService(baseURLString: base, passthroughDelegate: delegate, timekeeper: timekeeper)
        service.session = session
        return service
    }
}

struct TestError: Error, Equatable {
    var name = "test"
}
