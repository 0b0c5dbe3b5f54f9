import Foundation
import WebServiceCore

/// A body without secrets: text, an image, or the reason why it is not shown.
struct ShownBody: Encodable {
    private(set) var size: Int64
    /// The media type without parameters.
    let type: String?
    private(set) var text: String?
    /// A Boolean value that indicates whether the text is JSON.
    private(set) var json: Bool?
    /// An image in Base64.
    private(set) var image: String?
    private(set) var note: String?

    /// The images that a page can show without risk, and their first bytes. SVG can contain scripts
    /// and references.
    private static let images: [String: [[UInt8]]] = [
        "image/png": [[0x89, 0x50, 0x4E, 0x47]], "image/jpeg": [[0xFF, 0xD8, 0xFF]],
        "image/gif": [Array("GIF87a".utf8), Array("GIF89a".utf8)], "image/webp": [Array("RIFF".utf8)],
    ]

    /// The maximum number of bytes of an image.
    private static let maximumImage = 4 << 20

    init(_ body: RecordedBody, contentType: String?, _ redaction: Redaction) {
        size = Int64(body.size)
        let type = contentType.map { value in
            let type = value.prefix { $0 != ";" }.utf8
            return String(decoding: ASCII.trimmed(type), as: UTF8.self).asciiLowercased()
        }
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
        guard let text = redaction.body(body.data, contentType: contentType) else {
            note =
                "\(body.size) bytes\(type.map { " of \($0)" } ?? "") are not shown, because secrets in them cannot be "
                + "recognized."
            return
        }
        self.text = text
        let first = text.utf8.first { !" \t\r\n\u{1E}".utf8.contains($0) }
        json = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        if !isComplete { note = "The first \(body.data.count) of \(body.size) bytes." }
    }

    /// Creates the body of a request.
    init(requestOf attempt: RecordedAttempt, _ redaction: Redaction) {
        let contentType = attempt.sentHeaders[.contentType]
        self.init(attempt.body ?? RecordedBody(Data(), limit: 0), contentType: contentType, redaction)
        if attempt.body == nil {
            size = attempt.streamLength ?? 0
            note = "A file or stream\(attempt.streamLength.map { " of \($0) bytes" } ?? ""), which is not retained."
        }
    }

    /// Creates the body of a response.
    init(_ response: RecordedResponse, _ redaction: Redaction) {
        self.init(response.body, contentType: response.head.headers[.contentType], redaction)
        if response.isStreamed { note = "The body is streamed, so it is not retained, or it is not received yet." }
    }
}
