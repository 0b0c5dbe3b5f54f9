import Foundation
import Observation
import WebServiceCore
import WebServiceEndpoints

/// One brewer: the stored value first, then the server's.
@MainActor @Observable
final class BrewerDetail {
    private(set) var brewer: Brewer?
    /// The date at which the shown value was stored; `nil` if it came from the server.
    private(set) var storedDate: Date?
    private(set) var message: String?

    private let id: Int
    private let service: WebService

    init(id: Int, service: WebService) {
        self.id = id
        self.service = service
    }

    /// Loads the brewer.
    ///
    /// The view calls it in `.task`: when the view disappears, the request is cancelled. If the
    /// server cannot be reached, the stored value remains.
    func load() async {
        message = nil
        do {
            for try await value in service.perform(BrewerRequest(id: id), fetchPolicy: .cacheThenServer).values {
                brewer = value.value
                storedDate = value.isStored ? value.date : nil
            }
        } catch {
            if !error.isCancellation { message = error.messageForUsers }
        }
    }
}
