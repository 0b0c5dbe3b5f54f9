import Foundation
import WebServiceCore

/// The names of a partial file and its state, in the folder of the destination.
struct PartNames: Sendable {
    static let suffix = ".webservice-part"

    let destination: String
    let part: String
    /// `nil` if no other process can continue the part.
    let state: String?
    /// The name of a short-lived file.
    let temporary: String
    /// Whether the names contain the hash of the destination.
    let isHashed: Bool

    init(_ destination: String, isUnique: Bool = false) {
        // The names below must be shorter than the limit of the file system.
        isHashed = destination.utf8.count > FileName.maximumLength
        let hash = Array(destination.utf8).withUnsafeBytes { XXHash64.hash($0) }
        let stem = "." + (isHashed ? String(hash, radix: 16) : destination)
        let unique = isUnique ? "." + String(UInt64.random(in: 0 ... .max), radix: 36) : ""
        self.destination = destination
        part = stem + unique + Self.suffix
        state = isUnique ? nil : "\(stem).webservice-state"
        temporary = "\(stem)\(unique).webservice-new"
    }

    /// Creates the names from the name of a part.
    ///
    /// - Parameters:
    ///   - part: The name of an entry of the folder.
    ///   - state: A closure that returns the state stored under a name. The state contains the file
    ///     name if the name of the part contains only a hash of it.
    /// - Returns: `nil` if the name is not that of a part.
    init?(part: String, state: (_ name: String) -> DownloadState?) {
        guard part.utf8.first == UInt8(ascii: "."), part.hasSuffix(Self.suffix) else { return nil }
        let stem = String(decoding: part.utf8.dropFirst().dropLast(Self.suffix.utf8.count), as: UTF8.self)
        guard !["", ".", ".."].contains(stem) else { return nil }
        self.init(stem)
        guard self.part == part else { return nil }
        // A stored name is used only if its hash is that of the part.
        guard let name = self.state.flatMap(state)?.name, !name.utf8.contains(where: { [0, 0x2F].contains($0) })
        else { return }
        let hashed = PartNames(name)
        if hashed.part == part { self = hashed }
    }
}
