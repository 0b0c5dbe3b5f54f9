import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite("Errors: what the users of a program read")
struct ErrorDescriptionTests {
    private func error(_ status: Int, _ body: String, type: String = "application/problem+json") async -> any Error {
        let mock = MockSession()
        let service = WebService(baseURLString: "https://mock.test")
        service.session = mock
        var response = MockResponse(statusCode: status, data: Data(body.utf8))
        response.headers[.contentType] = type
        mock.on(.GET, "/orders", response)
        let result = await service.GET("/orders?token=s3cret").data().result
        guard case .failure(let error) = result else { return URLError(.unknown) }
        return error
    }

    @Test("A status is described with its reason phrase")
    func reasonPhrase() async {
        #expect(await error(404, "", type: "").localizedDescription == "The server responded with 404 Not Found.")
    }

    @Test("A status without a reason phrase is described by its number")
    func unknownStatus() async {
        #expect(await error(599, "", type: "").localizedDescription == "The server responded with status 599.")
    }

    @Test("The title and the detail of a problem document follow")
    func problem() async {
        let error = await error(409, #"{"title": "Out of stock.", "detail": "Two kegs are left"}"#)
        #expect(
            error.localizedDescription == "The server responded with 409 Conflict: Out of stock. Two kegs are left.")
    }

    @Test("The description for logs has no text of the server")
    func descriptionForLogs() async throws {
        let error = await error(409, #"{"title": "Out of stock", "detail": "s3cret"}"#)
        #expect("\(error)".hasPrefix("unacceptableStatus: the server responded with 409 Conflict (GET "))
        #expect(!"\(error)".contains("Out of stock"))
        #expect(!"\(error)".contains("s3cret"))
    }

    @Test(
        "Control characters of a problem document are replaced by spaces",
        arguments: [
            (#"a\u001b[31mb"#, "a [31mb."), (#"a\r\nb"#, "a  b."), (#"a\u202eb"#, "a b."), (#"a\u2028b"#, "a b."),
            (#" \t "#, ""),
        ])
    func controlCharacters(title: String, text: String) async {
        let error = await error(500, #"{"title": "\#(title)"}"#)
        let start = "The server responded with 500 Internal Server Error"
        #expect(error.localizedDescription == (text.isEmpty ? "\(start)." : "\(start): \(text)"))
    }

    @Test("A long problem document is truncated")
    func longProblem() async {
        let error = await error(400, #"{"title": "\#(String(repeating: "ä", count: 1 << 20))"}"#)
        #expect(error.localizedDescription.utf8.count <= 1_000)
        #expect(error.localizedDescription.hasSuffix("…"))
    }

    @Test("What a developer has to change is left out")
    func remedy() async {
        let error = await #expect(throws: WebServiceError.self) {
            try await WebService(baseURLString: "https://mock.test/v1").GET("../admin").data().value
        }
        #expect(error?.localizedDescription == "The path leads above the base URL.")
    }

    @Test("Every reason phrase consists of words that can be written on a status line")
    func phrases() {
        for (status, phrase) in Response.reasonPhrases {
            #expect((100...599).contains(status))
            #expect(phrase.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "\(phrase)")
        }
    }
}
