import Foundation

/// Text and shapes that are readable in light and in dark mode: no background, and colours of medium lightness.
enum SVG {
    static let colours = ["#3b82c4", "#d9822b", "#4a9d5b", "#a05fb5", "#888888"]
    static let ink = "#808080"

    static func document(width: Int, height: Int, _ body: String) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" height="\(height)" \
        font-family="sans-serif" font-size="12">
        \(body)</svg>

        """
    }

    static func text(_ text: String, x: Double, y: Double, anchor: String = "start", size: Int = 12) -> String {
        let escaped = text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
        return """
            <text x="\(number(x))" y="\(number(y))" fill="\(ink)" text-anchor="\(anchor)" font-size="\(size)">\(escaped)</text>

            """
    }

    static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, dashes: String = "none") -> String {
        """
        <line x1="\(number(x1))" y1="\(number(y1))" x2="\(number(x2))" y2="\(number(y2))" stroke="\(ink)" \
        stroke-width="1" stroke-dasharray="\(dashes)"/>

        """
    }

    static func number(_ value: Double) -> String { String(format: "%.1f", value) }

    static func label(_ value: Double) -> String {
        switch value {
        case ..<10: String(format: "%.2f", value)
        case ..<100: String(format: "%.1f", value)
        default: String(format: "%.0f", value)
        }
    }
}

struct Bar {
    var label: String
    var value: Double
}

/// Horizontal bars on a logarithmic scale, with a line to compare with.
struct BarPlot {
    var title: String
    var bars: [Bar]
    var line: Double?

    var svg: String {
        let usable = bars.filter { $0.value > 0 && $0.value.isFinite }
        let values = usable.map(\.value) + (line.map { [$0] } ?? [])
        let low = log10(values.min() ?? 0.1).rounded(.down)
        let high = max(low + 1, log10(values.max() ?? 10).rounded(.up))
        let (left, width, row) = (450.0, 340.0, 20.0)
        func x(_ value: Double) -> Double { left + (log10(value) - low) / (high - low) * width }
        let height = Double(usable.count) * row + 70
        var body = SVG.text(title, x: 10, y: 20, size: 15)
        for power in Int(low)...Int(high) {
            let tick = pow(10, Double(power))
            body += SVG.line(x(tick), 34, x(tick), height - 24, dashes: "2 4")
            body += SVG.text(power >= 0 ? "\(Int(tick))" : "\(tick)", x: x(tick), y: height - 8, anchor: "middle")
        }
        for (index, bar) in usable.enumerated() {
            let y = 40 + Double(index) * row
            let isOver = line.map { bar.value > $0 } ?? bar.label.hasPrefix(" ")
            body += SVG.text(bar.label, x: left - 8, y: y + 12, anchor: "end", size: 11)
            body += """
                <rect x="\(SVG.number(left))" y="\(SVG.number(y))" width="\(SVG.number(max(1, x(bar.value) - left)))" \
                height="14" fill="\(SVG.colours[isOver ? 1 : 0])"/>

                """
            body += SVG.text(SVG.label(bar.value), x: x(bar.value) + 4, y: y + 12, size: 11)
        }
        if let line { body += SVG.line(x(line), 34, x(line), height - 24) }
        return SVG.document(width: 860, height: Int(height), body)
    }
}

/// Lines over two logarithmic scales.
struct LinePlot {
    struct Line {
        var label: String
        var points: [(x: Double, y: Double)]
    }

    var title: String
    var lines: [Line]

    var svg: String {
        let points = lines.flatMap(\.points).filter { $0.x > 0 && $0.y > 0 }
        func range(_ values: [Double]) -> (low: Double, high: Double) {
            let low = log10(values.min() ?? 1).rounded(.down)
            return (low, max(low + 1, log10(values.max() ?? 10).rounded(.up)))
        }
        let (xs, ys) = (range(points.map(\.x)), range(points.map(\.y)))
        let (left, top, width, height) = (70.0, 40.0, 560.0, 300.0)
        func x(_ value: Double) -> Double { left + (log10(value) - xs.low) / (xs.high - xs.low) * width }
        func y(_ value: Double) -> Double { top + height - (log10(value) - ys.low) / (ys.high - ys.low) * height }
        var body = SVG.text(title, x: 10, y: 20, size: 15)
        for power in Int(xs.low)...Int(xs.high) {
            let tick = pow(10, Double(power))
            body += SVG.line(x(tick), top, x(tick), top + height, dashes: "2 4")
            body += SVG.text("\(Int(tick))", x: x(tick), y: top + height + 18, anchor: "middle")
        }
        for power in Int(ys.low)...Int(ys.high) {
            let tick = pow(10, Double(power))
            body += SVG.line(left, y(tick), left + width, y(tick), dashes: "2 4")
            body += SVG.text(power >= 0 ? "\(Int(tick))" : "\(tick)", x: left - 6, y: y(tick) + 4, anchor: "end")
        }
        for (index, line) in lines.enumerated() {
            let colour = SVG.colours[index % SVG.colours.count]
            let path = line.points.filter { $0.x > 0 && $0.y > 0 }
                .map { "\(SVG.number(x($0.x))),\(SVG.number(y($0.y)))" }.joined(separator: " ")
            body += "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2\"/>\n"
            let legend = top + 14 + Double(index) * 18
            body +=
                "<rect x=\"\(SVG.number(left + width + 12))\" y=\"\(legend - 9)\" width=\"10\" height=\"10\" fill=\"\(colour)\"/>\n"
            body += SVG.text(line.label, x: left + width + 28, y: legend)
        }
        return SVG.document(width: 800, height: 380, body)
    }
}
