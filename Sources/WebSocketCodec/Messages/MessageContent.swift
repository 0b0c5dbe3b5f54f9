import Foundation
import WebServiceCore

/// The received bytes of a message, without mask and compression.
struct MessageContent {
    private var bytes = Data()
    private let maximumLength: Int
    /// The validator of a text message; `nil` for data.
    private var validator: UTF8Validator?

    init(isText: Bool, maximumLength: Int) {
        validator = isText ? UTF8Validator() : nil
        self.maximumLength = maximumLength
    }

    /// Throws an error if a number of further bytes would make the message exceed the limit.
    func validate(adding length: Int) throws(WebSocketViolation) {
        guard length <= maximumLength - bytes.count else { throw .messageTooLarge }
    }

    /// Appends a part of a frame's payload, and removes the mask.
    mutating func append(
        _ part: UnsafeRawBufferPointer, _ maskingKey: MaskingKey? = nil, at offset: Int = 0
    ) throws(WebSocketViolation) {
        try validate(adding: part.count)
        let start = bytes.count
        bytes.append(contentsOf: part)
        guard let maskingKey else {
            guard validator?.accepts(part) != false else { throw .invalidText }
            return
        }
        let isValid = bytes.withUnsafeMutableBytes { bytes in
            let part = UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
            maskingKey.apply(to: part, at: offset)
            return validator?.accepts(UnsafeRawBufferPointer(part)) != false
        }
        guard isValid else { throw .invalidText }
    }

    /// Returns the complete message.
    func message() throws(WebSocketViolation) -> WebSocketMessage {
        guard let validator else { return .data(bytes) }
        guard validator.isComplete else { throw .invalidText }
        return .text(String(decoding: bytes, as: UTF8.self))
    }
}
