import Foundation
import Observation
import WebServiceCore
import WebServiceTransfers

/// The download of a poster, with its progress.
@MainActor @Observable
final class PosterDownload {
    enum State: Equatable {
        case idle
        /// The fraction is `nil` until the size of the file is known.
        case running(fraction: Double?)
        case finished(URL)
        case failed(String)
    }

    private(set) var state = State.idle

    @ObservationIgnored private var task: TypedTask<DownloadedFile>?
    private let brewer: Int
    private let folder: URL
    private let service: WebService

    init(brewer: Int, folder: URL, service: WebService) {
        self.brewer = brewer
        self.folder = folder
        self.service = service
    }

    /// Starts the download, or continues one that was interrupted.
    func start() async {
        if case .running = state { return }
        state = .running(fraction: nil)
        let task = service.GET("/brewers/{id}/poster", pathParameters: ["id": brewer])
            .download(to: folder.appendingPathComponent("poster-\(brewer).jpg"), createsFolders: true)
            .resume()
        self.task = task
        for await progress in task.progress { state = .running(fraction: progress.fractionReceived) }
        do {
            state = .finished(try await task.value.url)
        } catch {
            state = error.isCancellation ? .idle : .failed(error.messageForUsers)
        }
    }

    /// Stops the download. The bytes that have arrived are stored until the next start.
    func cancel() { task?.cancel() }
}
