import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The exchanges as an HTTP archive (HAR 1.2), without secrets.
struct InspectorArchive {
    let data: Data

    init(_ exchanges: [RecordedExchange], _ redaction: Redaction) {
        let archive = HTTPArchive(redaction)
        var data = HTTPArchive.start
        for (index, (exchange, attempt)) in exchanges.flatMap({ exchange in exchange.attempts.map { (exchange, $0) } })
            .enumerated()
        {
            guard let entry = Self.entry(attempt, of: exchange, archive, redaction) else { continue }
            if index > 0 { data += HTTPArchive.separator }
            data += entry
        }
        self.data = data + HTTPArchive.end()
    }

    private static func entry(
        _ attempt: RecordedAttempt, of exchange: RecordedExchange, _ archive: HTTPArchive, _ redaction: Redaction
    ) -> Data? {
        // A request that cannot be encoded was not sent, so it is omitted.
        guard let request = try? EncodedRequest.encoding(attempt.request) else { return nil }  // see above
        let response = attempt.response.map { Response(data: $0.body.data, head: $0.head) }
        let failure = attempt.failure.map { failure in
            let text = failure.text.map(redaction.text) ?? "cancelled"
            return WebServiceError(
                WebServiceError.Code(text), "", response: response)
        }
        let result: Result<Response, any Error> =
            if let failure { .failure(failure) } else { .success(response ?? Response(data: Data(), urlResponse: nil)) }
        return archive.entry(
            request, result, attempt.metrics, date: exchange.start.addingTimeInterval(attempt.start.inSeconds),
            duration: (attempt.end ?? attempt.start) - attempt.start, bodyLimit: .max,
            bodySizes: (
                attempt.body.map { Int64($0.size) } ?? attempt.streamLength ?? -1, attempt.response?.body.size ?? 0
            ), messages: attempt.number == exchange.attempts.last?.number ? exchange.messages : nil)
    }
}
