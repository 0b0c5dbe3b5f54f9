import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The progress of bodies whose length is or is not known.
@Suite("Progress of request bodies", .permit)
struct UploadProgressTests {
    private static func progress(
        _ body: Request.Body, over session: RealSession, isStreamed: Bool, isCompressed: Bool = false,
        until isComplete: ([TransferProgress]) -> Bool
    ) async throws -> [TransferProgress] {
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: Data(count: 10)) }
        defer { server.stop() }
        let values = Mutex<[TransferProgress]>([])
        let task = try session.service(server).POST("/").setBody(body)
            .configure { $0.options.compressesBody = isCompressed }
            .onProgress { value in values.withLock { $0.append(value) } }
        if isStreamed {
            for try await _ in try await task.stream().value.body {}
        } else {
            _ = try await task.data().value
        }
        // Reports may follow the result.
        await eventually("the body is reported") { isComplete(values.withLock { $0 }) }
        return values.withLock { $0 }
    }

    @Test(
        "A body of unknown length has no fraction before its end", arguments: RealSession.streaming,
        [true, false])
    func unknown(session: RealSession, isStreamed: Bool) async throws {
        let file = try UploadFile(size: 400_000)
        for (body, isCompressed) in [
            (Request.Body.stream(length: nil) { Chunks([100_000, 300_000]) }, false), (.file(file.url), true),
            (.stream(length: 400_000) { Chunks([100_000, 300_000]) }, true),
        ] {
            let values = try await Self.progress(
                body, over: session, isStreamed: isStreamed, isCompressed: isCompressed
            ) { !$0.isEmpty }
            let total = values.map(\.bytesSent).max() ?? 0
            #expect(total > 0)
            if session.isCurl {
                #expect(values.allSatisfy { $0.bytesToSend == nil })
                #expect(values.allSatisfy { $0.fractionSent == nil })
            } else {
                // The session collects the body first, and then knows its length.
                #expect(values.allSatisfy { $0.fractionSent != 1 || $0.bytesSent == total })
            }
        }
    }

    @Test(
        "A body of known length has it in each report", arguments: RealSession.streaming,
        [true, false])
    func known(session: RealSession, isStreamed: Bool) async throws {
        let file = try UploadFile(size: 400_000)
        for body in [
            Request.Body.file(file.url), .data(Data(count: 400_000)),
            .stream(length: 400_000) { Chunks([100_000, 300_000]) },
        ] {
            let values = try await Self.progress(body, over: session, isStreamed: isStreamed) {
                $0.last?.bytesSent == 400_000
            }
            #expect(values.allSatisfy { $0.bytesToSend == 400_000 })
            #expect(values.last?.fractionSent == 1)
        }
    }

    @Test("A fraction is that of a known length, and 1 without a body")
    func fractions() {
        #expect(TransferProgress().fractionSent == 1)
        #expect(TransferProgress(bytesSent: 5, bytesToSend: nil).fractionSent == nil)
        #expect(TransferProgress(bytesSent: 5, bytesToSend: 20).fractionSent == 0.25)
        #expect(TransferProgress(bytesSent: .max, bytesToSend: 1).fractionSent == 1)
    }
}
