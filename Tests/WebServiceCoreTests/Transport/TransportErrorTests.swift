import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Errors of transports", .permit)
struct TransportErrorTests {
    private func cause(_ error: URLError?) -> NSError? { error?.userInfo[NSUnderlyingErrorKey] as? NSError }

    @Test("A POSIX error becomes a URLError with the POSIX error as its cause")
    func posix() {
        let error = URLError(transport: NSError(domain: NSPOSIXErrorDomain, code: Int(ECONNREFUSED)))
        #expect(error?.code == .cannotConnectToHost)
        #expect(cause(error)?.domain == NSPOSIXErrorDomain)
        #expect(cause(error)?.code == Int(ECONNREFUSED))
    }

    @Test("The POSIX cause of a URLError is preserved without its other values")
    func cause() {
        let posix = NSError(
            domain: NSPOSIXErrorDomain, code: Int(ECONNRESET), userInfo: ["url": "canary"])
        let error = URLError(transport: URLError(.networkConnectionLost, userInfo: [NSUnderlyingErrorKey: posix]))
        #expect(error?.code == .networkConnectionLost)
        #expect(cause(error)?.code == Int(ECONNRESET))
        #expect(cause(error)?.userInfo.isEmpty == true)
    }

    @Test("A cause of another domain is omitted, because it may contain a URL")
    func otherDomain() {
        let other = NSError(domain: "canary", code: 1, userInfo: ["url": "canary"])
        let error = URLError(transport: URLError(.timedOut, userInfo: [NSUnderlyingErrorKey: other]))
        #expect(error?.code == .timedOut)
        #expect(cause(error) == nil)
    }
}
