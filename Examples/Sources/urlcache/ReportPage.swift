import Foundation

/// The page of `urlcache report`: data, style and script in one file that asks the network for nothing.
enum ReportPage {
    static func html(_ data: ReportData) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // URLs and header values are others' text: "<" must not end the script.
        let json = String(decoding: try encoder.encode(data), as: UTF8.self)
            .replacingOccurrences(of: "<", with: "\\u003c")
            .replacingOccurrences(of: "\u{2028}", with: "\\u2028")
            .replacingOccurrences(of: "\u{2029}", with: "\\u2029")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
            <title>Cache report</title>
            <style>\(style)</style>
            </head>
            <body>
            \(body)
            <script>
            "use strict";
            const data = \(json);
            \(script)
            </script>
            </body>
            </html>

            """
    }

    private static let body = """
        <header><h1>Cache report</h1><p id="where"></p></header>
        <section id="tiles" aria-label="Summary"></section>
        <section><h2>What takes the space</h2><p class="hint">Area: bytes on disk. Tap or point at a box for its entry.</p>
        <div id="treemap" role="img" aria-label="Treemap of entries by bytes on disk"></div><p id="pointed">&nbsp;</p>
        <ul id="legend"></ul></section>
        <div class="pair">
        <section><h2>Sizes</h2><div id="sizes" class="chart"></div></section>
        <section><h2>Time since stored</h2><div id="ages" class="chart"></div></section>
        <section><h2>Becoming stale</h2><div id="freshness" class="chart"></div></section>
        <section><h2>Answered by the cache</h2><div id="ratio" class="chart"></div></section>
        </div>
        <section><h2>Entries</h2>
        <input id="search" type="search" placeholder="Search URL, type or status" aria-label="Search entries">
        <p id="count" class="hint"></p>
        <div id="scroll"><table><thead><tr id="titles"></tr></thead><tbody id="rows"></tbody></table></div>
        <button id="more" hidden>Show more</button></section>
        """

    private static let style = """
        :root { color-scheme: light dark; --back: #f6f7f9; --card: #fff; --text: #1c2230; --soft: #596273; --line: #dde1e8;
          --bar: #2f6fd0; --stale: #b3641a; }
        @media (prefers-color-scheme: dark) { :root { --back: #12151b; --card: #1b2029; --text: #e8ebf1; --soft: #a0a9ba;
          --line: #313846; --bar: #6ea4f4; --stale: #e09a54; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; padding: 16px; max-width: 1100px; background: var(--back); color: var(--text);
          font: 15px/1.45 system-ui, sans-serif; }
        h1 { margin: 0; font-size: 24px; } h2 { margin: 0 0 8px; font-size: 16px; }
        header p, .hint { margin: 2px 0 10px; color: var(--soft); overflow-wrap: anywhere; }
        section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px;
          margin-bottom: 14px; min-width: 0; }
        #tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 14px; }
        #tiles b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; } #tiles span { color: var(--soft); }
        #treemap { position: relative; height: 340px; overflow: hidden; border-radius: 6px; }
        #treemap div { position: absolute; border: 1px solid var(--card); color: #fff; font-size: 11px; padding: 2px 4px;
          overflow: hidden; white-space: nowrap; text-overflow: ellipsis; text-shadow: 0 1px 2px #0009; }
        #pointed { min-height: 1.45em; margin: 8px 0 0; overflow-wrap: anywhere; }
        #legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0 0; padding: 0; }
        #legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
        .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 0 14px; }
        .chart { display: grid; grid-template-columns: max-content 1fr max-content; gap: 4px 10px; align-items: center;
          font-size: 13px; font-variant-numeric: tabular-nums; }
        .chart > span:nth-child(3n+1) { color: var(--soft); text-align: right; }
        .chart .bar { background: var(--bar); height: 14px; border-radius: 3px; }
        .chart .bar.stale { background: var(--stale); } .chart p { grid-column: 1 / -1; color: var(--soft); margin: 0; }
        .chart svg { grid-column: 1 / -1; width: 100%; height: 180px; }
        svg text { fill: var(--soft); font-size: 11px; } svg rect { fill: var(--bar); } svg line { stroke: var(--line); }
        input, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
          border-radius: 8px; padding: 8px 12px; } input { width: 100%; } button { margin-top: 10px; cursor: pointer; }
        #scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13px; }
        th, td { text-align: right; padding: 5px 8px; border-bottom: 1px solid var(--line); white-space: nowrap;
          font-variant-numeric: tabular-nums; }
        th { cursor: pointer; color: var(--soft); user-select: none; }
        th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 210px; }
        .old { color: var(--stale); }
        """

    // Others' text goes into the page by textContent only.
    private static let script = #"""
        const el = id => document.getElementById(id);
        const make = (tag, text, parent, className) => {
          const node = document.createElement(tag);
          if (text !== undefined && text !== null) node.textContent = text;
          if (className) node.className = className;
          if (parent) parent.append(node);
          return node;
        };
        const bytes = n => {
          if (n < 1024) return n + " B";
          for (const unit of ["KB", "MB", "GB", "TB"]) {
            n /= 1024;
            if (n < 1024 || unit === "TB") return n.toFixed(n < 10 ? 1 : 0) + " " + unit;
          }
        };
        const span = s => {
          s = Math.abs(s);
          if (s < 100) return Math.round(s) + " s";
          if (s < 6000) return Math.round(s / 60) + " min";
          if (s < 172800) return Math.round(s / 3600) + " h";
          return Math.round(s / 86400) + " d";
        };
        const now = data.writtenAt, entries = data.entries, summary = data.summary;

        el("where").textContent = data.directory + ", " + new Date(now * 1000).toLocaleString();
        const tile = (value, name) => { const box = make("div", null, el("tiles")); make("b", value, box); make("span", name, box); };
        tile(entries.length.toLocaleString("en"), "entries");
        tile(bytes(summary.diskBytes), "on disk");
        tile(summary.fresh.toLocaleString("en"), "fresh");
        tile(summary.stale.toLocaleString("en"), "stale");
        tile(summary.pinned.toLocaleString("en"), "pinned");
        if (summary.damaged) tile(summary.damaged.toLocaleString("en"), "damaged");
        const loads = data.loads.reduce((sum, l) => [sum[0] + l.hits, sum[1] + l.all], [0, 0]);
        if (loads[1]) tile(Math.round(100 * loads[0] / loads[1]) + " %", "of " + loads[1].toLocaleString("en") + " loads");

        // Colours: one for each of the seven largest types, the last for the rest.
        const palette = ["#2f6fd0", "#b3541e", "#1d8a66", "#8a4fb8", "#a07a00", "#b83a6e", "#3a7f94", "#6a7180"];
        const types = summary.types.map(t => t.name);
        const colour = type => palette[Math.min(types.indexOf(type) < 0 ? 7 : types.indexOf(type), 7)];

        function drawTreemap() {
          const box = el("treemap"), width = box.clientWidth, height = box.clientHeight;
          box.replaceChildren();
          // More boxes than this are dots: the smallest of each type share one box.
          const sorted = [...entries].sort((a, b) => b.d - a.d), shown = sorted.slice(0, 400), rest = new Map();
          for (const e of sorted.slice(400)) {
            const group = rest.get(e.t) || { t: e.t, d: 0, b: 0, n: 0 };
            group.d += e.d; group.b += e.b; group.n += 1; rest.set(e.t, group);
          }
          const items = [...shown, ...[...rest.values()].map(g => ({ ...g, u: g.n.toLocaleString("en") + " smaller entries of type " + g.t }))]
            .filter(e => e.d > 0).sort((a, b) => b.d - a.d);
          const total = items.reduce((sum, e) => sum + e.d, 0);
          if (!total) { make("p", "Nothing is stored.", box); return; }
          const scale = width * height / total;
          let x = 0, y = 0, w = width, h = height, start = 0;
          const worst = (sum, max, min, side) => Math.max(side * side * max / (sum * sum), sum * sum / (side * side * min));
          while (start < items.length) {
            // Squarified: a row grows along the shorter side while its boxes become less elongated.
            const side = Math.min(w, h);
            let end = start, sum = 0, best = Infinity;
            while (end < items.length) {
              const area = items[end].d * scale, next = worst(sum + area, items[start].d * scale, area, side);
              if (next > best) break;
              best = next; sum += area; end++;
            }
            const depth = side > 0 ? sum / side : 0;
            let offset = 0;
            for (const e of items.slice(start, end)) {
              const length = depth > 0 ? e.d * scale / depth : 0, node = make("div", null, box);
              const [left, top, ww, hh] = w < h ? [x + offset, y, length, depth] : [x, y + offset, depth, length];
              Object.assign(node.style, { left: left + "px", top: top + "px", width: ww + "px", height: hh + "px", background: colour(e.t) });
              if (ww < 3 || hh < 3) node.style.border = "0";
              if (ww > 60 && hh > 18) node.textContent = e.u.replace(/^https?:\/\/[^\/]*/, "") || e.u; else node.style.padding = 0;
              const tell = () => { el("pointed").textContent = e.u + ", " + bytes(e.b) + ", " + bytes(e.d) + " on disk"; };
              node.addEventListener("pointerenter", tell);
              node.addEventListener("click", tell);
              offset += length;
            }
            if (w < h) { y += depth; h -= depth; } else { x += depth; w -= depth; }
            start = end;
          }
        }
        drawTreemap();
        addEventListener("resize", drawTreemap);
        for (const [index, t] of summary.types.slice(0, 7).entries()) {
          const item = make("li", null, el("legend"));
          make("i", null, item).style.background = palette[index];
          item.append(t.name + ", " + bytes(t.bytes));
        }
        if (types.length > 7) { const item = make("li", null, el("legend")); make("i", null, item).style.background = palette[7]; item.append("other types"); }

        function bars(id, groups) {
          const box = el(id), max = Math.max(1, ...groups.map(g => g[1]));
          for (const [name, count, className] of groups) {
            make("span", name, box);
            make("div", null, box, "bar " + (className || "")).style.width = (count ? Math.max(0.5, 100 * count / max) : 0) + "%";
            make("span", count.toLocaleString("en"), box);
          }
        }
        const bins = (limits, names, value) => {
          const counts = names.map(() => 0);
          for (const e of entries) {
            const v = value(e);
            if (v === null) continue;
            let i = limits.findIndex(limit => v < limit);
            counts[i < 0 ? limits.length : i]++;
          }
          return names.map((name, i) => [name, counts[i]]);
        };
        const kilo = 1024;
        bars("sizes", bins([kilo, 4 * kilo, 16 * kilo, 64 * kilo, 256 * kilo, kilo * kilo, 4 * kilo * kilo],
          ["under 1 KB", "to 4 KB", "to 16 KB", "to 64 KB", "to 256 KB", "to 1 MB", "to 4 MB", "more"], e => e.b));
        const times = [60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400];
        const timeNames = ["under 1 min", "to 10 min", "to 1 h", "to 6 h", "to 1 d", "to 7 d", "to 30 d", "more"];
        bars("ages", bins(times, timeNames, e => e.stored === null || e.stored === undefined ? null : Math.max(0, now - e.stored)));
        const stale = entries.filter(e => !(e.fresh > now)).length;
        bars("freshness", [["stale now", stale, "stale"],
          ...bins(times, timeNames.map(n => n.replace("under", "in under").replace("to", "in").replace("more", "later")), e => e.fresh > now ? e.fresh - now : null)]);

        function drawRatio() {
          const box = el("ratio");
          if (!data.loads.length) { make("p", "No events were kept: a program that keeps an EventLog of its cache shows its hit ratio here.", box); return; }
          const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
          svg.setAttribute("viewBox", "0 0 600 180"); svg.setAttribute("role", "img");
          const add = (name, attributes, text) => {
            const node = document.createElementNS(ns, name);
            for (const key in attributes) node.setAttribute(key, attributes[key]);
            if (text) node.textContent = text;
            svg.append(node);
          };
          const first = data.loads[0].at, last = data.loads[data.loads.length - 1].at, width = Math.max(1, last - first);
          for (const percent of [0, 50, 100]) {
            const y = 155 - 1.4 * percent;
            add("line", { x1: 40, x2: 600, y1: y, y2: y });
            add("text", { x: 34, y: y + 4, "text-anchor": "end" }, percent + " %");
          }
          for (const l of data.loads) {
            const height = 140 * l.hits / l.all;
            add("rect", { x: 42 + 545 * (l.at - first) / width, y: 155 - height, width: 8, height });
          }
          add("text", { x: 40, y: 174 }, new Date(first * 1000).toLocaleTimeString());
          add("text", { x: 600, y: 174, "text-anchor": "end" }, new Date(last * 1000).toLocaleTimeString());
          box.append(svg);
        }
        drawRatio();

        const columns = [
          ["URL", e => e.u, e => e.u], ["status", e => e.s || 0, e => e.s || "-"], ["type", e => e.t, e => e.t],
          ["size", e => e.b, e => bytes(e.b)], ["stored", e => e.stored || 0, e => e.stored ? span(now - e.stored) + " ago" : "-"],
          ["used", e => e.used || 0, e => e.used ? span(now - e.used) + " ago" : "-"],
          ["fresh", e => e.fresh || 0, e => e.fresh > now ? span(e.fresh - now) : "stale"], ["pinned", e => e.pin ? 1 : 0, e => e.pin ? "yes" : ""],
        ];
        let order = 5, isDescending = true, limit = 200;
        for (const [index, [title]] of columns.entries()) {
          make("th", title, el("titles")).addEventListener("click", () => {
            isDescending = order === index ? !isDescending : index > 2;
            order = index; limit = 200; fill();
          });
        }
        function fill() {
          const words = el("search").value.toLowerCase().split(/\s+/).filter(Boolean), value = columns[order][1];
          const found = entries.filter(e => { const text = (e.u + " " + e.t + " " + e.s).toLowerCase(); return words.every(w => text.includes(w)); });
          found.sort((a, b) => { const [p, q] = [value(a), value(b)]; return (p < q ? -1 : p > q ? 1 : 0) * (isDescending ? -1 : 1); });
          const rows = document.createDocumentFragment();
          for (const e of found.slice(0, limit)) {
            const row = make("tr", null, rows);
            for (const [title, , text] of columns) make("td", text(e), row, title === "fresh" && !(e.fresh > now) ? "old" : "");
          }
          el("rows").replaceChildren(rows);
          el("count").textContent = found.length.toLocaleString("en") + " of " + entries.length.toLocaleString("en") + " entries, "
            + bytes(found.reduce((sum, e) => sum + e.b, 0));
          el("more").hidden = found.length <= limit;
        }
        el("search").addEventListener("input", () => { limit = 200; fill(); });
        el("more").addEventListener("click", () => { limit += 1000; fill(); });
        fill();
        document.body.dataset.ready = "yes";
        """#
}
