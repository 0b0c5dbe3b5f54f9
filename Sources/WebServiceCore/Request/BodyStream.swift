import Foundation

/// An input stream through which a `URLRequest` carries a body with files or a streamed body. The
/// library extracts ``body`` from the stream. Other code can open the stream as well. Such code
/// reads the files each time, or receives an error if the body is streamed.
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
