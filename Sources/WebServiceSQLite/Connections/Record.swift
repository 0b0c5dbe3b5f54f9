import Foundation
import WebServiceCore
import WebServiceStorage

/// An entry as a row of the table. The checksum covers the key and all other columns.
struct Record: Sendable {
    let form: Int64
    /// The date in microseconds since 1970.
    let date: Int64?
    let checksum: Int64
    let data: Data
}

extension Record {
    private static let raw: Int64 = 0
    private static let value: Int64 = 1
    private static let unlabelled: Int64 = 2

    /// - Returns: `nil` for a live value, which has no bytes.
    init?(_ entry: StorageEntry, for key: [UInt8]) {
        switch entry.content {
        case .raw(let data): (form, self.data) = (Self.raw, data)
        case .value(let data): (form, self.data) = (Self.value, data)
        case .unlabelled(let data): (form, self.data) = (Self.unlabelled, data)
        case .live: return nil
        }
        date = entry.date.flatMap { Int64(exactly: ($0.timeIntervalSince1970 * 1_000_000).rounded()) }
        checksum = Self.checksum(of: key, form, date, data)
    }

    /// Returns the stored entry, or `nil` if the checksum does not match or if the form is unknown.
    func entry(for key: [UInt8]) -> StorageEntry? {
        guard checksum == Self.checksum(of: key, form, date, data) else { return nil }
        let date = date.map { Date(timeIntervalSince1970: Double($0) / 1_000_000) }
        switch form {
        case Self.raw: return StorageEntry(.raw(data), date: date)
        case Self.value: return StorageEntry(.value(data), date: date)
        case Self.unlabelled: return StorageEntry(.unlabelled(data), date: date)
        default: return nil
        }
    }

    private static func checksum(of key: [UInt8], _ form: Int64, _ date: Int64?, _ data: Data) -> Int64 {
        var hash = key.withUnsafeBytes { XXHash64.hash($0) }
        hash = withUnsafeBytes(of: (form.littleEndian, (date ?? .min).littleEndian)) { XXHash64.hash($0, seed: hash) }
        return Int64(bitPattern: data.withUnsafeBytes { XXHash64.hash($0, seed: hash) })
    }
}
