import Foundation
import WebServiceCore

extension FileStorage {
    /// The result of reading a wrapped file.
    enum Wrapped {
        case entry(StorageEntry)
        /// The file is intact, but it is for another key or from a newer version of this library.
        case foreign
        case damaged
    }

    /// The file format `wrapped`: a signature, the version, the form, two zero bytes, the date, the
    /// length of the key, the length of the data, the key, the data, and a checksum of all
    /// preceding bytes. Numbers are little-endian. Every version starts with the signature and the
    /// version, and ends with the checksum.
    enum WrappedFile {
        private static let magic = Array("WSEn".utf8)
        private static let version: UInt8 = 1
        private static let headCount = 28
        /// The number of bytes of a file in addition to its key and data.
        static let overhead = headCount + 8
        /// The value that represents an unknown date.
        private static let noDate = Int64.min

        /// - Parameter data: The data of the entry.
        static func bytes(_ entry: StorageEntry, _ data: Data, _ key: StorageKey) -> Data {
            var bytes = Data(capacity: overhead + key.bytes.count + data.count)
            bytes.append(contentsOf: magic + [version, form(of: entry.content), 0, 0])
            append(UInt64(bitPattern: microseconds(entry.date)), to: &bytes)
            append(UInt32(truncatingIfNeeded: key.bytes.count), to: &bytes)
            append(UInt64(data.count), to: &bytes)
            bytes.append(contentsOf: key.bytes)
            bytes.append(data)
            append(bytes.withUnsafeBytes { XXHash64.hash($0) }, to: &bytes)
            return bytes
        }

        /// Returns whether a file that starts with these bytes has the length that they specify.
        /// The length of files of other versions is not checked.
        static func isWhole(_ head: Data, count: Int) -> Bool {
            guard head.count >= headCount, count >= overhead, head.starts(with: magic) else { return false }
            return head.withUnsafeBytes { head in
                let room = UInt64(count - overhead)
                let keyCount = UInt64(number(head, at: 16, UInt32.self))
                return head[4] != version || keyCount <= room && number(head, at: 20, UInt64.self) == room - keyCount
            }
        }

        static func read(_ bytes: Data, for key: StorageKey) -> Wrapped {
            guard bytes.count >= overhead else { return .damaged }
            return bytes.withUnsafeBytes { file in
                let all = UnsafeRawBufferPointer(rebasing: file.dropLast(8))
                guard all.starts(with: magic), XXHash64.hash(all) == number(file, at: all.count, UInt64.self) else {
                    return .damaged
                }
                guard all[4] == version else { return .foreign }
                let room = UInt64(all.count - headCount)
                let keyCount = UInt64(number(all, at: 16, UInt32.self))
                guard all[6] == 0, all[7] == 0, keyCount <= room, number(all, at: 20, UInt64.self) == room - keyCount
                else {
                    return .damaged
                }
                let start = headCount + Int(keyCount)
                guard all[headCount..<start].elementsEqual(key.bytes) else { return .foreign }
                guard let content = content(all[5], Data(all[start...])) else { return .damaged }
                return .entry(StorageEntry(content, date: date(number(all, at: 8, Int64.self))))
            }
        }

        /// Returns the number of bytes up to the end of the key in a file that begins with these
        /// bytes. Returns `nil` if the file is of another version or too short.
        static func headCount(_ head: Data, fileSize: Int) -> Int? {
            guard fileSize >= overhead, head.count >= headCount, head.starts(with: magic + [version]) else {
                return nil
            }
            let keyCount = Int(head.withUnsafeBytes { number($0, at: 16, UInt32.self) })
            return keyCount <= fileSize - overhead ? headCount + keyCount : nil
        }

        /// Returns a summary of the file with this head, or `nil` if the file is damaged.
        ///
        /// - Parameter head: The first bytes of the file, at least as many as
        ///   ``headCount(_:fileSize:)`` returns.
        static func summary(_ head: Data, fileSize: Int) -> StorageEntry.Summary? {
            guard let count = headCount(head, fileSize: fileSize), head.count >= count, isWhole(head, count: fileSize),
                let key = StorageKey(bytes: Array(head.dropFirst(headCount).prefix(count - headCount)))
            else { return nil }
            let microseconds = head.withUnsafeBytes { number($0, at: 8, Int64.self) }
            return StorageEntry.Summary(key: key, date: date(microseconds), byteCount: fileSize - 8 - count)
        }

        private static func date(_ microseconds: Int64) -> Date? {
            microseconds == noDate ? nil : Date(timeIntervalSince1970: Double(microseconds) / 1e6)
        }

        /// Returns whether a file of this version is for a key that starts with the given bytes.
        /// The file may be damaged.
        static func isFor(keyWith prefix: [UInt8], _ bytes: Data) -> Bool {
            guard bytes.count >= overhead, bytes.starts(with: magic + [version]) else { return false }
            let keyCount = bytes.withUnsafeBytes { number($0, at: 16, UInt32.self) }
            let key = bytes.dropFirst(headCount).dropLast(8).prefix(Int(keyCount))
            return key.count == keyCount && key.starts(with: prefix)
        }

        private static func form(of content: StorageEntry.Content) -> UInt8 {
            switch content {
            case .raw: 0
            case .value: 1
            case .unlabelled, .live: 2
            }
        }

        private static func content(_ form: UInt8, _ data: Data) -> StorageEntry.Content? {
            switch form {
            case 0: .raw(data)
            case 1: .value(data)
            case 2: .unlabelled(data)
            default: nil
            }
        }

        private static func microseconds(_ date: Date?) -> Int64 {
            date.flatMap { Int64(exactly: ($0.timeIntervalSince1970 * 1e6).rounded()) } ?? noDate
        }

        private static func append(_ number: some FixedWidthInteger, to bytes: inout Data) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }

        private static func number<Number: FixedWidthInteger & BitwiseCopyable>(
            _ bytes: UnsafeRawBufferPointer, at offset: Int, _ type: Number.Type
        ) -> Number {
            Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
        }
    }

    /// The names of a storage's files. Files with other names are ignored, including those of a
    /// storage with another prefix.
    struct Names: Sendable {
        enum Kind {
            case entry
            case temporary
        }

        let prefix: String

        init(prefix: String) throws {
            let isFine = prefix.utf8.allSatisfy {
                ASCII.isAlphanumeric($0) || "_-.".utf8.contains($0)
            }
            guard isFine, prefix.utf8.count <= 64, prefix.utf8.first != UInt8(ascii: ".") else {
                throw WebServiceError(
                    .storage,
                    "the prefix of the file names is invalid; use at most 64 ASCII letters, digits, '_', '-' and '.', "
                        + "without '.' at the start")
            }
            self.prefix = prefix
        }

        func entry(_ key: StorageKey) -> String {
            prefix + key.fileName + ".entry"
        }

        /// Returns a new unique name.
        func temporary(_ key: StorageKey) -> String {
            "\(prefix)\(key.fileName).\(UInt64.random(in: .min ... .max).hexadecimal).temporary"
        }

        /// Returns the kind of the file with this name, or `nil` if the file does not belong to the
        /// storage.
        func kind(of name: String) -> Kind? {
            var rest = name.utf8[...]
            guard rest.starts(with: prefix.utf8) else { return nil }
            rest = rest.dropFirst(prefix.utf8.count)
            guard Self.dropDigits(32, of: &rest) else { return nil }
            if rest.elementsEqual(".entry".utf8) { return .entry }
            guard rest.popFirst() == UInt8(ascii: "."), Self.dropDigits(16, of: &rest) else { return nil }
            return rest.elementsEqual(".temporary".utf8) ? .temporary : nil
        }

        private static func dropDigits(_ count: Int, of text: inout Substring.UTF8View) -> Bool {
            let digits = text.prefix(count)
            text = text.dropFirst(count)
            return digits.count == count
                && digits.allSatisfy { ASCII.isDigit($0) || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 }
        }
    }
}
