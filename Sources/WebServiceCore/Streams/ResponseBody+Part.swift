public import Foundation

extension ResponseBody {
    /// A part of a multipart response body (RFC 2046, section 5.1).
    public struct Part: Sendable, Hashable {
        /// The header fields of the part, in order.
        public var headers: Headers

        /// The bytes of the part. A `Content-Transfer-Encoding` is not decoded.
        public var data: Data

        /// Creates a part.
        public init(headers: Headers, data: Data) {
            self.headers = headers
            self.data = data
        }
    }
}
