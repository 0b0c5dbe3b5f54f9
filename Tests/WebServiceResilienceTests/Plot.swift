import Foundation
import Testing

/// A diagram with lines, written as SVG to the folder in the environment variable
/// `WEBSERVICE_PLOTS`.
struct Plot {
    struct Line {
        var name: String
        var points: [(x: Double, y: Double)]
        /// A Boolean value that indicates whether a value applies until the next one.
        var isStepped = false
    }

    var title: String
    var x: String
    var y: String
    var isLogarithmic = false
    var lines: [Line]

    private static let folder = ProcessInfo.processInfo.environment["WEBSERVICE_PLOTS"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }

    /// Writes a diagram, if a folder is set.
    static func write(_ name: String, _ plot: () -> Plot) {
        guard let url = folder?.appendingPathComponent("\(name).svg") else { return }
        do { try Data(plot().svg.utf8).write(to: url) } catch { Issue.record(error) }
    }

    /// Writes the rows of a table, if a folder is set.
    static func writeTable(_ name: String, _ rows: [String]) {
        guard let url = folder?.appendingPathComponent("\(name).md") else { return }
        do { try Data((rows.joined(separator: "\n") + "\n").utf8).write(to: url) } catch { Issue.record(error) }
    }

    private static let colours = ["#888888", "#c2410c", "#1d4ed8", "#15803d"]
    private static let (width, height) = (640.0, 320.0)
    private static let frame = (left: 60.0, top: 36.0, right: 620.0, bottom: 270.0)

    var svg: String {
        let points = lines.flatMap(\.points)
        let (left, right) = (points.map(\.x).min() ?? 0, points.map(\.x).max() ?? 1)
        let maximum = points.map(\.y).max() ?? 1
        let top = isLogarithmic ? maximum : Self.steps(0, maximum).last ?? maximum
        let bottom = isLogarithmic ? points.map(\.y).filter { $0 > 0 }.min() ?? 1 : 0
        func place(_ point: (x: Double, y: Double)) -> (Double, Double) {
            let frame = Self.frame
            let share =
                isLogarithmic
                ? log(max(point.y, bottom) / bottom) / max(log(top / bottom), 1e-9)
                : (point.y - bottom) / max(top - bottom, 1e-9)
            return (
                frame.left + (point.x - left) / max(right - left, 1e-9) * (frame.right - frame.left),
                frame.bottom - share * (frame.bottom - frame.top)
            )
        }
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" "
                + "font-family=\"sans-serif\" font-size=\"12\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
            "<text x=\"\(Self.frame.left)\" y=\"20\" font-weight=\"bold\">\(title)</text>",
            "<text x=\"\(Self.frame.right)\" y=\"310\" text-anchor=\"end\">\(x)</text>",
            "<text x=\"\(Self.frame.left - 6)\" y=\"30\" text-anchor=\"end\">\(y)</text>",
        ]
        for tick in ticks(bottom, top) {
            let (_, height) = place((left, tick))
            parts.append(
                "<path d=\"M\(Self.frame.left) \(Self.text(height))H\(Self.frame.right)\" stroke=\"#dddddd\"/>"
                    + "<text x=\"\(Self.frame.left - 6)\" y=\"\(Self.text(height + 4))\" text-anchor=\"end\">"
                    + "\(Self.text(tick))</text>")
        }
        for value in Self.steps(left, right) where value <= right {
            parts.append(
                "<text x=\"\(Self.text(place((value, bottom)).0))\" y=\"\(Self.frame.bottom + 16)\" "
                    + "text-anchor=\"middle\">\(Self.text(value))</text>")
        }
        for (index, line) in lines.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            var path = ""
            for (number, point) in line.points.enumerated() {
                let (x, y) = place(point)
                if number == 0 {
                    path = "M\(Self.text(x)) \(Self.text(y))"
                } else if line.isStepped {
                    path += "H\(Self.text(x))V\(Self.text(y))"
                } else {
                    path += "L\(Self.text(x)) \(Self.text(y))"
                }
            }
            parts.append("<path d=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.5\"/>")
            let place = Self.frame.left + Double(index) * 150
            parts.append(
                "<path d=\"M\(place) 306h18\" stroke=\"\(colour)\" stroke-width=\"2\"/>"
                    + "<text x=\"\(place + 24)\" y=\"310\">\(line.name)</text>")
        }
        return (parts + ["</svg>", ""]).joined(separator: "\n")
    }

    private func ticks(_ bottom: Double, _ top: Double) -> [Double] {
        guard isLogarithmic else { return Self.steps(bottom, top) }
        return (-3...6).map { pow(10, Double($0)) }.filter { $0 >= bottom && $0 <= top }
    }

    /// Returns round numbers that enclose a range.
    private static func steps(_ first: Double, _ last: Double) -> [Double] {
        let unit = pow(10, floor(log10(max(last - first, 1e-9) / 4)))
        let step = [1, 2, 5, 10].map { $0 * unit }.first { (last - first) / $0 <= 6 } ?? unit
        return Array(stride(from: (first / step).rounded(.up) * step, to: last + step, by: step))
    }

    private static func text(_ value: Double) -> String {
        let rounded = (value * 10).rounded() / 10
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }
}
