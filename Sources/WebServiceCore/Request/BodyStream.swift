import Foundation

/// A body with files or a streamed body, in a form that a `URLRequest` can carry. The library
/// extracts ``body``. Any other code that opens the stream reads the files each time, and receives
/// an error for a streamed body.
final class BodyStream: InputStream {
    let body: Request.Body
    /// The bytes; `nil` for a streamed body.
    let source: BodySource?
    private let reader: BodyReader
    private var status = Stream.Status.notOpen
    private var failure: WebServiceError?

    init(_ body: Request.Body, _ source: BodySource?) {
        self.body = body
        self.source = source
        reader = BodyReader(source ?? BodySource(Data()))
        super.init(data: Data())
    }

    /// The error of a session that sends a streamed body without a service.
    static let unsupported = WebServiceError(
        .encoding, "the session cannot send a streamed body; send the request with a WebService")

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }

    override func open() {
        reader.seek(to: 0)
        failure = source == nil ? Self.unsupported : nil
        status = source == nil ? .error : .open
    }

    override func close() {
        reader.seek(to: reader.source.count)  // closes an open file
        status = .closed
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open else { return status == .atEnd ? 0 : -1 }
        do throws(WebServiceError) {
            let count = try reader.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max(0, length)))
            if reader.offset == reader.source.count { status = .atEnd }
            return count
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}
