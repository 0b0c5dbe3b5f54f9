import Foundation
import WebServiceCore
import WebServiceStorage

/// The body of a stored response.
enum CachedBody: Sendable {
    /// A file of a ``BodyFolder``.
    struct File: Sendable, Hashable {
        let name: String
        /// The number of bytes.
        let count: Int64
    }

    /// A body in memory.
    case data(Data)
    /// A body in a file. The file is open if the body is needed.
    case file(File, StoredBody?)

    var count: Int64 {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(let file, _): file.count
        }
    }

    /// The bytes of a body in memory; empty for a body in a file.
    var data: Data { if case .data(let data) = self { data } else { Data() } }

    /// The file of the body; `nil` for a body in memory.
    var file: File? { if case .file(let file, _) = self { file } else { nil } }
}

/// Access to bodies in files.
extension ResponseCache {
    /// Returns a stored body in the form that a request needs: an open file for a stream, and the
    /// bytes for any other request if they are within the request's limit.
    ///
    /// - Returns: `nil` if the file is missing or damaged, or if the disk does not respond.
    func opened(_ body: CachedBody, for request: Request, isStreamed: Bool, _ clock: TaskClock) async -> CachedBody? {
        guard let file = body.file, request.method != .HEAD else { return body }
        guard let bodies else { return nil }
        let isRead = !isStreamed && file.count <= request.options.bodyMaximum
        let opened = try? await clock.storageValue { () -> CachedBody? in  // on failure, the request is sent
            guard let body = await bodies.open(file) else { return nil }
            guard isRead else { return .file(file, body) }
            return .data(try await BlockingQueue("WebService.StoredBody").result { try body.content() })
        }
        return opened ?? nil
    }

    /// Removes the bodies that no stored response refers to, unless the storage cannot list its
    /// entries.
    func removeOrphans() async {
        guard let bodies else { return }
        do {
            // A body is listed only after the response that refers to it has been stored.
            var orphans = try await bodies.settledNames()
            let keyNames = Set(orphans.map { String($0.prefix(32)) })
            var last: StorageKey?
            while !orphans.isEmpty {
                let page = try await storage.summaries(after: last, limit: 1_000, clock ?? .system)
                guard let end = page.last?.key, end != last else { break }
                for key in page.map(\.key) where key.isOf(Self.classification) && keyNames.contains(key.fileName) {
                    let variants = try await unusedVariants(for: key)
                    orphans.subtract(variants?.responses.compactMap(\.body.file?.name) ?? [])
                }
                last = end
            }
            bodies.remove(orphans)
        } catch {
            report(.read, nil, error)
        }
    }
}
