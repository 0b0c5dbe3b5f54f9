import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A result of a ``MockSession``, its matcher, and the source location where it was added.
struct Stub: Sendable {
    let result: any MockableDataTaskResult
    let matches: MockSession.Matcher
    let fileID: String
    let line: Int

    /// Returns the result of the last stub that matches, or an error if none matches.
    static func answer(to request: any URLRequestEncodable, from stubs: [Stub]) -> (Data?, URLResponse?, (any Error)?) {
        for stub in stubs.reversed() where stub.matches(request) {
            return stub.result.dataTaskResult(request: request)
        }
        return (nil, nil, noMatch(for: request, in: stubs))
    }

    /// Returns an error that contains only the method and the path.
    ///
    /// The query and the user information of a URL may contain secrets.
    private static func noMatch(for request: any URLRequestEncodable, in stubs: [Stub]) -> WebServiceError {
        let path =
            request.sentURL.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }?.percentEncodedPath ?? ""
        let places = stubs.suffix(10).map { "\($0.fileID.split(separator: "/").last ?? ""):\($0.line)" }
        let omitted = stubs.count > places.count ? "…, " : ""
        let list = stubs.isEmpty ? "" : ": \(omitted)\(places.joined(separator: ", "))"
        let count = "\(stubs.count) \(stubs.count == 1 ? "stub" : "stubs")"
        return WebServiceError(
            .noStub, "no stub matches \(request.sentMethod) \(path.isEmpty ? "/" : path); \(count)\(list)",
            request: Request(request)
        )
    }
}
