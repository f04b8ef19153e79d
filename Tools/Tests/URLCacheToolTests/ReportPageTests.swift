#if os(Linux)
    import Foundation
    import Testing

    /// The report in headless Chromium: it comes up without a complaint, keeps to the width of a phone, has enough
    /// contrast, and is sorted and opened by keys alone. Pictures are left in `.build/ci` of the repository.
    @Suite(.serialized, .enabled(if: Browser.program != nil, "needs Chromium"))
    struct ReportPageTests {
        private let scratch: Scratch
        private let pictures = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../.build/ci")
            .standardized

        init() throws { scratch = try Scratch() }

        private func page(entries: Int, hosts: Int? = nil, withLoads: Bool = true) throws -> URL {
            let cache = try scratch.demo(entries: entries, hosts: hosts, withLoads: withLoads)
            let page = scratch.folder.appendingPathComponent("report.html")
            expect(0, "^\(entries) entries", try Tool.run("report", cache, "--html", page.path))
            return page
        }

        @Test(arguments: [(0, nil), (30, 1), (10_000, 1), (10_000, 40)] as [(Int, Int?)])
        func everyWidthAndScheme(entries: Int, hosts: Int?) throws {
            let page = try page(entries: entries, hosts: hosts, withLoads: hosts != 1 || entries > 100)
            let browser = try Browser(profile: scratch.path("profile"))
            for width in [1_280, 390] {
                for scheme in ["light", "dark"] {
                    try browser.open(page, width: width, scheme: scheme)
                    let place = "\(entries) entries of \(hosts ?? 0) hosts, \(width) px, \(scheme)"
                    #expect(try browser.value("document.body.dataset.ready") as? String == "yes", "\(place)")
                    let wide = try browser.value("document.documentElement.scrollWidth - innerWidth") as? Int
                    #expect((wide ?? 1) <= 0, "\(place): off the screen")
                    for colour in width > 700 ? ["type", "fresh", "status"] : ["type"] {
                        _ = try browser.value("el('colourby').value = '\(colour)'; drawTreemap()")
                        let low = try browser.value(Self.lowContrast) as? [String]
                        #expect(low == [], "\(place), by \(colour): contrast")
                    }
                    #expect(browser.complaints == [], "\(place)")
                    _ = try browser.value("el('colourby').value = 'type'; drawTreemap()")
                    try FileManager.default.createDirectory(at: pictures, withIntermediateDirectories: true)
                    let picture = "report-\(entries)-\(hosts ?? 0)-\(width)-\(scheme).png"
                    try browser.picture().write(to: pictures.appendingPathComponent(picture))
                }
            }
        }

        /// The tool and the page count alike, above, below and after a filter is taken away.
        @Test func theNumbersOfThePageAreThoseOfTheTool() throws {
            let page = try page(entries: 1_000)
            let browser = try Browser(profile: scratch.path("profile"))
            try browser.open(page, width: 1_280, scheme: "light")
            let run = try Tool.run("stats", scratch.path("cache"), "--json")
            let facts = try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
            let log = try #require(facts["log"] as? [String: Any])
            func number(_ script: String) throws -> Int? { (try browser.value(script) as? NSNumber)?.intValue }
            func expectTotals() throws {
                for (script, name) in [("loads.loads", "loads"), ("loads.hits", "hits"), ("loads.bytes", "bytesSaved")]
                {
                    #expect(try number(script) == log[name] as? Int, "\(name)")
                }
                let all = try #require(facts["diskBytes"] as? Int)
                let disk = all - (try #require(facts["overhead"] as? Int))
                #expect(try number("shown.reduce((sum, e) => sum + e.d, 0)") == disk)
                #expect(try number("trail[0].d") == disk)
                // Some expire between the two commands.
                let fresh = try #require(try number("shown.filter(e => e.isFresh).length"))
                #expect((0...20).contains(fresh - (facts["fresh"] as? Int ?? 0)))
                let saved = try #require(try number("loads.saved"))
                #expect(abs(saved / 1_000 - Int(log["secondsSaved"] as? Double ?? -9)) <= 1)
            }
            try expectTotals()
            // Of each host its own, and together all.
            let parts = try browser.value(
                """
                [...el("hostfilter").options].map(o => o.value).filter(Boolean).map(host => {
                  only.host = host; drawAll();
                  return [shown.length, shown.every(e => e.host === host) ? 1 : 0, loads.loads];
                })
                """)
            let hosts = try #require(parts as? [[Int]])
            #expect(hosts.count > 10 && hosts.allSatisfy { $0[1] == 1 })
            #expect(hosts.reduce(0) { $0 + $1[0] } == 1_000)
            #expect(hosts.reduce(0) { $0 + $1[2] } == log["loads"] as? Int)
            _ = try browser.value("el('clear').hidden = false; el('clear').click()")
            try expectTotals()
            // A day of the log's two.
            _ = try browser.value("only.from = now - 86400; drawAll()")
            let some = try #require(try number("loads.loads"))
            #expect(some > 100 && some < (log["loads"] as? Int ?? 0))
            #expect(try browser.value("shown.every(e => e.at >= now - 86400)") as? Bool == true)
            #expect(browser.complaints == [])
        }

        /// Where one host has all, its folders are the boxes; and no box is larger than all others for the many small
        /// things in it.
        @Test(arguments: [1, 40]) func theTreemapShowsPathsAndNoHeapOfSmallThings(hosts: Int) throws {
            let browser = try Browser(profile: scratch.path("profile"))
            try browser.open(try page(entries: 10_000, hosts: hosts), width: 1_280, scheme: "light")
            let names = try browser.value("trail[trail.length - 1].children.map(c => c.name)") as? [String] ?? []
            #expect(names.count > 3 && names.count <= 90)
            #expect(names.contains(hosts == 1 ? "articles/" : "host-1.example"), "\(names)")
            let heaps =
                try browser.value(
                    """
                    (() => {
                      const found = [];
                      (function look(node) {
                        if (!node.children) return;
                        const most = Math.max(...node.children.map(sizeOf));
                        for (const child of node.children) {
                          if (/smaller/.test(child.name) && sizeOf(child) > Math.max(0, ...node.children.filter(c => c !== child).map(sizeOf))) found.push(node.name + ": " + child.name);
                          look(child);
                        }
                      })(trail[0]);
                      return found;
                    })()
                    """) as? [String]
            #expect(heaps == [])
            #expect(try browser.value("document.querySelectorAll('#ratio .tick').length >= 4") as? Bool == true)
            #expect(browser.complaints == [])
        }

        @Test func keysAlone() throws {
            let browser = try Browser(profile: scratch.path("profile"))
            try browser.open(try page(entries: 1_000), width: 1_280, scheme: "light")
            func text(_ script: String) throws -> String { try browser.value(script) as? String ?? "" }
            try browser.press("Tab")
            #expect(try text("document.activeElement.id") == "skip", "the first stop is the way to the entries")
            try browser.press("Enter")
            let isTitle =
                "document.activeElement.matches('th button') && document.activeElement.textContent.includes('Size')"
            var steps = 0
            while try browser.value(isTitle) as? Bool != true, steps < 20 {
                try browser.press("Tab")
                steps += 1
            }
            #expect(steps < 20, "the title of a column is within reach of the keys")
            let first = "document.querySelector('#rows .size').textContent"
            let order =
                "document.querySelector('th[aria-sort]').textContent + document.querySelector('th[aria-sort]').ariaSort"
            let largest = try text(first)
            #expect(try text(order) == "▼Sizedescending")
            try browser.press("Enter")
            #expect(try text(order) == "▲Sizeascending" && text(first) != largest, "Enter turns the order")
            _ = try browser.value("document.querySelector('#treemap [tabindex=\"0\"]').focus()")
            for (key, depth) in [("ArrowRight", 0), ("Enter", 1), ("Enter", 2), ("Escape", 1)] {
                try browser.press(key)
                let trail = try text("document.getElementById('crumbs').textContent")
                #expect(trail.filter { $0 == "›" }.count == depth, "treemap: \(key) leads to \(trail)")
            }
            #expect(try text("document.activeElement.tagName") != "DIV", "the treemap keeps the focus")
            #expect(browser.complaints == [])
        }

        /// Texts whose contrast is below what WCAG 2 asks for at level AA.
        private static let lowContrast = #"""
            (() => {
              const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
              const parts = colour => {
                context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
                const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
                return [r, g, b, a / 255];
              };
              const light = colour => colour.slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
              const behind = node => {
                const layers = [];
                for (let n = node; n; n = n.parentElement) {
                  const colour = parts(getComputedStyle(n).backgroundColor);
                  layers.push(colour);
                  if (colour[3] === 1) break;
                }
                return layers.reverse().reduce((out, c) => out.map((v, i) => v * (1 - c[3]) + c[i] * c[3]), [255, 255, 255]);
              };
              const low = new Set();
              for (const node of document.querySelectorAll("body *")) {
                const hasText = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
                if (!hasText || !node.getClientRects().length || ["SCRIPT", "STYLE", "OPTION"].includes(node.tagName)) continue;
                const style = getComputedStyle(node), isSVG = node.namespaceURI.endsWith("svg");
                const [a, b] = [light(parts(isSVG ? style.fill : style.color)), light(behind(node))];
                const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) low.add(`${node.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
              }
              return [...low].slice(0, 5);
            })()
            """#
    }
#endif
