import Foundation
import WebServiceCore

/// The parameters of an upload.
struct UploadOptions: Sendable {
    let `protocol`: UploadProtocol
    /// The URL of an upload that the server has already created.
    var location: URL?
    var metadata: [String: String] = [:]
    var pieceSize = 8 << 20
    /// The folder of the state; `nil` for the folder of the uploaded file.
    var folder: URL?
    var sendsOptions = true

    /// Returns the value of `Upload-Metadata` (tus 1.0, extension creation), in the order of the
    /// keys; `nil` if there is no metadata.
    ///
    /// - Throws: `WebServiceError.Code.upload` for metadata that cannot be sent.
    func metadataField() throws(WebServiceError) -> String? {
        guard !metadata.isEmpty else { return nil }
        guard `protocol` == .tus else {
            throw WebServiceError(
                .upload, "the draft does not support metadata; set fields of the request, such as Content-Disposition")
        }
        guard location == nil else {
            throw WebServiceError(
                .upload,
                "metadata is sent only with the request that creates an upload; omit it for an existing upload")
        }
        for key in metadata.keys where key.isEmpty || !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2C })
        {
            throw WebServiceError(
                .upload,
                "the metadata key '\(String(key.prefix(64)).escapingControls)' is empty, or contains a space, a "
                    + "comma or a character that is not printable ASCII; use a key such as 'filename'")
        }
        let pairs = metadata.sorted { $0.key < $1.key }.map { key, value in
            value.isEmpty ? key : "\(key) \(Data(value.utf8).base64EncodedString())"
        }
        let field = pairs.joined(separator: ",")
        guard field.utf8.count <= Request.maximumHeaderValueLength else {
            throw WebServiceError(
                .upload,
                "the metadata has \(field.utf8.count) bytes, but a field may have at most "
                    + "\(Request.maximumHeaderValueLength); send less metadata")
        }
        return field
    }
}
