import Observation
import Synchronization
import WebServiceCore
import WebServiceEndpoints

/// The state of the user's account: logged out, logging in, or logged in.
@MainActor @Observable
final class Account {
    enum State: Equatable {
        case loggedOut
        case loggingIn
        case loggedIn(user: String)
    }

    private(set) var state = State.loggedOut
    private(set) var message: String?

    private let logins: WebService
    private let service: WebService
    private let authentication: Authentication
    private let tokens: TokenStore

    init(logins: WebService, service: WebService, authentication: Authentication, tokens: TokenStore) {
        self.logins = logins
        self.service = service
        self.authentication = authentication
        self.tokens = tokens
    }

    /// Logs in, and stores the token for all further requests of the service.
    func logIn(user: String, password: String) async {
        struct Login: Decodable, Sendable { var access_token: String }
        guard state == .loggedOut else { return }
        state = .loggingIn
        message = nil
        do {
            let form: Parameters = ["grant_type": "password", "username": user, "password": password]
            let login = try await logins.POST("/token").setFormParameters(form).decode(Login.self).value
            let credential = Credential.bearer(login.access_token)
            tokens.credential = credential
            authentication.update(credential)
            state = .loggedIn(user: user)
        } catch {
            state = .loggedOut
            message = (error as? WebServiceError)?.status == 401 ? "The password is wrong." : error.messageForUsers
        }
    }

    /// Logs out: removes the token first, then ends the requests, then removes what they stored.
    func logOut() async {
        tokens.credential = nil
        authentication.clear()
        service.cancelAll()
        state = .loggedOut
        do { try await service.deleteAllStored() } catch { message = error.messageForUsers }
    }
}

/// The token of the user. An app on Apple platforms would store it in the Keychain.
final class TokenStore: Sendable {
    private let stored = Mutex<Credential?>(nil)

    /// The credential; `nil` if the user is logged out.
    var credential: Credential? {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}
