import Foundation
import WebServiceCore
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Uploads a file, for tests that kill the process.
///
/// - Parameter life: The duration in microseconds after which the process kills itself; negative for
///   none.
/// - Returns: The exit status: 0 for success, 1 for an error.
func probeUpload(_ url: String, of path: String, resuming: UploadProtocol, pieceSize: Int, life: Int) async throws
    -> Int32
{
    let service = WebService(baseURLString: url)
    #if WEBSERVICE_CURL
    service.session = try CurlSession()
    #endif
    if life >= 0 {
        Task {
            await elapse(.microseconds(life))
            kill(getpid(), SIGKILL)
        }
    }
    let file = try await service.PUT(url).setBody(file: URL(fileURLWithPath: path))
        .upload(resuming: resuming, pieceSize: pieceSize).value
    tell("\(file.byteCount) \(peakMemory ?? "0")")
    return 0
}
