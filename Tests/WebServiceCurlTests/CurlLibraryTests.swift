import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

@Suite("Curl session: the loaded libcurl", .permit)
struct CurlLibraryTests {
    private let library = CurlSession.library

    @Test("The reported version and features are those of the loaded libcurl")
    func version() {
        let name = String(cString: curl_version())
        #expect(name.hasPrefix("libcurl/\(library.version)"))
        #expect(library.tls.map { name.contains($0) } == true)
        #expect(library.supportsHTTP2 == name.contains("nghttp2/"))
        #expect(library.supportsHTTP3 == (name.contains("nghttp3/") || name.contains("quiche/")))
        #expect(library.description.hasPrefix("libcurl \(library.version), "))
    }

    @Test("A session with HTTP/3 is created if libcurl supports it; otherwise, the error says what to do")
    func http3() {
        var configuration = CurlSession.Configuration()
        configuration.httpVersion = .http3
        var error: WebServiceError?
        do { _ = try CurlSession(configuration: configuration) } catch let caught { error = caught as? WebServiceError }
        #expect(error?.code == (library.supportsHTTP3 ? nil : .curl))
        let message = "libcurl rejected HTTP/3; install a libcurl that supports it or set another httpVersion"
        #expect(error?.message.hasPrefix(message) ?? library.supportsHTTP3)
    }

    @Test(
        "With libcurl older than 7.80, no session is created, and the error contains the version",
        arguments: [(0x07_3D01, "7.61"), (0x07_4C01, "7.76"), (0x07_4FFF, "7.79")])
    func oldLibrary(version: UInt32, name: String) {
        let error = #expect(throws: WebServiceError.self) { try CurlSession.Library.check(version: version) }
        #expect(error?.code == .curl)
        #expect(error?.errorDescription?.contains("libcurl \(name) is older than 7.80") == true)
    }

    @Test("Versions since 7.80 are accepted", arguments: [0x07_5000, 0x07_5801, 0x08_1700, 0x09_0000])
    func newLibrary(version: UInt32) throws {
        try CurlSession.Library.check(version: version)
    }

    @Test("The version structure of an older libcurl, which is shorter, is not read beyond its end")
    func shortStructure() throws {
        let page = Int(getpagesize())
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        try #require(memory != MAP_FAILED)
        defer { munmap(memory, 2 * page) }
        #expect(mprotect(memory + page, page, PROT_NONE) == 0)
        let size = try #require(MemoryLayout<curl_version_info_data>.offset(of: \.ares))
        let information = memory + page - size
        information.copyMemory(from: curl_version_info(CURLVERSION_FIRST), byteCount: size)
        let data = UnsafePointer(information.assumingMemoryBound(to: curl_version_info_data.self))
        #expect(CurlSession.Library(data, .system) == library)
    }

    @Test("A session requests the reported content codings")
    func contentCodings() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        _ = try await WebService(server, try CurlSession()).GET("/").data().value
        let accepted = try #require(server.receivedRequests.first?.headers["Accept-Encoding"])
        #expect(accepted.split(separator: ", ").map(String.init) == library.contentCodings)
    }

    @Test(
        "A session does not use HTTP/3, even if libcurl supports it",
        .enabled(if: CurlSession.library.supportsHTTP3, "this libcurl does not support HTTP/3"),
        .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"))
    func http3() async throws {
        let server = try SecureServer()
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
        }
        let task = service.GET("/").string()
        #expect(try await task.value.hasPrefix("HTTP/2.0"))
        #expect(try await task.response.transport?.networkProtocol == "HTTP/2")
    }

    @Test(
        "An OpenSSL that the program has loaded besides that of libcurl is not called",
        .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"),
        .enabled(if: dlopen("libssl.so.3", RTLD_NOW | RTLD_GLOBAL) != nil, "the system has no libssl.so.3"))
    func otherOpenSSL() async throws {
        let body = Data(repeating: 0x61, count: 40_000)
        let backend = try MockServer.forTest { _ in MockResponse(body, wire: .untilClose) }
        let server = try SecureServer(backend: backend.baseURLString)
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.httpVersion = .http1
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
        }
        for _ in 0..<3 { #expect(try await service.GET("/").data().value == body) }
    }
}
