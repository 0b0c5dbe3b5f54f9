import Foundation
import TestSupport
import Testing
import WebServiceConformance
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCore

@Suite("Equality of errors", .permit)
struct ErrorEqualityTests {
    static let codes: [WebServiceError.Code] = [
        .invalidURL, .invalidMethod, .invalidHeader, .encoding, .decoding, .emptyResponse, .unacceptableStatus,
        .unexpectedContentType,
        .responseTooLarge, .deadline, .tooManyAttempts, .noStub, .noEndpoint, .duplicateRequest, .unexpectedOutput,
        .noStoredData,
        .authenticationFailed, .tooManyRedirects,
    ]

    @Test(
        "Errors of the same kind have equal codes, and errors of different kinds have different codes")
    func codes() {
        #expect(Set(Self.codes).count == Self.codes.count)
        for code in Self.codes {
            let plain = WebServiceError(code, "a")
            let full = WebServiceError(
                code, "b", request: Request(url: "https://h/"), body: Data([1]), underlying: TestError())
            #expect(plain.code == full.code)
            #expect(plain.code == WebServiceError.Code(code.description))
            #expect(plain.code.hashValue == full.code.hashValue)
        }
    }

    @Test("Every typed error is Sendable, and a caught WebServiceError is identified by its code")
    func caught() async throws {
        func requireSendable<Failure: Error & Sendable>(_: Failure.Type) {}
        requireSendable(WebServiceError.self)
        requireSendable(StorageEntry.Failure.self)
        requireSendable(SessionScenario.Failure.self)
        func codeOfDeadline(_ path: String) async -> WebServiceError.Code? {
            let clock = ManualTimekeeper()
            let task = WebService.make(timekeeper: clock).GET(path).setDeadline(.seconds(1)).data().resume()
            clock.advance(by: .seconds(2))
            do {
                _ = try await task.value
                return nil
            } catch let error as WebServiceError {
                return error.code
            } catch {
                return nil
            }
        }
        let (first, second) = await (codeOfDeadline("/a"), codeOfDeadline("/b"))
        #expect(first == .deadline)
        #expect(first == second)
    }
}
