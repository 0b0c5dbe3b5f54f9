import Foundation
import Testing

/// A diagram with lines, written as SVG to the folder in the environment variable
/// `WEBSERVICE_PLOTS`.
struct Plot {
    struct Line {
        var name: String
        var points: [(x: Double, y: Double)]
        /// Whether a value applies until the next one.
        var isStepped = false
    }

    enum Scale {
        case linear
        case logarithmic
        /// Percentiles: each further nine, such as that from 99 to 99.9, has the same width.
        case percentiles

        func place(_ value: Double) -> Double {
            switch self {
            case .linear: value
            case .logarithmic: log10(max(value, 1e-9))
            case .percentiles: -log10(max(1 - value / 100, 1e-9))
            }
        }

        func ticks(_ first: Double, _ last: Double) -> [Double] {
            switch self {
            case .linear: Plot.steps(first, last)
            case .logarithmic: (-3...6).map { pow(10, Double($0)) }.filter { $0 >= first && $0 <= last }
            case .percentiles: [50, 90, 99, 99.9].filter { $0 >= first && $0 <= last }
            }
        }
    }

    var title: String
    var x: String
    var y: String
    var xScale = Scale.linear
    var yScale = Scale.linear
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

    private static let (width, height) = (520.0, 330.0)
    private static let frame = (left: 60.0, top: 66.0, right: 500.0, bottom: 264.0)

    /// Lines have the classes `line0` to `line3`. The background is a part of the diagram, so that it
    /// is legible on a page whose colors do not follow those of the system.
    private static let style = """
        <style>
        .card { fill: #fff; stroke: #d5d8dd } .grid { stroke: #e3e6ea } text { fill: #1c1e21 } .name { fill: #5a6068 }
        path { fill: none; stroke-width: 1.8 } .grid { stroke-width: 1 }
        .line0 { stroke: #6b7280 } .line1 { stroke: #c2410c } .line2 { stroke: #1d4ed8 } .line3 { stroke: #15803d }
        @media (prefers-color-scheme: dark) {
        .card { fill: #17191c; stroke: #3a3f46 } .grid { stroke: #33383f } text { fill: #eceef0 } .name { fill: #a8afb8 }
        .line0 { stroke: #9aa3ad } .line1 { stroke: #fb923c } .line2 { stroke: #7fb2ff } .line3 { stroke: #4ade80 }
        }
        </style>
        """

    var svg: String {
        let points = lines.flatMap(\.points)
        let (left, right) = (points.map(\.x).min() ?? 0, points.map(\.x).max() ?? 1)
        let maximum = points.map(\.y).max() ?? 1
        let isLinear = yScale == .linear
        let top = isLinear ? Self.steps(0, maximum).last ?? maximum : maximum
        let bottom = isLinear ? 0 : points.map(\.y).filter { $0 > 0 }.min() ?? 1
        let frame = Self.frame
        func share(_ value: Double, _ first: Double, _ last: Double, _ scale: Scale) -> Double {
            (scale.place(value) - scale.place(first)) / max(scale.place(last) - scale.place(first), 1e-9)
        }
        func place(_ point: (x: Double, y: Double)) -> (x: Double, y: Double) {
            (
                frame.left + share(point.x, left, right, xScale) * (frame.right - frame.left),
                frame.bottom - share(max(point.y, bottom), bottom, top, yScale) * (frame.bottom - frame.top)
            )
        }
        func label(_ text: String, _ x: Double, _ y: Double, _ attributes: String) -> String {
            "<text x=\"\(Self.text(x))\" y=\"\(Self.text(y))\" \(attributes)>\(text)</text>"
        }
        let (width, height) = (Self.text(Self.width), Self.text(Self.height))
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" "
                + "font-family=\"system-ui, Helvetica, Arial, sans-serif\" font-size=\"15\">",
            Self.style,
            "<rect class=\"card\" x=\".5\" y=\".5\" width=\"\(Self.text(Self.width - 1))\" "
                + "height=\"\(Self.text(Self.height - 1))\" rx=\"12\"/>",
            label(title, 16, 26, "font-weight=\"600\""),
            label(y, 16, 52, "class=\"name\""),
            label(x, (frame.left + frame.right) / 2, 312, "class=\"name\" text-anchor=\"middle\""),
        ]
        for tick in yScale.ticks(bottom, top) where tick <= top {
            let height = place((left, tick)).y
            parts.append(
                "<path class=\"grid\" d=\"M\(Self.text(frame.left)) \(Self.text(height))H\(Self.text(frame.right))\"/>")
            parts.append(label(Self.text(tick), frame.left - 8, height + 5, "text-anchor=\"end\""))
        }
        for tick in xScale.ticks(left, right) where tick <= right {
            let x = place((tick, bottom)).x
            parts.append(
                "<path class=\"grid\" d=\"M\(Self.text(x)) \(Self.text(frame.top))V\(Self.text(frame.bottom))\"/>")
            parts.append(label(Self.text(tick), x, frame.bottom + 21, "text-anchor=\"middle\""))
        }
        for (index, line) in lines.enumerated() {
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
            parts.append("<path class=\"line\(index)\" d=\"\(path)\"/>")
            // A character of this size has a width of about 8.5.
            let place = frame.right - lines[index...].reduce(0) { $0 + 34 + 8.5 * Double($1.name.count) }
            parts.append(
                "<path class=\"line\(index)\" d=\"M\(Self.text(place)) 47h16\"/>" + label(line.name, place + 22, 52, "")
            )
        }
        return (parts + ["</svg>", ""]).joined(separator: "\n")
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
