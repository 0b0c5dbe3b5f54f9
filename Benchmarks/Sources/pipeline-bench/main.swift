// Measures the framework without a network: a task from `resume()` to its last handler, and a
// request from parameters to `URLRequest`. Every table is one interleaved run. Ratios are relative
// to its first line.

import Foundation
import Synchronization
import WebServiceCore
import WebServiceEndpoints

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

let quick = CommandLine.arguments.contains("--quick")
let rounds = quick ? 5 : 15

/// `--only task` runs only the cases whose names have this prefix, for profiling.
let only = CommandLine.arguments.firstIndex(of: "--only").flatMap { CommandLine.arguments.dropFirst($0 + 1).first }

// MARK: - Pipeline

let body = Data(#"{"name":"brewer"}"#.utf8)
let plainURL = URL(string: "http://127.0.0.1/v1/brewers") ?? URL(fileURLWithPath: "/")
let answer = HTTPURLResponse(url: plainURL, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: nil)

/// Completes inside `resume()`, so that only the cost of the framework remains.
final class InstantSession: Session {
    final class Task: DataTask {
        let completion: @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        init(_ completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void) {
            self.completion = completion
        }
        var state: DataTaskState { .completed }
        func resume() { completion(body, answer, nil) }
        func suspend() {}
        func cancel() {}
    }

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        Task(completion)
    }
}

struct BrewersRequest: HTTPServiceRequest, Hashable {
    typealias Output = Data
    func request(for service: WebService) -> Request { service.request(.GET, path: "/brewers") }
}

let service = WebService(baseURLString: "http://127.0.0.1/v1")
service.session = InstantSession()

/// Counts the events of the case `observed`.
final class EventCounter: Observer {
    let count = Atomic<Int>(0)
    func observe(_ event: ExchangeEvent) { count.add(1, ordering: .relaxed) }
}

let observedService = service.clone()
observedService.observers = [EventCounter()]

for inFlight in [1, 64] {
    let floor = Case(name: "floor: one hop on the global queue, JSON parsed") { count in
        keepInFlight(inFlight, of: count) { done in
            DispatchQueue.global().async {
                let json = try? JSONSerialization.jsonObject(with: body)
                precondition((json as? [String: Any])?.count == 1)
                done()
            }
        }
    }
    let task = Case(name: "task: GET, responseJSON, transform, responseError") { count in
        keepInFlight(inFlight, of: count) { done in
            service.GET("/brewers")
                .responseJSON { json, _ in .value((json as? [String: Any])?.count ?? 0) }
                .transform { value -> ServiceTaskResult in
                    precondition(value as? Int == 1)
                    done()
                    return .empty
                }
                .responseError { error in preconditionFailure("\(error)") }
                .resume()
        }
    }
    let awaited = Case(name: "await: try await GET.data().value") { count in
        keepInFlight(inFlight, of: count) { done in
            Task {
                let data = try await service.GET("/brewers").data().value
                precondition(data.count == 17)
                done()
            }
        }
    }
    let observed = Case(name: "observed: await with one observer, 5 events") { count in
        keepInFlight(inFlight, of: count) { done in
            Task {
                let data = try await observedService.GET("/brewers").data().value
                precondition(data.count == 17)
                done()
            }
        }
    }
    let performed = Case(name: "perform: try await perform(request).value") { count in
        keepInFlight(inFlight, of: count) { done in
            Task {
                let data = try await service.perform(BrewersRequest()).value
                precondition(data.count == 17)
                done()
            }
        }
    }
    report(
        "Pipeline, \(inFlight) in flight, 17 bytes of JSON",
        measure([floor, task, awaited, observed, performed], count: quick ? 5_000 : 20_000, rounds: rounds)
    )
}

// MARK: - Requests

let pairs = [
    ("name", "Trashboat Brewing & Söhne"), ("state", "new york"), ("email", "a+b@example.com"), ("page", "1"),
    ("limit", "100"),
    ("sort", "name:asc"), ("q", "日本 ビール"), ("filter", "ibu>=40;abv<7"), ("tag", "50% off #1"),
    ("ref", "https://example.com/?a=b"),
]
let parameters = Parameters(pairs.map { ($0.0, ParameterValue.string($0.1)) })

func consume(_ request: URLRequest) { precondition(request.url != nil) }

report(
    "Query of 10 parameters to URLRequest",
    measure(
        [
            Case(name: "URLComponents + URLRequest") { count in
                for _ in 0..<count {
                    guard var components = URLComponents(url: plainURL, resolvingAgainstBaseURL: false) else {
                        continue
                    }
                    components.queryItems = pairs.map { URLQueryItem(name: $0.0, value: $0.1) }
                    guard let url = components.url else { continue }
                    consume(URLRequest(url: url))
                }
            },
            Case(name: "Query: Request") { count in
                for _ in 0..<count {
                    var request = service.request(.GET, path: "/brewers")
                    request.queryParameters = parameters
                    consume(request.urlRequestValue)
                }
            },
        ], count: 20_000, rounds: rounds)
)

report(
    "Form of 10 parameters to URLRequest",
    measure(
        [
            Case(name: "URLComponents + URLRequest") { count in
                for _ in 0..<count {
                    var components = URLComponents()
                    components.queryItems = pairs.map { URLQueryItem(name: $0.0, value: $0.1) }
                    var request = URLRequest(url: plainURL)
                    request.httpMethod = "POST"
                    request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
                    request.httpBody = Data((components.percentEncodedQuery ?? "").utf8)
                    consume(request)
                }
            },
            Case(name: "Form: Request") { count in
                for _ in 0..<count {
                    var request = service.request(.POST, path: "/brewers")
                    request.formParameters = parameters
                    consume(request.urlRequestValue)
                }
            },
        ], count: 20_000, rounds: rounds)
)

// MARK: - Multipart

/// 16 MiB as one part, and as 256 parts.
let contents = [1, 256].map { parts in
    (parts, (0..<parts).map { _ in Data(repeating: 0x61, count: (16 << 20) / parts) })
}

for (parts, contents) in contents {
    report(
        "Multipart body of 16 MiB in memory, parts: \(parts)",
        measure(
            [
                Case(name: "Data: reserved, the same bytes appended") { count in
                    for _ in 0..<count {
                        var body = Data()
                        body.reserveCapacity((16 << 20) + 256 * parts)
                        for content in contents { body.append(content) }
                        precondition(body.count == 16 << 20)
                    }
                },
                Case(name: "Multipart: Request to URLRequest") { count in
                    for _ in 0..<count {
                        var form = MultipartFormData()
                        for content in contents { form.append(content, name: "part", fileName: "part.bin") }
                        var request = service.request(.POST, path: "/brewers")
                        request.multipart = form
                        precondition((request.urlRequestValue.httpBody?.count ?? 0) > 16 << 20)
                    }
                },
            ], count: quick ? 4 : 20, rounds: rounds)
    )
}
