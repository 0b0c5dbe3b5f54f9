import TestSupport
import Testing

@testable import WebServiceCore

@Suite("The default session", .permit)
struct DefaultSessionTests {
    private func code(of body: () throws -> Void) -> WebServiceError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? WebServiceError)?.code
        }
    }

    @Test("The default session can be set once, before it is used")
    func once() throws {
        let (first, second) = (HandSession(), HandSession())
        let unused = DefaultSession()
        try unused.set(first)
        #expect(code { try unused.set(second) } == .defaultSessionInUse)
        #expect(unused.session as? HandSession === first)
    }

    @Test("The default session cannot be set after it was used")
    func used() {
        let used = DefaultSession()
        #expect(used.session as? FoundationSession === FoundationSession.shared)
        #expect(code { try used.set(HandSession()) } == .defaultSessionInUse)
        #expect(used.session as? FoundationSession === FoundationSession.shared)
    }

    @Test("Creating a service uses the default session, and the service retains its own session")
    func service() {
        let service = WebService(baseURLString: "https://h/")
        #expect(code { try WebService.setDefaultSession(HandSession()) } == .defaultSessionInUse)
        #expect(service.session as? FoundationSession === FoundationSession.shared)
        #expect(WebService.defaultSession as? FoundationSession === FoundationSession.shared)
    }
}
