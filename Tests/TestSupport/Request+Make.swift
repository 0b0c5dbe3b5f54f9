package import WebServiceCore

extension Request {
    /// Returns a valid request.
    package static func make(_ method: Method = .GET, _ url: String = "https://h/v1") -> Request {
        Request(method, url: url)
    }

    /// Returns a valid request with the changes of the test.
    package static func make(
        _ method: Method = .GET, _ url: String = "https://h/v1", _ change: (inout Request) throws -> Void
    )
        rethrows -> Request
    {
        var request = Request(method, url: url)
        try change(&request)
        return request
    }
}
