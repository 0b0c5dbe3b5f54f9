import Foundation
import WebServiceCore
import WebServiceEndpoints
import WebServiceStorage

/// The service, the tokens and the models that all screens of the app share.
///
/// The app creates it once. A test passes the service of a `MockService`, and the executor of its
/// clock.
@MainActor
final class BreweryApp {
    let service: WebService
    let account: Account
    private let executor: (any TaskExecutor)?

    /// - Parameters:
    ///   - service: The service, with the base URL and the session of the API.
    ///   - executor: The executor of searches; `nil` for that of the process.
    init(service: WebService, executor: (any TaskExecutor)? = nil) {
        let tokens = TokenStore()
        let authentication = Authentication(TokenSource { tokens.credential })
        let logins = service.clone()  // sends no token, and is not cancelled by a log-out
        service.interceptors = [.retry(), authentication]
        if service.storages.isEmpty { service.storages = [MemoryStorage()] }
        self.service = service
        self.executor = executor
        account = Account(logins: logins, service: service, authentication: authentication, tokens: tokens)
    }

    /// Returns the model of the list.
    func list() -> BrewerList { BrewerList(service: service, executor: executor) }

    /// Returns the model of the screen of a brewer.
    func detail(_ id: Int) -> BrewerDetail { BrewerDetail(id: id, service: service) }

    /// Returns the model of the download of a brewer's poster.
    func poster(_ id: Int, folder: URL) -> PosterDownload {
        PosterDownload(brewer: id, folder: folder, service: service)
    }
}
