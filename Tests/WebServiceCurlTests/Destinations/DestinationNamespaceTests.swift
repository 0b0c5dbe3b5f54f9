import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceServer

// The header of libcurl declares the constants of sockets as well.
import CCurl

/// The addresses to which a session may connect, in a network namespace of Linux where every IP
/// address is one of this host. A request to any of them therefore opens a real connection, and no
/// byte leaves the namespace.
///
/// The tests of ``DestinationsInNamespace`` run in a child process there, with a resolv.conf that
/// names a server of the test, which the system's resolver asks: without c-ares, libcurl cannot be
/// given a name server.
@Suite("Destinations: every address, in a network namespace", .permit)
struct DestinationNamespaceTests {
    private static let unshare = "/usr/bin/unshare"
    private static let ip = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        .first(where: FileManager.default.isExecutableFile)
    private static let executable = "/proc/self/exe"

    /// Runs a test of ``DestinationsInNamespace``.
    private func run(_ test: String, _ variables: [String: String] = [:]) async throws {
        guard let ip = Self.ip, FileManager.default.isExecutableFile(atPath: Self.unshare),
            FileManager.default.fileExists(atPath: Self.executable)
        else { return print("SKIPPED: unshare or ip is missing") }
        let configuration = TemporaryFolder.forTest().url.appendingPathComponent("resolv.conf")
        try Data("nameserver 127.0.0.1\noptions timeout:2 attempts:2\n".utf8).write(to: configuration)
        let setup = """
            set -e
            "$0" link set lo up
            "$0" route add local 0.0.0.0/0 dev lo
            "$0" -6 route add local ::/0 dev lo
            mount --bind "$1" /etc/resolv.conf
            echo IN-NAMESPACE
            shift
            exec "$@"
            """
        let environment = ProcessInfo.processInfo.environment.filter {
            $0.key.hasSuffix("SAN_OPTIONS") || ["LD_LIBRARY_PATH", "PATH", "TMPDIR"].contains($0.key)
        }
        let output = Pipe()
        let process = ChildProcess(
            Self.unshare,
            [
                "--map-root-user", "--net", "--mount", "/bin/sh", "-c", setup, ip, configuration.path,
                URL(fileURLWithPath: Self.executable).resolvingSymlinksInPath().path,
                "--testing-library", "swift-testing", "--filter", "DestinationsInNamespace/\(test)",
            ],
            environment: environment.merging(
                ["WEBSERVICE_CHILD": "destinations", "SWIFT_BACKTRACE": "enable=no"].merging(variables) { $1 }
            ) { $1 },
            input: .null, output: .pipe(output), errors: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        guard text.contains("IN-NAMESPACE") else { return print("SKIPPED: no namespace: \(text)") }
        #expect(status == 0, "\(text)")
        #expect(text.contains("Test run with 1 test in 1 suite passed"), "\(text)")
    }

    @Test("No address inside receives a connection, and each address outside receives the request")
    func table() async throws { try await run("table") }

    @Test("No host inside receives a connection, in any spelling, and each host outside receives the request")
    func hosts() async throws { try await run("hosts") }

    @Test("Names that change between two lookups of a real name server are checked by the address that is used")
    func names() async throws { try await run("names") }

    @Test("A proxy outside forwards no request to an address inside, and an environment proxy is checked itself")
    func proxies() async throws {
        try await run("proxies", ["http_proxy": "http://93.184.215.14:9", "no_proxy": "10.0.0.9,inside.example"])
    }
}

@Suite(
    "Destinations: in the namespace", .permit,
    .enabled(if: ProcessInfo.processInfo.environment["WEBSERVICE_CHILD"] == "destinations", "run by another suite"))
struct DestinationsInNamespace {
    private func service(
        _ destinations: CurlSession.Destinations, _ change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> WebService {
        let service = WebService(baseURL: nil)
        service.session = try CurlSession {
            $0.proxy = .none
            $0.connectTimeout = .seconds(5)
            $0.destinations = destinations
            change(&$0)
        }
        return service
    }

    @Test func table() async throws {
        let server = try AddressServer("::")
        let port = server.port
        let strict = try service(.publicInternet)
        let open = try service(.anywhere)
        for address in AddressTable.inside {
            let result = await strict.GET("http://\(AddressTable.host(address)):\(port)/").string().result
            #expect(result.code == .destinationRefused, "\(address): \(result)")
        }
        for host in AddressTable.insideNames {
            let result = await strict.GET("http://\(host):\(port)/").string().result
            #expect(
                result.code == .destinationRefused || result.code == .invalidURL
                    || result.urlErrorCode == .cannotFindHost, "\(host): \(result)")
        }
        #expect(server.addresses.isEmpty)
        for address in AddressTable.outside {
            let result = await strict.GET("http://\(AddressTable.host(address)):\(port)/").string().result
            #expect((try? result.get()) == "ale", "\(address): \(result)")
        }
        #expect(server.addresses.count == AddressTable.outside.count)
        // Without the rule, the addresses inside receive connections, except those of groups, links
        // and broadcast.
        var unreachable: [String] = []
        for address in AddressTable.inside {
            let result = await open.GET("http://\(AddressTable.host(address)):\(port)/").string().result
            if (try? result.get()) == nil { unreachable.append(address) }
        }
        print("unreachable without the rule: \(unreachable.count) of \(AddressTable.inside.count): \(unreachable)")
        let isGroup = { (address: String) in
            [
                "224.", "233.", "239.", "127.255.255.255", "255.255.255.255", "ff", "fe8", "feb", "::ffff:224",
                "::ffff:255",
            ]
            .contains { address.hasPrefix($0) }
        }
        #expect(unreachable.allSatisfy(isGroup))
    }

    @Test func hosts() async throws {
        _ = try NameServer(port: 53) { _, _ in [] }
        let server = try AddressServer("::")
        let service = try service(.publicInternet)
        func send(_ host: String) async -> Result<String, any Error> {
            await service.GET("http://\(host):\(server.port)/").string().result
        }
        for host in HostTable.inside + HostTable.assigned {
            let result = await send(host)
            #expect(
                result.code == .destinationRefused || result.code == .invalidURL
                    || result.urlErrorCode == .cannotFindHost, "\(host): \(result)")
        }
        #expect(server.addresses.isEmpty)
        for host in HostTable.outside {
            let result = await send(host)
            #expect((try? result.get()) == "ale", "\(host): \(result)")
        }
        #expect(server.addresses.count == HostTable.outside.count)
        for host in HostTable.unsupported {
            let result = await send(host)
            #expect(result.code == .invalidURL, "\(host): \(result)")
        }
    }

    /// The addresses of a name that is inside at some lookups.
    private static let outside = "93.184.215.14"

    @Test func names() async throws {
        let names = try NameServer(port: 53) { name, lookup in
            switch name {
            case "rebind.example": [lookup == 0 ? Self.outside : "10.0.0.1"]
            case "back.example": [lookup == 0 ? "10.0.0.1" : Self.outside]
            case "mixed.example": ["10.0.0.1", "fd00::1", "169.254.169.254", Self.outside]
            case "inside.example": ["192.168.1.1", "::1", "fd00:ec2::254"]
            case "nat64.example": ["64:ff9b::10.0.0.1"]
            case "nat64-outside.example": ["64:ff9b::5db8:d70e"]
            case "mapped.example": ["::ffff:127.0.0.1"]
            case "outside.example": [Self.outside, "2606:2800:220:1:248:1893:25c8:1946"]
            default: []
            }
        }
        let server = try AddressServer("::") { head in
            head.hasPrefix("GET /redirect")
                ? "HTTP/1.1 302 Found\r\nLocation: http://inside.example:80/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                : AddressServer.ale(head)
        }
        let port = server.port
        func send(_ host: String, _ path: String = "") async throws -> Result<String, any Error> {
            let service = try service(.publicInternet)
            service.interceptors = [.retry(maximumAttempts: 3, baseDelay: .zero)]
            return await service.GET("http://\(host):\(port)/\(path)").string().result
        }
        // The program looks the name up and accepts its address. Then the session looks it up.
        #expect(Self.lookUp("rebind.example") == [Self.outside])
        #expect(try await send("rebind.example").code == .destinationRefused)
        #expect(names.lookups["rebind.example"] == 2)
        #expect(Self.lookUp("back.example") == ["10.0.0.1"])
        #expect(server.addresses.isEmpty)
        #expect(try await send("back.example").get() == "ale")
        #expect(try await send("mixed.example").get() == "ale")
        #expect(server.addresses == Array(repeating: "::ffff:\(Self.outside)", count: 2))
        for name in ["inside.example", "nat64.example", "mapped.example"] {
            #expect(try await send(name).code == .destinationRefused, "\(name)")
        }
        #expect(server.addresses.count == 2)
        #expect(try await send("nat64-outside.example").get() == "ale")
        #expect(try await send("outside.example").get() == "ale")
        #expect(server.addresses.count == 4)
        let redirected = try await send("outside.example", "redirect")
        #expect(redirected.code == .destinationRefused, "\(redirected)")
        #expect(server.addresses.count == 5)
        let session = try CurlSession {
            $0.proxy = .none
            $0.destinations = .publicInternet
        }
        #expect(
            await outcome { try await session.connect(port: port, host: "rebind.example") }.code == .destinationRefused)
        _ = try await session.connect(port: port, host: "outside.example")
        await eventually { server.addresses.count == 6 }
        #expect(try await send("unknown.example").urlErrorCode == .cannotFindHost)
    }

    @Test func proxies() async throws {
        _ = try NameServer(port: 53) { name, _ in name == "inside.example" ? ["10.0.0.9"] : [Self.outside] }
        let proxy = try AddressServer(Self.outside, port: 9) { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nproxy"
        }
        let inside = try AddressServer("10.0.0.9", port: 9)
        func send(
            _ url: String, trusting isTrusted: Bool = false, _ proxy: CurlSession.Proxy = .environment
        ) async throws -> Result<String, any Error> {
            let service = try service(.publicInternet) {
                $0.proxy = proxy
                $0.destinations.trustsProxies = isTrusted
            }
            return await service.GET(url).string().result
        }
        for configured in [CurlSession.Proxy.environment, .url("http://\(Self.outside):9")] {
            #expect(try await send("http://10.0.0.9:9/", trusting: true, configured).code == .destinationRefused)
            #expect(try await send("http://8.8.8.8/", configured).get() == "proxy")
            #expect(try await send("http://outside.example/", configured).code == .destinationRefused)
            #expect(try await send("http://outside.example/", trusting: true, configured).get() == "proxy")
        }
        #expect(proxy.addresses.count == 4)
        // The environment excludes this host from the proxy, so libcurl connects to it directly.
        #expect(try await send("http://inside.example:9/", trusting: true).code == .destinationRefused)
        #expect(inside.addresses.isEmpty)
        #expect(
            try await send("http://inside.example:9/", trusting: true, .url("http://\(Self.outside):9")).get()
                == "proxy")
        // A proxy inside is used only if the program sets it.
        #expect(try await send("http://8.8.8.8/", .url("http://10.0.0.9:9")).get() == "ale")
        setenv("http_proxy", "http://10.0.0.9:9", 1)
        let refused = try await send("http://8.8.8.8/")
        #expect(refused.code == .destinationRefused)
        #expect((refused.error as? WebServiceError)?.message.contains("or set 'proxy'") == true)
        #expect(inside.addresses.count == 1)
    }

    /// Returns the IPv4 addresses of a name that the system's resolver returns.
    private static func lookUp(_ name: String) -> [String] {
        var hints = addrinfo()
        hints.ai_family = AF_INET
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var addresses: Set<String> = []
        var entry = list
        while let current = entry?.pointee {
            var text = [CChar](repeating: 0, count: 64)
            getnameinfo(current.ai_addr, current.ai_addrlen, &text, 64, nil, 0, NI_NUMERICHOST)
            addresses.insert(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
            entry = current.ai_next
        }
        return addresses.sorted()
    }
}
