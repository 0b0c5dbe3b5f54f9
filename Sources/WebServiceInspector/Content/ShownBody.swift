import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// A body without secrets, represented as text, as an image, or by the reason why it is not shown.
struct ShownBody: Encodable {
    private(set) var size: Int64
    /// The media type without parameters.
    let type: String?
    private(set) var text: String?
    /// Whether the text is JSON.
    private(set) var json: Bool?
    /// An image, encoded in Base64.
    private(set) var image: String?
    /// The bytes of any other body, encoded in Base64.
    private(set) var bytes: String?
    private(set) var note: String?
    /// The arrivals of the bytes of an event stream. Each arrival consists of the number of empty
    /// lines received so far, and the milliseconds since the start of the exchange.
    private(set) var arrivals: [[Double]]?

    /// The image types that a page can show safely, and the first bytes of such images. SVG is not
    /// included, because it can contain scripts and references.
    private static let images: [String: [[UInt8]]] = [
        "image/png": [[0x89, 0x50, 0x4E, 0x47]], "image/jpeg": [[0xFF, 0xD8, 0xFF]],
        "image/gif": [Array("GIF87a".utf8), Array("GIF89a".utf8)], "image/webp": [Array("RIFF".utf8)],
    ]

    /// The maximum size of an image, in bytes.
    private static let maximumImage = 4 << 20

    /// - Parameter showsBinary: Whether a body that cannot be redacted is shown.
    init(_ body: RecordedBody, _ headers: Headers, _ redaction: Redaction, showsBinary: Bool = false) {
        size = Int64(body.size)
        let contentType = headers[.contentType]
        let type = contentType.map(MediaType.essence)
        self.type = type.map { redaction.value(ofHeader: "Content-Type", $0) }
        guard body.size > 0 else { return }
        let isComplete = body.data.count == body.size
        if let type, let starts = Self.images[type] {
            if isComplete, body.size <= Self.maximumImage, starts.contains(where: body.data.starts) {
                image = body.data.base64EncodedString()
            } else {
                note = "\(body.size) bytes of \(type): the image is damaged or too large to be shown."
            }
            return
        }
        let coding = headers["Content-Encoding"]
        guard let text = redaction.body(body.data, contentType: contentType, contentEncoding: coding) else {
            if showsBinary {
                bytes = body.data.base64EncodedString()
                if !isComplete { note = "The first \(body.data.count) of \(body.size) bytes." }
            } else {
                note =
                    "\(body.size) bytes\(type.map { " of \($0)" } ?? "") are not shown, because secrets in them cannot "
                    + "be recognized. The option showsBinaryBodies of the inspector shows them."
            }
            return
        }
        self.text = text
        let first = text.utf8.first { !" \t\r\n\u{1E}".utf8.contains($0) }
        json = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        if !isComplete { note = "The first \(body.data.count) of \(body.size) bytes." }
    }

    /// Creates the body of a request.
    init(requestOf attempt: RecordedAttempt, _ redaction: Redaction, showsBinary: Bool = false) {
        self.init(
            attempt.body ?? RecordedBody(Data(), limit: 0), attempt.requestHeaders, redaction, showsBinary: showsBinary)
        if attempt.body == nil {
            size = attempt.streamLength ?? 0
            note = "A file or stream\(attempt.streamLength.map { " of \($0) bytes" } ?? ""), which is not retained."
        }
    }

    /// Creates the body of a response.
    ///
    /// - Parameter failed: Whether the body may be incomplete.
    init(_ response: RecordedResponse, failed: Bool, _ redaction: Redaction, showsBinary: Bool = false) {
        self.init(response.body, response.head.headers, redaction, showsBinary: showsBinary)
        if !response.arrivals.isEmpty {
            arrivals = response.arrivals.map { [Double($0.emptyLines), $0.time.milliseconds] }
        }
        let remark =
            if response.isStreamed, response.body.size == 0 {
                "No bytes of the streamed body have been received and read yet."
            } else if response.isStreamed {
                "The first \(response.body.data.count) bytes that were read from the streamed body."
            } else if failed {
                "The body is incomplete: \(response.body.size) bytes were received before the error."
            } else {
                nil as String?
            }
        guard let remark else { return }
        // The reason why the body is not shown precedes the remark.
        note = [text == nil && image == nil && bytes == nil ? note : nil, remark].compactMap { $0 }.joined(
            separator: " ")
    }
}
