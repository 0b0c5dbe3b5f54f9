public import Foundation
public import WebServiceCore

extension Outbox {
    /// The response to a request that was submitted with `storesResponse`.
    public struct StoredResponse: Sendable, Identifiable {
        /// The identifier that
        /// ``Outbox/submit(_:entity:replacing:expires:storesResponse:)-(Request,_,_,_,_)``
        /// returned.
        public let id: UUID
        /// The entity of the request.
        public let entity: String?
        /// The date at which the response arrived.
        public let date: Date
        /// The response, with its status, header fields and body, and the URL of the request.
        ///
        /// Fields whose names resemble those of credentials, such as `Set-Cookie`, are missing
        /// unless they are listed in ``Outbox/Options/storedFields``.
        public let response: Response
        /// Whether only the beginning of the body was stored, because the body was longer than
        /// ``Outbox/Options/maximumResponseBytes``.
        public let isTruncated: Bool
        private let url: String
    }

    /// The stored responses, followed by those that arrive while the sequence is read.
    ///
    /// ```swift
    /// for try await stored in outbox.responses {
    ///     let todo = try stored.response.decode(Todo.self)
    ///     try await database.setID(todo.id, ofDraft: stored.id)
    ///     try await outbox.removeResponse(of: stored.id)
    /// }
    /// ```
    /// A sequence delivers each response once. The response remains on the disk until
    /// ``removeResponse(of:)`` is called. If the process ends before that, the sequence of the next
    /// process delivers the response again. If several processes have opened the outbox, read the
    /// responses in only one of them. The sequence ends when the outbox is closed or deallocated.
    public var responses: Responses {
        let (names, continuation) = AsyncStream.makeStream(of: String.self)
        let id = UUID()
        continuation.onTermination = { [weak self] _ in
            let removed = self?.state.withLock { $0.readers.removeValue(forKey: id) }
            withExtendedLifetime(removed) {}
        }
        let isClosed = change { state in
            if !state.isClosed { state.addReader(continuation, id) }
            return state.isClosed
        }
        if isClosed { continuation.finish() }
        return Responses(names: names, outbox: WeakOutbox(outbox: self))
    }

    /// Returns the stored response to a request.
    ///
    /// - Parameter id: The identifier of the entry.
    /// - Returns: `nil` if there is no stored response because the entry has not been sent, because
    ///   its response was not to be stored, or because the response was removed or is damaged.
    /// - Throws: `WebServiceError.Code.storage` if the response cannot be read.
    public func response(of id: UUID) async throws -> StoredResponse? {
        try await onQueue("the response could not be read") { [self] in
            guard let name = try responseName(of: id) else { return nil }
            return try readResponse(name)
        }
    }

    /// Removes the response to a request durably. It is not delivered again.
    ///
    /// - Parameter id: The identifier of the entry.
    /// - Returns: `false` if there is no such response.
    /// - Throws: `WebServiceError.Code.storage` if the response cannot be removed.
    @discardableResult
    public func removeResponse(of id: UUID) async throws -> Bool {
        try await onQueue("the response could not be removed") { [self] in
            guard let name = try responseName(of: id) else { return false }
            try folder.remove(name)
            state.withLock { $0.removeResponse(name) }
            return true
        }
    }

    /// Returns the name of a response, including one that another process has stored.
    private func responseName(of id: UUID) throws -> String? {
        if let name = state.withLock({ $0.responseName(of: id) }) { return name }
        let names = try folder.names().responses
        change { $0.setResponses(names) }
        return state.withLock { $0.responseName(of: id) }
    }

    /// Reads a response. Returns `nil` if it was removed or is damaged. Runs on the queue of the
    /// folder.
    private func readResponse(_ name: String) throws -> StoredResponse? {
        if let bytes = try folder.bytes(of: name) {
            if let response = StoredResponse(encoded: bytes), name.contains(response.id.uuidString.lowercased()) {
                return response
            }
            setAside(name)
        }
        state.withLock { $0.removeResponse(name) }
        return nil
    }
}

extension Outbox {
    /// A reference that does not retain the outbox, so that a sequence ends when the outbox is
    /// deallocated.
    fileprivate struct WeakOutbox: Sendable {
        weak let outbox: Outbox?
    }

    /// The sequence of ``Outbox/responses``.
    public struct Responses: AsyncSequence, Sendable {
        /// A stored response and the identifier of its entry.
        public typealias Element = StoredResponse

        fileprivate let names: AsyncStream<String>
        fileprivate let outbox: WeakOutbox

        /// Returns an iterator. Only one iterator of a sequence may be used.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(names: names.makeAsyncIterator(), outbox: outbox)
        }

        /// The iterator of a sequence of responses.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var names: AsyncStream<String>.AsyncIterator
            fileprivate let outbox: WeakOutbox

            /// Returns the next response, or `nil` at the end of the sequence.
            ///
            /// - Throws: `WebServiceError.Code.storage` if the response cannot be read. A new
            ///   sequence delivers the response again.
            public mutating func next() async throws -> StoredResponse? {
                while let name = await names.next() {
                    guard let outbox = outbox.outbox else { return nil }
                    let response = try await outbox.onQueue("the response could not be read") {
                        try outbox.readResponse(name)
                    }
                    if let response { return response }
                }
                return nil
            }
        }
    }
}

// MARK: - Encoding

extension Outbox.StoredResponse {
    private struct Head: Codable {
        var id: UUID
        var entity: String?
        var date: Date
        var url: String
        var status: Int
        var fields: [StoredRequest.Field]
        var isTruncated: Bool
    }

    private static let mark = "webservice-outbox-response 1 "

    /// Creates the response to the request of an entry.
    init(_ response: Response, isTruncated: Bool, to request: Request, of entry: Outbox.Entry, date: Date) {
        (id, entity, self.date) = (entry.id, entry.entity, date)
        (self.response, self.isTruncated, url) = (response, isTruncated, request.url?.absoluteString ?? "")
    }

    /// Returns the content of the file.
    ///
    /// - Parameter storedFields: The fields that are stored even though their names resemble those
    ///   of credentials.
    func encoded(_ storedFields: Set<Headers.Name>) throws -> Data {
        let fields = response.headers.fields.filter { field in
            storedFields.contains(Headers.Name(field.name)) || !Secrets.mayBeNamed(by: field.name)
        }
        let head = Head(
            id: id, entity: entity, date: date, url: url, status: response.status,
            fields: fields.map { StoredRequest.Field(name: $0.name, value: $0.value) }, isTruncated: isTruncated)
        return try StoredRequest.encode(head, response.data, mark: Self.mark)
    }

    /// Decodes the content of a file.
    ///
    /// - Returns: `nil` if the content is damaged or has an unknown version.
    init?(encoded bytes: Data) {
        guard let (head, body) = StoredRequest.decode(Head.self, from: bytes, mark: Self.mark) else { return nil }
        let lines = head.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        guard let received = ResponseHead(bytes: Array("HTTP/1.1 \(head.status) \r\n\(lines)".utf8), url: head.url)
        else { return nil }
        (id, entity, date) = (head.id, head.entity, head.date)
        response = Response(data: body, head: received, source: .storage)
        (isTruncated, url) = (head.isTruncated, head.url)
    }
}
