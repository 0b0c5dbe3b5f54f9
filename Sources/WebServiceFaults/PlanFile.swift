import Foundation

/// A file with the plans so far, which remains if the process ends during a run. Its last plan is
/// that of the run.
///
/// The name of the file depends on the place of the exploration in the sources.
final class PlanFile: Sendable {
    private let path: String
    /// The file descriptor; negative if the folder is not writable, which must not prevent a run.
    private let descriptor: Int32
    /// The plan of an earlier process that ended during a run; `nil` if there is none.
    let abandonedPlan: String?

    init(_ place: String) {
        let name = String(place.map { $0.isLetter || $0.isNumber ? $0 : "-" })
        path = FileManager.default.temporaryDirectory.appendingPathComponent("WebServiceFaults-\(name).txt").path
        // The file may be missing.
        let lines = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n") ?? []
        let isAbandoned = lines.count > 1 && Int32(lines[0]).map { kill($0, 0) != 0 } ?? false
        abandonedPlan = isAbandoned ? lines.last.map(String.init) : nil
        descriptor = open(path, O_CREAT | O_TRUNC | O_APPEND | O_WRONLY | O_CLOEXEC, 0o600)
        add("\(ProcessInfo.processInfo.processIdentifier)")
    }

    deinit { _ = descriptor < 0 ? 0 : close(descriptor) }

    /// Writes the plan before its run.
    func add(_ plan: String) {
        var line = "\(plan)\n"
        _ = line.withUTF8 { descriptor < 0 ? 0 : write(descriptor, $0.baseAddress, $0.count) }
    }

    func remove() { unlink(path) }
}
