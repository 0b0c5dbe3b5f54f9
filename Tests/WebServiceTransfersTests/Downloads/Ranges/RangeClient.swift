import Foundation

@testable import WebServiceCore
@testable import WebServiceTransfers

/// A download without files and requests: what a `DownloadTransfer` does with the decisions of its
/// plan.
struct RangeClient {
    private static let current = DownloadState(url: "https://h/a")

    let usesPieces: Bool
    private var bytes = Data()
    private var state: DownloadState?
    /// The responses of the last download.
    private(set) var log = ""

    init(usesPieces: Bool) { self.usesPieces = usesPieces }

    /// Sends up to 12 requests.
    ///
    /// - Returns: The bytes of a complete file; `nil` after an error.
    mutating func download(from server: inout RangeModel) -> Data? {
        log = ""
        var needsWholeFile = false
        for _ in 0..<12 {
            let plan = plan(needsWholeFile)
            let reply = server.reply(to: plan.headers)
            log += "\(plan.headers["Range"] ?? "all") -> \(reply.status) \(reply.headers.fields)\n"
            guard [200, 203, 206, 416].contains(reply.status) else { return nil }
            let head = DownloadPlan.Head(status: reply.status, headers: reply.headers, bodyLength: reply.length)
            switch plan.step(for: head, known: state) {
            case .part(let range, let total):
                if range.lowerBound == 0, plan.offset == 0 {
                    begin(head.headers, total: total)
                    if state?.validator == nil, range.upperBound + 1 != total {
                        needsWholeFile = true
                        continue
                    }
                }
                state?.total = total
                switch append(reply.body, at: Int(range.lowerBound), upTo: Int(range.upperBound) + 1) {
                case .surplus: return nil
                case .differs: needsWholeFile = true
                case .appended: if reply.failure == nil, Int64(bytes.count) == total { return finish() }
                }
            case .wholeFile(let total):
                begin(head.isTransformed ? [:] : head.headers, total: total)
                needsWholeFile = false
                guard append(reply.body, at: 0, upTo: total.map { Int($0) } ?? .max) == .appended else {
                    state = nil
                    return nil
                }
                if reply.failure != nil || total.map({ Int64(bytes.count) < $0 }) == true { continue }
                needsWholeFile = total == nil && plan.isRequestedLength(Int64(bytes.count))
                if !needsWholeFile { return finish() }
            case .complete: return finish()
            case .requestWholeFile: needsWholeFile = true
            case .fail: return nil
            case .contradiction:
                (bytes, state) = (Data(), nil)
                return nil
            }
        }
        return nil
    }

    private func plan(_ needsWholeFile: Bool) -> DownloadPlan {
        if needsWholeFile { return DownloadPlan(wholeFile: Self.current) }
        let plan = DownloadPlan(continuing: state, length: Int64(bytes.count), current: Self.current)
        return plan.offset == nil && usesPieces ? DownloadPlan(piece: 0...8_388_607, of: Self.current) : plan
    }

    private mutating func begin(_ headers: Headers, total: Int64?) {
        bytes = Data()
        var new = Self.current
        (new.eTag, new.lastModified, new.date) = (headers[.eTag], headers["Last-Modified"], headers["Date"])
        new.total = total
        state = new
    }

    private enum Addition { case appended, surplus, differs }

    private mutating func append(_ body: Data, at start: Int, upTo end: Int) -> Addition {
        let known = max(0, min(body.count, bytes.count - start))
        guard bytes.dropFirst(start).prefix(known).elementsEqual(body.prefix(known)) else { return .differs }
        guard body.count <= end - start else { return .surplus }
        bytes += body.dropFirst(known)
        return .appended
    }

    private mutating func finish() -> Data {
        defer { (bytes, state) = (Data(), nil) }
        return bytes
    }
}
