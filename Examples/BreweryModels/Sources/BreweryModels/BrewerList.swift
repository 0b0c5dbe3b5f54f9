import Foundation
import Observation
import WebServiceCore
import WebServicePagination

/// A list that is loaded page by page, and searched while the user types.
@MainActor @Observable
final class BrewerList {
    private(set) var brewers: [Brewer] = []
    private(set) var isLoading = false
    private(set) var message: String?

    /// The text of the search field. A change cancels the previous search, and starts a new one
    /// when the text has not changed for 300 milliseconds.
    var text = "" {
        didSet { if text != oldValue { restart(after: .milliseconds(300)) } }
    }

    /// The work in progress; tests await it.
    @ObservationIgnored private(set) var work: Task<Void, Never>?
    @ObservationIgnored private var pages: Paginator<Brewer, Int>
    private let service: WebService
    private let executor: (any TaskExecutor)?

    init(service: WebService, executor: (any TaskExecutor)? = nil) {
        self.service = service
        self.executor = executor
        pages = Self.pages(matching: "", of: service)
    }

    /// Loads the first page again, for example when the list appears or is pulled down.
    func reload() { restart(after: .zero) }

    /// Loads the next page when the last brewer of the list appears.
    func appeared(_ brewer: Brewer) {
        guard brewer.id == brewers.last?.id, !isLoading, pages.canMoveNext else { return }
        load(after: .zero, replacing: false)
    }

    private func restart(after delay: Duration) {
        pages = Self.pages(matching: text, of: service)
        load(after: delay, replacing: true)
    }

    private func load(after delay: Duration, replacing: Bool) {
        work?.cancel()
        isLoading = true
        message = nil
        // The clock of the service is a TestClock in tests.
        work = Task(executorPreference: executor) { @concurrent [pages, clock = service.clock, weak self] in
            do {
                if delay > .zero { try await clock.sleep(for: delay) }
                let page = try await pages.moveNext()
                await self?.show(.success(page?.items ?? []), replacing: replacing)
            } catch {
                await self?.show(.failure(error), replacing: replacing)
            }
        }
    }

    private func show(_ result: Result<[Brewer], any Error>, replacing: Bool) {
        // A later search has set the properties already.
        guard !Task.isCancelled else { return }
        isLoading = false
        switch result {
        case .success(let items): brewers = replacing ? items : brewers + items
        case .failure(let error) where error.isCancellation: break  // by a log-out
        case .failure(let error): message = error.messageForUsers
        }
    }

    private static func pages(matching text: String, of service: WebService) -> Paginator<Brewer, Int> {
        .offset(itemsPerPage: 20, end: .shortPage) { offset, limit in
            service.GET("/brewers")
                .setQueryParameters(["name": text.isEmpty ? nil : text, "offset": offset, "limit": limit])
                .decode([Brewer].self)
        }
    }
}
