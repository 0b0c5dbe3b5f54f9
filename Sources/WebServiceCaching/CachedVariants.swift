import Foundation
import WebServiceCore
import WebServiceStorage

/// The responses stored for one URL and one account, one response per selection.
struct CachedVariants: Sendable {
    /// The maximum number of responses for each of the methods GET and QUERY. When it is exceeded,
    /// the responses that were stored first are removed.
    static let maximumCount = 8

    /// The responses in the order in which they were stored.
    private(set) var responses: [CachedResponse] = []

    /// The number of insertions, and the number of responses that were removed because there were
    /// too many. Neither is serialized.
    private(set) var changes = (insertions: 0, evictions: 0)

    /// The names of the files that contain bodies.
    var files: Set<String> { Set(responses.compactMap(\.body.file?.name)) }

    /// Returns the response that matches a request. If several responses match, returns the one
    /// that was stored last.
    func match(_ request: Request) -> CachedResponse? {
        responses.last { $0.selection.matches(request) }
    }

    /// Inserts a response and removes the responses that match the same request. Does nothing if
    /// the matching response is newer.
    mutating func insert(_ response: CachedResponse, for request: Request) {
        if let stored = match(request), stored.isNewer(than: response) { return }
        remove(for: request)
        responses.append(response)
        changes.insertions += 1
        let isOfQuery = response.selection.isOfQuery
        let alike = responses.indices.filter { responses[$0].selection.isOfQuery == isOfQuery }
        guard alike.count > Self.maximumCount else { return }
        changes.evictions += alike.count - Self.maximumCount
        remove(at: Set(alike.prefix(alike.count - Self.maximumCount)))
    }

    /// Removes the responses at the given positions.
    mutating func remove(at positions: Set<Int>) {
        responses = responses.indices.filter { !positions.contains($0) }.map { responses[$0] }
    }

    /// Removes the responses that match a request.
    mutating func remove(for request: Request) {
        responses.removeAll { $0.selection.matches(request) }
    }
}

/// The serialized form: a signature, the key, the responses, and a checksum (XXH64) of all
/// preceding bytes. Numbers are little-endian. Strings and byte sequences are preceded by their
/// length.
extension CachedVariants {
    private static let mark = Array("WSC3".utf8)
    /// The signature of an entry with files. Each body is followed by the name and the size of its
    /// file, or by an empty string and 0 if it has no file.
    private static let markWithFiles = Array("WSC4".utf8)

    func data(for key: StorageKey) -> Data {
        var writer = EntryWriter()
        let hasFiles = responses.contains { $0.body.file != nil }
        writer.data.append(contentsOf: hasFiles ? Self.markWithFiles : Self.mark)
        writer.append(key.bytes)
        writer.append(UInt64(responses.count))
        for response in responses {
            writer.append(UInt64(clamping: response.status))
            writer.append(response.requestTime.timeIntervalSince1970.bitPattern)
            writer.append(response.responseTime.timeIntervalSince1970.bitPattern)
            writer.append(response.selection.scope.rawValue)
            writer.append(response.selection.salt)
            writer.append(response.selection.fingerprint)
            writer.append(response.selection.isOfQuery ? 1 : 0)
            writer.append((response.origin?.description ?? "").utf8)
            writer.append(UInt64(response.selection.names.count))
            for name in response.selection.names { writer.append(name.utf8) }
            writer.append(UInt64(response.headers.fields.count))
            for field in response.headers {
                writer.append(field.name.utf8)
                writer.append(field.value.utf8)
            }
            writer.append(response.body.data)
            guard hasFiles else { continue }
            writer.append((response.body.file?.name ?? "").utf8)
            writer.append(UInt64(response.body.file?.count ?? 0))
        }
        writer.append(writer.data.withUnsafeBytes { XXHash64.hash($0) })
        return writer.data
    }

    /// - Returns: `nil` if `data` is not a result of ``data(for:)`` for the same key.
    init?(_ data: Data, for key: StorageKey) {
        guard data.count >= Self.mark.count + 8 else { return nil }
        let content = data.dropLast(8)
        var reader = EntryReader(rest: content.dropFirst(Self.mark.count))
        var end = EntryReader(rest: data.suffix(8))
        let hasFiles = data.starts(with: Self.markWithFiles)
        guard hasFiles || data.starts(with: Self.mark), content.withUnsafeBytes({ XXHash64.hash($0) }) == end.number(),
            reader.bytes()?.elementsEqual(key.bytes) == true,
            let count = reader.number(), count <= UInt64(2 * Self.maximumCount)
        else { return nil }
        for _ in 0..<count {
            guard let response = reader.response(hasFile: hasFiles) else { return nil }
            responses.append(response)
        }
        guard reader.rest.isEmpty else { return nil }
    }
}

/// A writer of the parts of an entry.
struct EntryWriter {
    var data = Data()

    mutating func append(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { data.append(contentsOf: $0) }
    }

    mutating func append(_ bytes: some Collection<UInt8>) {
        append(UInt64(bytes.count))
        data.append(contentsOf: bytes)
    }
}

/// A reader of the parts of an entry.
struct EntryReader {
    var rest: Data

    mutating func number() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        defer { rest = rest.dropFirst(8) }
        return rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    mutating func bytes() -> Data? {
        guard let count = number(), count <= UInt64(rest.count) else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    mutating func text() -> String? {
        bytes().map { String(decoding: $0, as: UTF8.self) }
    }

    mutating func date() -> Date? {
        guard let seconds = number().map(Double.init(bitPattern:)), seconds.isFinite else { return nil }
        return Date(timeIntervalSince1970: seconds)
    }

    /// Returns a byte sequence of a known length that does not share memory with the entry.
    mutating func bytes(count: Int) -> Data? {
        bytes().flatMap { $0.count == count ? Data(Array($0)) : nil }
    }

    mutating func response(hasFile: Bool) -> CachedResponse? {
        guard let status = number(), (200...999).contains(status), let requestTime = date(),
            let responseTime = date(),
            let scope = number().flatMap(CacheSelection.Scope.init),
            let salt = bytes(count: CacheSelection.saltLength),
            let fingerprint = bytes(count: CacheSelection.fingerprintLength),
            let isOfQuery = number(), let origin = text(), let names = list({ $0.text() }),
            let fields = list({ reader in reader.text().flatMap { name in reader.text().map { (name, $0) } } }),
            let data = bytes()
        else { return nil }
        var body = CachedBody.data(data.subdata(in: data.startIndex..<data.endIndex))
        if hasFile {
            guard let name = text(), let count = number() else { return nil }
            if !name.isEmpty { body = .file(CachedBody.File(name: name, count: Int64(clamping: count)), nil) }
        }
        return CachedResponse(
            status: Int(status), headers: Headers(fields), body: body,
            requestTime: requestTime,
            responseTime: responseTime,
            selection: CacheSelection(
                names: names, scope: scope, salt: salt, fingerprint: fingerprint, isOfQuery: isOfQuery == 1),
            origin: Origin(origin))
    }

    mutating func list<Element>(_ element: (inout EntryReader) -> Element?) -> [Element]? {
        guard let count = number(), count <= UInt64(rest.count) else { return nil }
        var list: [Element] = []
        for _ in 0..<count {
            guard let next = element(&self) else { return nil }
            list.append(next)
        }
        return list
    }
}
