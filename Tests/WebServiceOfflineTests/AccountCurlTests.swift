#if WEBSERVICE_CURL && canImport(Glibc)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceOffline

/// After a log-out, the sockets of the process are counted.
@Suite("No byte of an account leaves over CurlSession", .permit)
struct AccountCurlTests {
    /// Returns the number of sockets of this process that are connected to a port.
    private func connections(to port: Int) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }.count {
            descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
            }
            return isConnected && Int(UInt16(bigEndian: address.sin_port)) == port
        }
    }

    @Test("When the log-out returns, the connections of the requests in flight are closed")
    func settled() async throws {
        let session = try CurlSession()
        defer { session.close(.cancelling) }
        let template = WebService(baseURLString: "")
        template.session = session
        for _ in 0..<50 {
            let listener = try LoopbackListener()
            listener.serve { descriptor in
                var buffer = [UInt8](repeating: 0, count: 1_000)
                while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
                close(descriptor)
            }
            let folder = TemporaryFolder()
            let account = try Account(in: folder.url.appendingPathComponent("anna"))
            let service = account.service(like: template)
            let endless = AsyncStream<Data>(unfolding: { Data("x".utf8) })
            let url = "http://127.0.0.1:\(listener.port)/"
            let task = Task { try await service.PUT(url).setBody(.stream(endless)).data().response }
            await eventually { service.exchanges.first?.progress?.bytesSent ?? 0 > 100 }
            #expect(try connections(to: listener.port) == 1)
            try await account.logOut()
            #expect(try connections(to: listener.port) == 0)
            _ = await task.result
        }
    }
}
#endif
