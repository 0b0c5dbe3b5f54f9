import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceMocking
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension InspectorProbe {
    // MARK: Bodies of several types, redirects and causes of failures

    func addBodies() {
        session.on(
            .GET, "/v1/xml",
            .text("<beers><beer id=\"1\">Ale &amp; Co</beer><!-- none --><empty/></beers>")
                .header("Content-Type", "application/xml"))
        session.on(
            .GET, "/v1/octets",
            MockResponse(
                statusCode: 200, headers: ["Content-Type": "application/octet-stream"],
                data: Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) })))
        session.on(.GET, "/v1/hops", MockResponse(statusCode: 302, headers: ["Location": "/v1/any/hops"]))
        session.on(
            .GET, "/v1/caused",
            .error(
                URLError(
                    .cannotConnectToHost,
                    userInfo: [
                        NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: 111)
                    ])))
        session.on(
            .GET, "/v1/stream",
            MockResponse(statusCode: 200, chunks: self.chunks)
                .header("Content-Type", "text/event-stream"))
    }

    /// Sends a request twice. The second response comes from a cache, without a request.
    func cached() async {
        session.on(
            .GET, "/v1/cached",
            .json(["name": "from the cache"]).header("Cache-Control", "max-age=60"))
        let caching = service.clone()
        caching.interceptors = [ResponseCache(storage: MemoryStorage())]
        for _ in 0..<2 { await send(caching.GET("/cached")) }
    }

    func bodies() async {
        for path in ["xml", "octets", "hops", "caused"] { await send(service.GET("/\(path)")) }
    }
}
