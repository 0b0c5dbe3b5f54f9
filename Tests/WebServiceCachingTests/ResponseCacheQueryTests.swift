import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

/// Responses to QUERY (RFC 10008, section 2.7).
@Suite("ResponseCache: QUERY", .permit)
struct ResponseCacheQueryTests {
    private let fixture = CacheFixture()

    private func query(
        _ text: String, type: String = "application/x-www-form-urlencoded", coding: String? = nil,
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) async throws -> String {
        let response = try await fixture.get(method: .QUERY, policy: policy) { request in
            request.content = .data(Data(text.utf8), contentType: type)
            request.headers["Content-Encoding"] = coding
        }
        return "\(response.source) \(String(decoding: response.data, as: UTF8.self))"
    }

    /// Responds with the query.
    private func echo(_ headers: Headers = ["Cache-Control": "max-age=5"]) {
        fixture.serve { request in
            CacheFixture.Reply(
                headers: headers, body: String(decoding: request.body ?? Data("none".utf8), as: UTF8.self))
        }
    }

    @Test("A stored response is used for a request with the same body")
    func reuse() async throws {
        echo()
        #expect(try await query("q=ale") == "network q=ale")
        #expect(try await query("q=ale") == "cache q=ale")
        fixture.advance(by: 6)
        #expect(try await query("q=ale") == "network q=ale")
    }

    @Test("Another body, media type or content coding selects another response")
    func selection() async throws {
        echo()
        #expect(try await query("q=ale") == "network q=ale")
        #expect(try await query("q=bock") == "network q=bock")
        #expect(try await query("q=ale", type: "text/plain") == "network q=ale")
        #expect(try await query("q=ale", coding: "identity") == "network q=ale")
        #expect(try await query("q=bock") == "cache q=bock")
        #expect(try await query("q=ale") == "cache q=ale")
    }

    @Test("Responses to GET, HEAD and QUERY for one URL are separate")
    func methods() async throws {
        echo()
        #expect(try await fixture.text() == "network none")
        #expect(try await query("") == "network ")
        #expect(try await fixture.text() == "cache none")
        #expect(try await query("") == "cache ")
        #expect(try await fixture.get(method: .HEAD).source == .cache)
    }

    @Test("An unsafe request to the URL removes the responses to QUERY, and QUERY removes none")
    func invalidation() async throws {
        echo()
        _ = try await fixture.text()
        #expect(try await query("q=ale") == "network q=ale")
        #expect(try await fixture.text() == "cache none")
        _ = try await fixture.get(method: .POST)
        #expect(try await query("q=ale") == "network q=ale")
        #expect(try await fixture.text() == "network none")
    }

    @Test("Responses to QUERY do not remove responses to GET, and at most 8 are stored")
    func limit() async throws {
        echo()
        _ = try await fixture.text()
        for number in 0..<9 { _ = try await query("q=\(number)") }
        #expect(try await fixture.text() == "cache none")
        #expect(try await query("q=8") == "cache q=8")
        #expect(try await query("q=0") == "network q=0")
        await fixture.cache.finishStoring()
        #expect(fixture.cache.statistics.evictions == 2)
    }

    @Test("A stale response is validated with its entity tag")
    func validation() async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "ales", tag: "\"1\"")
        #expect(try await query("q=ale") == "network ales")
        fixture.advance(by: 6)
        #expect(try await query("q=ale") == "revalidated ales")
    }

    @Test("A body that is not in memory bypasses the cache")
    func stream() async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "ales")
        for _ in 0..<2 {
            let response = try await fixture.get(method: .QUERY) { request in
                request.content = .stream(length: 1) {
                    AsyncStream { pieces in
                        pieces.yield(Data("q".utf8))
                        pieces.finish()
                    }
                }
            }
            #expect(response.source == .network)
        }
    }
}
