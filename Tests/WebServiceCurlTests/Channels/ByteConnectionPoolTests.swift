import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Byte connections: beside requests", .permit)
struct ByteConnectionPoolTests {
    @Test("Connections beyond the limit wait in order, and one that ends lets the next start")
    func limit() async throws {
        let session = try CurlSession {
            $0.proxy = .none
            $0.maximumWebSocketConnections = 2
        }
        let peer = try BytePeer { $0.awaitEnd() }
        let first = try await session.connect(port: peer.port)
        let second = try await session.connect(port: peer.port)
        let waiting = Task { try await session.connect(port: peer.port) }
        let cancelled = Task { await outcome { try await session.connect(port: peer.port) } }
        cancelled.cancel()
        #expect(await cancelled.value.urlErrorCode == .cancelled)
        await eventually("two are open") { peer.openCount == 2 }
        first.close()
        let third = try await waiting.value
        await eventually("three were accepted") { peer.acceptedCount == 3 && peer.openCount == 2 }
        second.close()
        third.close()
    }

    @Test("A connection that cannot be opened counts no longer")
    func failures() async throws {
        let session = try CurlSession {
            $0.proxy = .none
            $0.maximumWebSocketConnections = 1
        }
        for _ in 0..<3 {
            // Another test may take a port that the system assigns.
            let result = await outcome { try await session.connect(port: 9) }
            #expect(result.urlErrorCode == .cannotConnectToHost)
        }
        let peer = try BytePeer.echo()
        #expect(try await session.connect(port: peer.port).exchange(Data("a".utf8)) == Data("a".utf8))
    }

    @Test("They count toward no limit of requests, and idle connections of requests stay in the pool")
    func pool() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let session = try CurlSession {
            $0.proxy = .none
            $0.maximumConnections = 1
            $0.maximumConnectionsPerHost = 1
            $0.maximumIdleConnections = 1
        }
        let service = WebService(server, session)
        #expect(try await service.GET("/").string().value == "ok")
        let peer = try BytePeer.echo()
        var connections: [any ByteConnection] = []
        for _ in 0..<20 { connections.append(try await session.connect(port: peer.port)) }
        // One more, to the server of the requests itself.
        connections.append(try await session.connect(port: server.port))
        let task = service.GET("/").string()
        #expect(try await task.value == "ok")
        #expect(try await task.response.transport?.isConnectionReused == true)
        for connection in connections.prefix(20) {
            #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        }
        for connection in connections { connection.close() }
        let last = service.GET("/").string()
        #expect(try await last.value == "ok")
        #expect(try await last.response.transport?.isConnectionReused == true)
    }

    @Test("Requests and connections on one loop do not disturb each other", .exclusive)
    func mixture() async throws {
        let server = try MockServer.forTest { request in MockResponse(request.url?.path ?? "") }
        let session = try CurlSession { $0.proxy = .none }
        let service = WebService(server, session)
        let peer = try BytePeer.echo()
        let areEqual = try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<40 {
                group.addTask {
                    let connection = try await session.connect(port: peer.port)
                    for round in 0..<20 {
                        let bytes = ByteConnectionTests.bytes(index * round * 37 + 1)
                        guard try await connection.exchange(bytes) == bytes else { return false }
                    }
                    return true
                }
                group.addTask {
                    for round in 0..<20 {
                        guard try await service.GET("/\(index)/\(round)").string().value.hasSuffix("/\(index)/\(round)")
                        else { return false }
                    }
                    return true
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(areEqual.count { $0 } == 80)
    }

    @Test("Connections outlive the idle connections of requests")
    func expiry() async throws {
        let clock = TestClock()
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        configuration.idleConnectionLifetime = .seconds(5)
        let session = try CurlSession(configuration: configuration, timekeeper: clock)
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = session
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port)
        #expect(try await service.GET("/").string().value == "ok")
        await clock.advance(by: .seconds(6))
        await clock.advance(by: .seconds(6))
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        let task = service.GET("/").string()
        #expect(try await task.value == "ok")
        #expect(try await task.response.transport?.isConnectionReused == false)
        connection.close()
        #expect(try await session.connect(port: peer.port).exchange(Data("b".utf8)) == Data("b".utf8))
    }
}
