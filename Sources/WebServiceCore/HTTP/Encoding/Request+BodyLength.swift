import Foundation

extension Request.Body {
    /// The length in bytes.
    ///
    /// `nil` for a form or a body from a provider, whose length depends on the request; for a
    /// stream without a length, including one that is a part; and for files that cannot be read.
    /// For files, this property reads their status.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .data(let data, _): Int64(data.count)
        case .multipart(let form):
            (try? form.encoded()).flatMap { $0.stream?.length ?? $0.source.map { Int64($0.count) } }  // encoding fails
        case .file(let url, _): (try? BodySource(file: url)).map { Int64($0.count) }  // encoding reports the error
        case .stream(let stream, _): stream.length
        case .form, .provider, .invalid: nil
        }
    }
}
