package import Foundation
package import Testing

/// Third-party lists of hostile input, which are not part of the package. Tests that read them are
/// skipped with a comment unless `WEBSERVICE_CORPORA` names their folder.
package enum Corpora {
    package static let folder = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }
    package static let areThere = folder != nil
    package static let comment: Comment = "WEBSERVICE_CORPORA must name the folder of the corpora"

    package static func data(_ path: String) throws -> Data {
        try Data(contentsOf: #require(folder).appendingPathComponent(path))
    }

    package static func lines(_ path: String) throws -> [String] {
        String(decoding: try data(path), as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
    }

    package static func naughtyStrings() throws -> [String] {
        try JSONDecoder().decode([String].self, from: data("blns/blns.json"))
    }
}
