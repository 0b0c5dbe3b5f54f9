#if canImport(SwiftUI)
import SwiftUI

/// The list with a search field. Not built on Linux.
struct BrewerListView: View {
    let app: BreweryApp
    @State private var list: BrewerList

    init(app: BreweryApp) {
        self.app = app
        _list = State(initialValue: app.list())
    }

    var body: some View {
        NavigationStack {
            List(list.brewers) { brewer in
                NavigationLink(brewer.name) { BrewerView(detail: app.detail(brewer.id)) }
                    .onAppear { list.appeared(brewer) }
            }
            .overlay { if let message = list.message { Text(message) } }
            .searchable(text: $list.text)
            .refreshable {
                list.reload()
                await list.work?.value
            }
            .onAppear { list.reload() }
        }
    }
}

/// One brewer.
struct BrewerView: View {
    @State var detail: BrewerDetail

    var body: some View {
        Form {
            LabeledContent("Name", value: detail.brewer?.name ?? "")
            LabeledContent("State", value: detail.brewer?.state ?? "")
            if let date = detail.storedDate { Text("Stored \(date.formatted(.relative(presentation: .named)))") }
            if let message = detail.message { Text(message) }
        }
        .task { await detail.load() }
    }
}

/// A button that downloads a poster and shows the progress.
struct PosterView: View {
    @State var poster: PosterDownload

    var body: some View {
        switch poster.state {
        case .idle: Button("Download") { Task { await poster.start() } }
        case .running(let fraction):
            ProgressView(value: fraction)
            Button("Cancel") { poster.cancel() }
        case .finished(let file): ShareLink(item: file)
        case .failed(let message):
            Text(message)
            Button("Try again") { Task { await poster.start() } }
        }
    }
}

/// The form of the log-in, and the button of the log-out.
struct AccountView: View {
    let account: Account
    @State private var user = ""
    @State private var password = ""

    var body: some View {
        if case .loggedIn(let user) = account.state {
            Button("Log out \(user)") { Task { await account.logOut() } }
        } else {
            TextField("User", text: $user)
            SecureField("Password", text: $password)
            Button("Log in") { Task { await account.logIn(user: user, password: password) } }
                .disabled(account.state == .loggingIn)
            if let message = account.message { Text(message) }
        }
    }
}
#endif
