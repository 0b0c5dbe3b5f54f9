import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The sessions over which uploads are tested.
enum UploadSession: CaseIterable, Sendable {
    case foundation
    #if WEBSERVICE_CURL
    case curl
    #endif

    static var best: UploadSession { allCases.last ?? .foundation }

    func session() throws -> any Session {
        switch self {
        case .foundation: FoundationSession()
        #if WEBSERVICE_CURL
        case .curl: try CurlSession()
        #endif
        }
    }
}

extension UploadProtocol {
    static var allCases: [UploadProtocol] { [.draft, .tus] }
}

/// A file, a server that stores it, and a service.
final class UploadFixture: Sendable {
    static let pieceSize = 100_000

    let server: UploadServer
    let service: WebService
    let folder: TemporaryFolder
    let file: URL
    let content: Data
    let kind: UploadProtocol
    private let session: UploadSession

    init(
        _ kind: UploadProtocol, _ count: Int = 350_000, _ settings: UploadServer.Settings = UploadServer.Settings(),
        over session: UploadSession = .best, fault: UploadServer.Fault? = nil
    ) throws {
        (self.kind, self.session) = (kind, session)
        server = try UploadServer(kind, settings, fault: fault)
        service = WebService(server.server.baseURLString, session: try session.session())
        folder = TemporaryFolder()
        content = Self.content(count)
        file = try folder.file("a.iso", content)
    }

    /// Returns pseudorandom bytes.
    static func content(_ count: Int, seed: UInt64 = 1) -> Data {
        var state = seed
        var data = Data(capacity: count + 8)
        while data.count < count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            withUnsafeBytes(of: state) { data.append(contentsOf: $0) }
        }
        return data.prefix(count)
    }

    /// The task that is uploaded.
    var request: SessionTask { service.PUT("/files/1").setBody(file: file, contentType: "application/x-iso") }

    func upload(state: URL? = nil) -> TypedTask<UploadedFile> {
        request.upload(resuming: kind, pieceSize: Self.pieceSize, state: state)
    }

    /// Returns whether the server has exactly the content of the file.
    var isStored: Bool { server.upload?.data == content && server.upload?.isComplete == true }

    /// The names in the folder of the file.
    var names: [String] { get throws { try TestSupport.names(in: folder.url) } }

    /// The stored state.
    var state: URL? {
        get throws {
            try names.first { $0.hasSuffix(".webservice-upload") }.map { folder.url.appendingPathComponent($0) }
        }
    }

    /// Uploads until the connection is lost within the piece with this number, counted from 0.
    func interrupt(after count: Int) async throws {
        let pieces = Mutex(0)
        server.set { [session] request, _ in
            guard !request.body.isEmpty,
                pieces.withLock({ value in
                    defer { value += 1 }; return value
                }) == count
            else { return nil }
            // Foundation on Linux waits for its timeout if a response is cut off.
            return session == .foundation ? MockResponse(statusCode: 500) : .lost
        }
        do { _ = try await upload().value } catch is URLError {} catch let error as WebServiceError {
            guard error.status == 500 else { throw error }
        }
        server.set(nil)
    }
}

extension MockResponse {
    /// A response during which the connection is lost. Without its head, libcurl would send the
    /// request once more.
    static var lost: MockResponse {
        var response = MockResponse(statusCode: 200, data: Data("lost".utf8))
        response.wire = .cut(after: 1)
        return response
    }
}
