import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Range requests to a mock server with numbers of any size.
@Suite("Ranges of mock responses", .permit)
struct MockRangeTests {
    @Test(
        "A range with any numbers gets the bytes that the file has, 416, or the whole file",
        arguments: [
            ("bytes=0-9223372036854775807", 206, "0123456789"), ("bytes=9-9223372036854775807", 206, "9"),
            ("bytes=0-9223372036854775808", 206, "0123456789"), ("bytes=3-99999999999999999999999", 206, "3456789"),
            ("bytes=-9223372036854775807", 206, "0123456789"), ("bytes=-99999999999999999999999", 206, "0123456789"),
            ("bytes=9223372036854775807-", 416, ""), ("bytes=99999999999999999999999-", 416, ""),
            ("bytes=9223372036854775807-9223372036854775807", 416, ""), ("bytes=10-", 416, ""),
            ("bytes=-0", 416, ""), ("bytes=9-", 206, "9"), ("bytes=-1", 206, "9"), ("bytes=2-4", 206, "234"),
            ("bytes=4-2", 200, "0123456789"), ("bytes=-", 200, "0123456789"), ("bytes=", 200, "0123456789"),
            ("bytes=0-1-2", 200, "0123456789"), ("bytes=-1-", 200, "0123456789"), ("bytes=+1-2", 200, "0123456789"),
        ])
    func numbers(range: String, status: Int, text: String) async throws {
        let server = try MockServer.forTest { request in
            MockResponse(file: Data("0123456789".utf8), eTag: nil, for: request)
        }
        let response = try await RealSession.best.service(server).GET("/").setHeaderValue(range, forName: "Range")
            .data().validate(statuses: 200...499).response
        #expect(response.status == status)
        #expect(String(decoding: response.data, as: UTF8.self) == text)
    }
}
