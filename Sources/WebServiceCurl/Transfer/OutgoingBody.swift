import WebServiceCore

/// The body of a request, which libcurl reads in pieces. It is confined to the loop's thread.
struct OutgoingBody {
    private enum Source {
        case reader(BodyReader)
        case feed(BodyFeed, isStarted: Bool)
    }

    private var source: Source
    private let onMore: (@Sendable () -> Void)?
    /// Whether all bytes of the sequence were read; always `false` for bytes and files.
    private(set) var isComplete = false

    /// Creates a body of bytes and files.
    init(_ source: BodySource) {
        self.source = .reader(BodyReader(source))
        onMore = nil
    }

    /// Creates a body that a sequence produces. The sequence starts when libcurl requests the first
    /// bytes.
    ///
    /// - Parameter onMore: A closure that is called once after each ``read(into:)`` that returned
    ///   `nil`, on any thread.
    init(_ stream: StreamedBody, onMore: @escaping @Sendable () -> Void) {
        source = .feed(BodyFeed(stream, onMore: onMore), isStarted: false)
        self.onMore = onMore
    }

    /// The number of bytes; `nil` if it is unknown.
    var count: Int64? {
        switch source {
        case .reader(let reader): Int64(reader.source.count)
        case .feed(let feed, _): feed.body.length
        }
    }

    /// The number of bytes read.
    var offset: Int64 {
        switch source {
        case .reader(let reader): Int64(reader.offset)
        case .feed(let feed, _): feed.readCount
        }
    }

    /// Reads the next bytes.
    ///
    /// - Returns: The number of bytes; 0 at the end, and `nil` if no bytes are available yet.
    /// - Throws: The error of a file or of the sequence.
    mutating func read(into room: UnsafeMutableRawBufferPointer) throws -> Int? {
        switch source {
        case .reader(let reader): return try reader.read(into: room)
        case .feed(let feed, let isStarted):
            if !isStarted {
                source = .feed(feed, isStarted: true)
                feed.start()
            }
            let count = try feed.read(into: room)
            isComplete = count == 0 || feed.body.length == feed.readCount
            return count
        }
    }

    /// Sets the offset to 0.
    ///
    /// - Returns: `false` if bytes have been read that cannot be read again.
    mutating func rewind() -> Bool {
        switch source {
        case .reader(let reader): reader.seek(to: 0)
        case .feed(let feed, _):
            if feed.readCount == 0 { return true }
            guard feed.body.isReplayable else { return false }
            feed.cancel()
            source = .feed(BodyFeed(feed.body, onMore: onMore ?? {}), isStarted: false)
        }
        return true
    }

    /// Cancels the sequence.
    func cancel() {
        if case .feed(let feed, _) = source { feed.cancel() }
    }
}
