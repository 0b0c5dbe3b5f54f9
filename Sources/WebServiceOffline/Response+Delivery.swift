import WebServiceCore

extension Response {
    /// Returns whether the response shows that the server has accepted the request of an entry.
    ///
    /// A status from 200 to 299 is not sufficient. Status 207 contains the results of several
    /// operations, some of which may have failed. Unless the request accepts HTML, an HTML page is
    /// usually a log-in page, for example that of a Wi-Fi network. An empty body is not a page,
    /// because some servers label every response as HTML by default.
    ///
    /// - Parameter hasWholeBody: Whether an empty ``Response/data`` means that the body is empty.
    func isDelivery(of request: Request, hasWholeBody: Bool) -> Bool {
        guard isSuccess, status != 207 else { return false }
        if status == 204 || status == 205 || hasWholeBody && data.isEmpty { return true }
        let type = MediaType.essence(header(.contentType) ?? "")
        guard Self.pageTypes.contains(type) else { return true }
        let accepted = request.headers.values(for: "Accept").flatMap { $0.split(separator: ",") }
        return accepted.contains { Self.pageTypes.contains(MediaType.essence(String($0))) }
    }

    private static let pageTypes: Set = ["text/html", "application/xhtml+xml"]
}
