import Foundation

/// A body with files, in the form that a `URLRequest` can carry. The framework extracts ``form``;
/// any other reader reads the stream once each time it is opened.
final class BodyStream: InputStream {
    let form: MultipartFormData
    let source: BodySource
    private let reader: BodyReader
    private var status = Stream.Status.notOpen
    private var failure: WebServiceError?

    init(_ form: MultipartFormData, _ source: BodySource) {
        self.form = form
        self.source = source
        reader = BodyReader(source)
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }

    override func open() {
        reader.seek(to: 0)
        failure = nil
        status = .open
    }

    override func close() {
        reader.seek(to: source.count)  // closes an open file
        status = .closed
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open else { return status == .atEnd ? 0 : -1 }
        do throws(WebServiceError) {
            let count = try reader.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max(0, length)))
            if reader.offset == source.count { status = .atEnd }
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
