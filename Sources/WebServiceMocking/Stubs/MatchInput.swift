import Foundation
import WebServiceCore

/// A request that is compared with stubs. Each part is decoded once, for all stubs.
final class MatchInput {
    let request: ReceivedRequest

    init(_ request: ReceivedRequest) {
        self.request = request
    }

    private(set) lazy var origin = request.url.flatMap { Origin($0) }
    private(set) lazy var segments = PathPattern.segments(of: request.path)
    private(set) lazy var queryItems = request.queryItems
    private(set) lazy var formItems = request.formItems
    private(set) lazy var json = Result { try JSON.decode(JSONValue.self, from: request.body) }
}
