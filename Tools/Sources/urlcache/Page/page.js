// Text from origins (URLs, header values) gets into the page by textContent only.
const el = id => document.getElementById(id);
const make = (tag, text, parent, className) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (className) node.className = className;
  if (tag === "button") node.type = "button";
  if (parent) parent.append(node);
  return node;
};
const count = n => Math.round(n).toLocaleString("en");
const many = (n, one, more) => count(n) + " " + (n === 1 ? one : more);
const bytes = n => {
  if (n < 1024) return Math.round(n) + " B";
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
  if (s < 730 * 86400) return Math.round(s / 86400) + " d";
  return s < 1e10 ? Math.round(s / 31557600) + " y" : "for ever";
};
const percent = (part, all) => all ? (100 * part / all).toFixed(part && part < all && (100 * part / all < 1 || 100 * part / all > 99) ? 1 : 0) + " %" : "–";
const summary = data.summary, log = data.log, columns = data.entries, now = data.writtenAt;

// One object for each entry, out of the columns and string tables.
const entries = columns.host.map((host, i) => ({
  id: i, host: data.hosts[host], path: data.folders[columns.folder[i]] + columns.leaf[i], leaf: columns.leaf[i], status: columns.status[i], type: data.types[columns.type[i]],
  b: columns.bytes[i], d: columns.disk[i], n: 1, age: columns.age[i], stored: columns.stored[i], used: columns.used[i], left: columns.left[i], pin: columns.pinned[i] === 1,
  variant: columns.variant[i], variants: columns.variants[i], vary: data.vary[columns.vary[i]], tags: columns.tags[i] < 0 ? "" : data.tags[columns.tags[i]],
}));
for (const e of entries) {
  e.isFresh = e.left !== null && e.left > 0; e.url = e.host + e.path; e.at = e.stored === null ? null : now - e.stored;
  e.folders = e.path.split("?")[0].split("/").slice(1, -1);
}
const isEmpty = !entries.length;

// What the page is about: all, or the entries and loads of a host, or of a time.
const only = { host: "", from: -Infinity, to: Infinity };
const isFiltered = () => only.host !== "" || only.from > -Infinity || only.to < Infinity;
let shown = entries;
/// The sums of the loads that are shown, and their spans of time.
function loadsShown() {
  const sum = { loads: 0, hits: 0, revalidated: 0, bytes: 0, saved: 0, spans: [] };
  if (!log) return sum;
  const series = log.series.find(s => (s.host || "") === only.host);
  for (const [i, place] of (series ? series.at : []).entries()) {
    const at = log.from + place * log.width;
    if (at + log.width <= only.from || at > only.to) continue;
    const span = { at, hits: series.hits[i], revalidated: series.revalidated[i], others: series.others[i], bytes: series.bytes[i], saved: series.saved[i] };
    sum.loads += span.hits + span.revalidated + span.others; sum.hits += span.hits; sum.revalidated += span.revalidated;
    sum.bytes += span.bytes; sum.saved += span.saved; sum.spans.push(span);
  }
  return sum;
}
let loads = loadsShown();

// Colours that carry white text (4.5:1 and more).
const palette = ["#2360b0", "#9a4a14", "#19694d", "#7a44aa", "#7a5f00", "#a5305f", "#2c6a7c", "#596275"];
const types = data.types.map((name, i) => ({ name, i, d: 0, n: 0 }));
for (const i of columns.type.keys()) { types[columns.type[i]].d += columns.disk[i]; types[columns.type[i]].n++; }
types.sort((a, b) => b.d - a.d);
const typeRank = new Map(types.map((t, i) => [t.name, i]));
const modes = {
  type: { of: e => palette[Math.min(typeRank.get(e.type), 7)], legend: () => [...types.slice(0, 7).map((t, i) => [t.name, palette[i]]), ...(types.length > 7 ? [["other types", palette[7]]] : [])] },
  fresh: { of: e => e.pin ? "#7a44aa" : e.isFresh ? "#19694d" : "#9a4a14", legend: () => [["fresh", "#19694d"], ["stale", "#9a4a14"], ["pinned", "#7a44aa"]] },
  status: { of: e => statusColour(e.status), legend: () => [["2xx success", palette[0]], ["3xx redirection", palette[3]], ["4xx client error", palette[1]], ["5xx server error", palette[5]], ["not HTTP", palette[7]]] },
};
function statusColour(s) { return { 2: palette[0], 3: palette[3], 4: palette[1], 5: palette[5] }[Math.floor(s / 100)] || palette[7]; }

// ——— Head
el("where").textContent = data.directory + " · " + new Date(now * 1000).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
el("whyline").textContent = "urlcache why " + data.directory + " https://… --load";
document.body.classList.toggle("isempty", isEmpty);
if (isEmpty) { el("empty").hidden = false; for (const node of document.querySelectorAll(".filled")) node.hidden = true; }

function svgNode(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}
function head() {
  const part = loads.loads ? loads.hits + loads.revalidated : shown.filter(e => e.isFresh).length, all = loads.loads || shown.length;
  const box = el("ring"); box.replaceChildren();
  const svg = svgNode("svg", { viewBox: "0 0 120 120", "aria-hidden": "true" }, box), length = 2 * Math.PI * 52;
  svgNode("circle", { cx: 60, cy: 60, r: 52, fill: "none", stroke: "var(--line)", "stroke-width": 12 }, svg);
  if (part) svgNode("circle", { cx: 60, cy: 60, r: 52, fill: "none", stroke: "var(--bar)", "stroke-width": 12, "stroke-linecap": "round", "stroke-dasharray": length * part / all + " " + length, transform: "rotate(-90 60 60)" }, svg);
  const text = make("div", null, box);
  make("b", percent(part, all), text); make("span", loads.loads ? "hit ratio" : "fresh", text);
  el("tiles").replaceChildren();
  const tile = (value, name) => { const group = make("div", null, el("tiles")); make("dt", name, group); make("dd", value, group); };
  const hosts = new Set(shown.map(e => e.host.replace(/^https?:\/\//, ""))).size, sum = key => shown.reduce((total, e) => total + e[key], 0);
  const fresh = shown.filter(e => e.isFresh).length, pinned = shown.filter(e => e.pin).length;
  tile(count(shown.length), shown.length === 1 ? "entry" : "entries");
  tile(bytes(sum("d")), "on disk");
  tile(count(fresh), "fresh now");
  const besides = [many(hosts, "host", "hosts"), `${count(shown.length - fresh)} stale`, `${bytes(sum("b"))} of bodies`];
  if (pinned) besides.push(`${count(pinned)} pinned`);
  if (!isFiltered()) {
    besides.push(`${bytes(summary.overhead)} for folders and index`);
    if (summary.damaged) besides.push(`${count(summary.damaged)} damaged: see urlcache verify`);
    if (summary.unknownURLs) besides.push(`${count(summary.unknownURLs)} without URL: not kept on disk`);
    if (summary.index !== "valid") besides.push("the index is " + summary.index);
  }
  el("besides").textContent = besides.join(" · ");
  el("evicted").hidden = !(log && log.evictions) || isFiltered();
  if (el("evicted").hidden) return;
  el("evicted").textContent = `${many(log.evictions, "entry was", "entries were")} evicted for want of room. How much would help: `;
  make("code", "urlcache simulate " + data.directory, el("evicted"));
}

// ——— Savings
function won() {
  const box = el("won"); box.replaceChildren();
  el("whys").hidden = !loads.loads;
  if (!log || !log.loads) {
    make("p", log ? "The event log holds no load yet: load something through a session that uses the cache." : "Hits, bytes and time saved are known if the program holds an event log. It is one line:", box);
    if (log) return;
    make("pre", "let log = DiskURLCache.EventLog(cache)", box);
    make("p", "Then this page shows the hit ratio over time, the most frequent misses with their reasons, and the reasons for which responses were not stored. The log is in the cache’s folder, with mode 0600.", box, "hint");
    return;
  }
  if (!loads.loads) { make("p", only.host && log.series.length > 60 && !log.series.some(s => s.host === only.host) ? "This page has the loads of the 60 busiest hosts, and of all together." : "The log has no load of this host and time.", box); return; }
  const big = make("div", null, box, "big");
  const number = (value, name) => { const group = make("div", null, big); make("b", value, group); make("span", name, group); };
  number(count(loads.hits + loads.revalidated), `of ${many(loads.loads, "load", "loads")} were answered from the cache: ${count(loads.hits)} without a request, ${count(loads.revalidated)} after a 304`);
  number(bytes(loads.bytes), "of bodies did not cross the network");
  if (!log.hasEstimate) number("–", "less waiting: unknown without a miss to compare with");
  // Less than a second is no gain that anybody notices.
  else if (loads.saved >= 1000) number(span(loads.saved / 1000), "less waiting, an estimate");
  const chart = make("div", null, box); chart.id = "ratiobox";
  const key = make("ul", null, box, "key");
  for (const [colour, name, line] of [["var(--bar)", "without a request"], ["var(--soft-bar)", "after a 304"], ["var(--other)", "network, bypassed, failed"], ["var(--bad)", "hit ratio", true]]) {
    const item = make("li", null, key), mark = make("i", null, item, line ? "line" : ""); mark.style.background = colour; item.append(name);
  }
  make("p", "The hit ratio is the share of the loads that were answered from the cache: fresh, stale where a setting allowed it, or after a 304.", box, "hint");
  if (log.hasEstimate && loads.saved >= 1000) make("p", "Less waiting: if each answer without a request had taken as long as an answer of its host from the network takes on average, something would have been on its way for so much longer. Loads at the same time count once.", box, "hint");
  drawRatio();
}
/// Round times between two times, in the reader's time zone, at most so many.
function ticks(from, to, most) {
  const step = [1, 5, 15, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000].find(s => (to - from) / s <= most) || 315360000;
  const time = new Date(from * 1000), places = [];
  time.setHours(0, 0, 0, 0);
  while (time / 1000 <= to) {
    if (time / 1000 >= from) places.push(time / 1000);
    if (step < 86400) time.setSeconds(time.getSeconds() + step); else time.setDate(time.getDate() + step / 86400);
  }
  return { step, places };
}
const inWords = (time, style) => new Date(time * 1000).toLocaleString("en-GB", style);
function drawRatio() {
  const box = el("ratiobox");
  if (!box) return;
  const spans = loads.spans, width = box.clientWidth, height = 246, left = 44, right = 44, top = 22, bottom = 36, w = width - left - right, h = height - top - bottom;
  const first = Math.max(spans[0].at, log.from), last = spans[spans.length - 1].at + log.width, total = last - first;
  const most = Math.max(1, ...spans.map(s => s.hits + s.revalidated + s.others)), place = time => left + w * (time - first) / total;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone, long = { dateStyle: "long", timeStyle: "short" };
  const svg = svgNode("svg", { id: "ratio", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Hit ratio from ${inWords(first, long)} to ${inWords(last, long)}: ${percent(loads.hits + loads.revalidated, loads.loads)} of ${count(loads.loads)} loads` });
  svgNode("text", { x: 0, y: 12 }, svg, `loads in ${span(log.width)}`);
  svgNode("text", { x: width, y: 12, "text-anchor": "end" }, svg, "hit ratio");
  for (const part of [0, .5, 1]) {
    const y = top + h * (1 - part);
    svgNode("line", { x1: left, x2: left + w, y1: y, y2: y, class: "grid" }, svg);
    if (most * part === Math.round(most * part)) svgNode("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, svg, count(most * part));
    svgNode("text", { x: left + w + 6, y: y + 4 }, svg, 100 * part + " %");
  }
  const points = [], step = w * log.width / total;
  for (const s of spans) {
    const all = s.hits + s.revalidated + s.others, x = place(s.at);
    let y = top + h;
    const group = svgNode("g", {}, svg);
    svgNode("title", {}, group, `${inWords(s.at, { dateStyle: "medium", timeStyle: log.width < 60 ? "medium" : "short" })}: ${many(all, "load", "loads")}, ${percent(s.hits + s.revalidated, all)} from the cache, ${bytes(s.bytes)} saved`);
    for (const [value, colour] of [[s.hits, "var(--bar)"], [s.revalidated, "var(--soft-bar)"], [s.others, "var(--other)"]]) {
      if (!value) continue;
      const size = h * value / most; y -= size;
      svgNode("rect", { x: x + step * .1, y, width: Math.max(1, step * .8), height: size, fill: colour }, group);
    }
    points.push([x + step / 2, top + h * (1 - (s.hits + s.revalidated) / all)]);
  }
  svgNode("polyline", { points: points.map(p => p.map(v => v.toFixed(1)).join(",")).join(" "), fill: "none", stroke: "var(--bad)", "stroke-width": 2, "stroke-linejoin": "round" }, svg);
  if (points.length < 25) for (const [x, y] of points) svgNode("circle", { cx: x, cy: y, r: 3, fill: "var(--bad)" }, svg);
  // Time of day above, and the day below where it begins.
  const marks = ticks(first, last, Math.max(2, Math.floor(w / 72))), isDays = marks.step >= 86400;
  const year = inWords(first, { year: "numeric" }) === inWords(now, { year: "numeric" }) ? {} : { year: "numeric" }, dayStyle = { day: "numeric", month: "short", ...year };
  let day = "";
  for (const time of marks.places) {
    const x = place(time), name = inWords(time, dayStyle), anchor = { "text-anchor": x < left + 24 ? "start" : x > left + w - 24 ? "end" : "middle" };
    svgNode("line", { x1: x, x2: x, y1: top + h, y2: top + h + 4, class: "grid" }, svg);
    svgNode("text", { x, y: height - 20, class: "tick", ...anchor }, svg, isDays ? name : inWords(time, { timeStyle: marks.step < 60 ? "medium" : "short" }));
    if (!isDays && name !== day) svgNode("text", { x, y: height - 6, class: "tick", ...anchor }, svg, name);
    day = name;
  }
  const between = make("p", `${inWords(first, long)} to ${inWords(last, long)}, in the time zone ${zone}.`, null, "hint"); between.id = "between";
  box.replaceChildren(svg, between);
}

// ——— Treemap: hosts, the folders of their paths, their URLs. A host that has all is left out.
const sizeOf = node => node[el("areaby").value];
function tree() {
  const hosts = grouped(shown, e => e.host);
  if (hosts.length === 1) return folder(hosts[0][0] + "/", hosts[0][1], 0);
  return bundle("All hosts", hosts.map(([name, list]) => folder(name, list, 0)));
}
function grouped(list, key) {
  const groups = new Map();
  for (const e of list) { const name = key(e); if (!groups.has(name)) groups.set(name, []); groups.get(name).push(e); }
  return [...groups];
}
/// The entries below a folder of a URL's path. Folders with one folder in them have one name.
function folder(name, list, depth) {
  for (;;) {
    const folders = grouped(list.filter(e => e.folders.length > depth), e => e.folders[depth]), leaves = list.filter(e => e.folders.length <= depth);
    if (folders.length !== 1 || leaves.length) {
      const children = folders.map(([next, list]) => folder(next + "/", list, depth + 1));
      return bundle(name, [...children, ...leaves.map(e => ({ name: e.leaf || "/", entry: e, d: Math.max(e.d, 1), n: 1, b: e.b }))]);
    }
    name = name.replace(/\/?$/, "/") + folders[0][0] + "/"; depth++;
  }
}
/// Too many children to be seen: the smallest share boxes, none of which is larger than the largest child where that is possible. One box is
/// "smaller" ones; of several each has the names from one to another.
function bundle(name, children) {
  const sum = list => ({ d: list.reduce((t, c) => t + c.d, 0), n: list.reduce((t, c) => t + c.n, 0), b: list.reduce((t, c) => t + c.b, 0) });
  const node = { name, ...sum(children) }, limit = innerWidth > 700 ? 90 : 40;
  children.sort((a, b) => sizeOf(b) - sizeOf(a));
  if (children.length > limit) {
    const size = list => list.reduce((total, child) => total + sizeOf(child), 0), most = sizeOf(children[0]);
    let boxes = 1;
    while (boxes < limit / 2 && size(children.slice(limit - boxes)) > boxes * most) boxes++;
    const rest = children.splice(limit - boxes);
    if (boxes === 1) {
      const what = rest[0].entry ? "smaller entries" : "smaller groups";
      children.push({ ...bundle(count(rest.length) + " " + what, rest), isRest: true });
    } else {
      rest.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
      for (let box = 0; box < boxes; box++) {
        const part = rest.slice(Math.round(rest.length * box / boxes), Math.round(rest.length * (box + 1) / boxes));
        children.push({ ...bundle(`${part[0].name} … ${part[part.length - 1].name}`, part), isRest: true });
      }
    }
  }
  return Object.assign(node, { children });
}
/// Squarified: a row grows along the shorter side while its boxes become less elongated.
function squarify(items, x, y, w, h) {
  // A group of small entries may be larger than the entry before it in the list.
  items = [...items].sort((a, b) => sizeOf(b) - sizeOf(a));
  const total = items.reduce((sum, item) => sum + sizeOf(item), 0), places = [];
  if (!total || w <= 0 || h <= 0) return places;
  const scale = w * h / total, worst = (sum, max, min, side) => Math.max(side * side * max / (sum * sum), sum * sum / (side * side * min));
  for (let start = 0; start < items.length;) {
    const side = Math.min(w, h);
    let end = start, sum = 0, best = Infinity;
    while (end < items.length) {
      const area = sizeOf(items[end]) * scale, next = worst(sum + area, sizeOf(items[start]) * scale, area, side);
      if (next > best) break;
      best = next; sum += area; end++;
    }
    const depth = side > 0 ? sum / side : 0;
    let offset = 0;
    for (const item of items.slice(start, end)) {
      const length = depth > 0 ? sizeOf(item) * scale / depth : 0;
      places.push(w < h ? [item, x + offset, y, length, depth] : [item, x, y + offset, depth, length]);
      offset += length;
    }
    if (w < h) { y += depth; h -= depth; } else { x += depth; w -= depth; }
    start = end;
  }
  return places;
}
let trail = [];
const nodeText = node => node.entry ? `${node.entry.url}, ${bytes(node.b)}` : `${node.name}: ${many(node.n, "entry", "entries")}, ${bytes(node.d)} on disk`;
function leading(node) {
  // The colour of the largest part.
  const sums = new Map(), colour = modes[el("colourby").value].of;
  (function add(n) { if (n.entry) { const c = colour(n.entry); sums.set(c, (sums.get(c) || 0) + sizeOf(n)); } else n.children.forEach(add); })(node);
  return [...sums].sort((a, b) => b[1] - a[1])[0][0];
}
function put(node, top, parent, level, x, y, w, h) {
  if (w < 2.2 || h < 2.2) return;
  const box = make(level ? "div" : "button", null, parent), opens = !node.entry && level < 2 && w > 54 && h > 44;
  box.className = opens ? (level ? "group inner" : "group") : "tile";
  Object.assign(box.style, { left: x + .5 + "px", top: y + .5 + "px", width: Math.max(1, w - 1) + "px", height: Math.max(1, h - 1) + "px" });
  box.node = node; box.top = top;
  if (!level) box.setAttribute("aria-label", nodeText(node) + (node.entry ? "" : ", opens"));
  if (!opens) box.style.background = node.entry ? modes[el("colourby").value].of(node.entry) : leading(node);
  if (w > 46 && h > 19) make("span", node.name, box, "name");
  if (!opens) { if (w > 60 && h > 38) make("span", bytes(node.d), box, "more"); return; }
  const head = 19;
  for (const [child, cx, cy, cw, ch] of squarify(node.children, 2, head, w - 5, h - head - 3)) put(child, top, box, level + 1, cx, cy, cw, ch);
}
function drawTreemap(focus) {
  if (!trail.length) { for (const id of ["treemap", "crumbs", "largest", "legend", "detail", "sidetitle"]) el(id).replaceChildren(); return; }
  const node = trail[trail.length - 1], map = el("treemap"), fragment = document.createDocumentFragment();
  for (const [child, x, y, w, h] of squarify(node.children, 0, 0, map.clientWidth, map.clientHeight)) put(child, child, fragment, 0, x, y, w, h);
  map.replaceChildren(fragment);
  [...map.children].forEach((box, i) => { box.tabIndex = i ? -1 : 0; });
  if (focus && map.firstChild) map.firstChild.focus();
  const crumbs = el("crumbs"); crumbs.replaceChildren();
  trail.forEach((step, i) => {
    if (i) { const mark = make("span", "›", crumbs, "sep"); mark.setAttribute("aria-hidden", "true"); }
    if (i === trail.length - 1) make("span", step.name, crumbs).setAttribute("aria-current", "location");
    else make("button", step.name, crumbs).addEventListener("click", () => { trail = trail.slice(0, i + 1); open(true); });
  });
  el("sidetitle").textContent = `${many(node.n, "entry", "entries")}, ${bytes(node.d)} on disk`;
  const list = el("largest"), most = sizeOf(node.children[0]); list.replaceChildren();
  for (const child of node.children.slice(0, 12)) {
    const button = make("button", null, make("li", null, list)), line = make("span", null, button, "name");
    make("span", child.name, line); make("span", el("areaby").value === "n" ? count(child.n) : bytes(child.d), line);
    const bar = make("i", null, make("span", null, button, "meter")); bar.style.width = 100 * sizeOf(child) / most + "%";
    bar.style.background = child.entry ? modes[el("colourby").value].of(child.entry) : leading(child);
    button.addEventListener("click", () => enter(child));
  }
  if (node.children.length > 12) make("li", `and ${count(node.children.length - 12)} more in the picture`, list, "hint");
  const legend = el("legend"); legend.replaceChildren();
  for (const [name, colour] of modes[el("colourby").value].legend()) { const item = make("li", null, legend); make("i", null, item).style.background = colour; item.append(name); }
}
function open(focus) {
  const map = el("treemap");
  map.classList.remove("open"); void map.offsetWidth; map.classList.add("open");
  el("detail").replaceChildren(); drawTreemap(focus);
}
function enter(node, focus) {
  if (node.entry) return tell(node.entry);
  trail.push(node);
  // A group with one group in it offers no choice.
  while (trail[trail.length - 1].children.length === 1 && !trail[trail.length - 1].children[0].entry) trail.push(trail[trail.length - 1].children[0]);
  open(focus);
}
function facts(e) {
  return [["status", e.status || "not HTTP"], ["type", e.type], ["size", `${count(e.b)} bytes, ${bytes(e.d)} on disk`], ["age", e.age === null ? "unknown" : span(e.age)], ["stored", e.stored === null ? "unknown" : span(e.stored) + " ago"], ["last used", e.used === null ? "unknown" : span(e.used) + " ago"],
    ["fresh", freshText(e)], ...(e.variants > 1 ? [["variant", `${e.variant} of ${e.variants}`]] : []), ...(e.vary ? [["selected by", e.vary]] : []), ...(e.tags ? [["tags", e.tags]] : []), ...(e.pin ? [["pinned", "yes"]] : [])];
}
const freshText = e => e.left === null ? "no: it has no lifetime" : e.left > 0 ? "for " + span(e.left) : "no, stale for " + span(e.left);
function tell(e) {
  const box = el("detail"); box.replaceChildren();
  make("p", e.url, box);
  const list = make("dl", null, box, "facts");
  for (const [name, value] of facts(e)) { make("dt", name, list); make("dd", value, list); }
}
/// What a box is as large as; and if a few entries take nearly all of it, how to see the others.
function tellArea() {
  const isBytes = el("areaby").value === "d", box = el("area");
  box.textContent = isBytes ? "A box is as large as what it takes on disk." : "A box is as large as the number of its entries.";
  const sizes = shown.map(e => e.d).sort((a, b) => b - a), all = sizes.reduce((sum, d) => sum + d, 0);
  let few = 0, part = 0;
  while (few < sizes.length && part < .8 * all) part += sizes[few++];
  if (!isBytes || !all || few > sizes.length / 20) return;
  box.append(` ${many(few, "entry takes", "entries take")} ${percent(part, all)} of it. `);
  make("button", "Show the number of entries instead", box, "linklike").addEventListener("click", () => { el("areaby").value = "n"; rebuild(); open(); });
}
const rebuild = () => {
  tellArea();
  trail = shown.length ? [tree()] : [];
  if (trail.length && trail[0].children.length === 1 && !trail[0].children[0].entry) trail.push(trail[0].children[0]);
};
el("treemap").addEventListener("click", event => { const box = event.target.closest("button"); if (box) enter(box.node, event.detail === 0); });
el("treemap").addEventListener("keydown", event => {
  const boxes = [...el("treemap").children], at = boxes.indexOf(document.activeElement), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step && at >= 0) { event.preventDefault(); const next = boxes[Math.min(Math.max(at + step, 0), boxes.length - 1)]; boxes[at].tabIndex = -1; next.tabIndex = 0; next.focus(); if (next.node.entry) tell(next.node.entry); }
  if (event.key === "Escape" && trail.length > 1) { trail.pop(); open(true); }
});
el("treemap").addEventListener("pointermove", event => {
  const box = event.target.closest(".tile, .group"), tip = el("tip");
  tip.hidden = !box || event.pointerType === "touch";
  if (tip.hidden) return;
  tip.textContent = nodeText(box.node);
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (event.clientY + 22 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
});
el("treemap").addEventListener("pointerleave", () => { el("tip").hidden = true; });
el("areaby").addEventListener("change", () => { rebuild(); open(); });
el("colourby").addEventListener("change", () => drawTreemap());

// ——— Bars
function bars(box, rows, isRight) {
  box.classList.add("chart"); box.replaceChildren();
  // A row for many groups sets no measure for the other rows.
  const most = Math.max(1, ...rows.filter(r => !r.isRest).map(r => r.value));
  for (const row of rows) {
    const label = make("span", row.press ? null : row.name, box, "label" + (isRight ? " right" : ""));
    if (row.press) make("button", row.name, label).addEventListener("click", row.press);
    const bar = make("div", null, box, row.value && !row.isRest ? "bar" : "bar none"); bar.style.width = row.isRest ? "0" : 100 * row.value / most + "%";
    if (row.colour && row.value) bar.style.background = row.colour;
    make("span", row.text, box);
  }
}
const groups = key => {
  const found = new Map();
  for (const e of shown) { const name = key(e), g = found.get(name) || { name, n: 0, d: 0, fresh: 0 }; g.n++; g.d += e.d; if (e.isFresh) g.fresh++; found.set(name, g); }
  return [...found.values()].sort((a, b) => b.d - a.d);
};
function restOf(list, limit, what) {
  if (list.length <= limit) return list;
  const rest = list.slice(limit - 1);
  return [...list.slice(0, limit - 1), { name: `${count(rest.length)} more ${what}`, n: rest.reduce((s, g) => s + g.n, 0), d: rest.reduce((s, g) => s + g.d, 0), isRest: true }];
}
const choose = (name, test) => () => { chosen = { name, test }; limit = page; fill(); el("entries").scrollIntoView(); el("search").focus({ preventScroll: true }); };
function groupBars() {
  el("statuses").replaceChildren();
  for (const g of groups(e => e.status).sort((a, b) => a.name - b.name)) {
    const button = make("button", null, el("statuses")); make("i", null, button).style.background = statusColour(g.name);
    button.append(`${g.name || "not HTTP"} · ${count(g.n)}`);
    button.addEventListener("click", choose("status " + (g.name || "none"), e => e.status === g.name));
  }
  bars(el("types"), restOf(groups(e => e.type), 9, "types").map(g => ({ name: g.name, value: g.d, isRest: g.isRest, text: `${bytes(g.d)} · ${count(g.n)}`, colour: g.isRest ? palette[7] : palette[Math.min(typeRank.get(g.name), 7)], press: g.isRest ? null : choose(g.name, e => e.type === g.name) })));
}
const times = [60, 600, 3600, 21600, 86400, 604800, 2592000, Infinity];
const within = (value, limits) => limits.findIndex(limit => value < limit);
el("expiryhint").textContent = "By the responses’ own fields and the standard heuristic" + (data.rules ? ", and by the rules in " + data.rules + "." : "; the rules of the app count with --rules FILE.");
function expiry() {
  const names = ["within 1 min", "within 10 min", "within 1 h", "within 6 h", "within 1 day", "within 7 days", "within 30 days", "later"];
  const rows = [{ name: "stale now", value: 0, d: 0, colour: "var(--bad)", test: e => !e.isFresh }, ...names.map((name, i) => ({ name, value: 0, d: 0, test: e => e.isFresh && within(e.left, times) === i }))];
  for (const e of shown) { const row = rows[e.isFresh ? 1 + within(e.left, times) : 0]; row.value++; row.d += e.d; }
  bars(el("expiry"), rows.map(r => ({ ...r, text: r.value ? `${count(r.value)} · ${bytes(r.d)}` : "0", press: r.value ? choose(r.name, r.test) : null })), true);
}
function heat() {
  el("heat").replaceChildren();
  const sizes = [1024, 10240, 102400, 1048576, 10485760, Infinity], sizeNames = ["< 1 KB", "< 10 KB", "< 100 KB", "< 1 MB", "< 10 MB", "more"];
  const ages = [60, 3600, 86400, 604800, 2592000, Infinity], ageNames = ["< 1 min", "< 1 h", "< 1 day", "< 7 days", "< 30 days", "older"];
  const cells = sizes.map(() => ages.map(() => 0)), place = e => e.age === null ? null : [within(e.b, sizes), within(e.age, ages)];
  for (const e of shown) { const p = place(e); if (p) cells[p[0]][p[1]]++; }
  const most = Math.max(1, ...cells.flat()), table = make("table", null, el("heat")), head = make("tr", null, make("thead", null, table)), body = make("tbody", null, table);
  make("td", "", head);
  for (const name of ageNames) make("th", name, head).scope = "col";
  for (let s = sizes.length - 1; s >= 0; s--) {
    const row = make("tr", null, body); make("th", sizeNames[s], row).scope = "row";
    cells[s].forEach((n, a) => {
      const cell = make("td", null, row);
      if (!n) return make("span", "", cell);
      const button = make("button", count(n), cell), name = `${sizeNames[s]}, ${ageNames[a]} old`;
      button.style.background = `color-mix(in srgb, var(--bar) ${Math.round(8 + 40 * Math.log1p(n) / Math.log1p(most))}%, var(--card))`;
      button.setAttribute("aria-label", `${many(n, "entry", "entries")}: ${name}`);
      button.addEventListener("click", choose(name, e => { const p = place(e); return p && p[0] === s && p[1] === a; }));
    });
  }
}

// ——— Why
function whys() {
  el("misses").replaceChildren(); el("refusals").replaceChildren();
  if (!loads.loads) return;
  const list = (box, rows, none, add) => { if (!rows.length) return make("p", none, box, "hint"); const ul = make("ul", null, box, "list"); for (const row of rows.slice(0, 12)) add(row, make("li", null, ul)); };
  const isHere = row => !only.host || row.host === only.host;
  if (only.from > -Infinity || only.to < Infinity) for (const id of ["misses", "refusals"]) make("p", "Of the whole log: this is not known by time.", el(id), "hint");
  list(el("misses"), log.topMisses.filter(isHere), "No load needed a request.", (m, li) => {
    make("div", m.url, li, "url"); make("b", many(m.count, "miss", "misses"), li);
    make("span", `, ${m.seconds < 10 ? m.seconds.toFixed(1) + " s" : span(m.seconds)} waited, ${bytes(m.bytes)} · ${m.reason}`, li, "why");
  });
  const reasons = new Map();
  for (const r of log.refusals.filter(isHere)) { const sum = reasons.get(r.reason) || { ...r, count: 0 }; sum.count += r.count; reasons.set(r.reason, sum); }
  list(el("refusals"), [...reasons.values()].sort((a, b) => b.count - a.count), "Each response from the network was stored.", (r, li) => {
    make("b", count(r.count) + " × ", li); make("span", r.reason, li); make("div", "such as " + r.url, li, "url why");
  });
}

// ——— Table
const titles = [
  { title: "URL", of: e => e.url }, { title: "Status", of: e => e.status, isNumber: true }, { title: "Type", of: e => e.type }, { title: "Size", of: e => e.b, isNumber: true },
  { title: "Age", of: e => e.age, isNumber: true }, { title: "Used", of: e => e.used }, { title: "Fresh", of: e => e.left === null ? -1e15 : e.left, isNumber: true }, { title: "Variant", of: e => e.variants > 1 ? e.variants : 0, isNumber: true },
];
const page = 50;
let order = 3, isDescending = true, limit = page, chosen = null;
for (const [index, column] of titles.entries()) {
  const head = make("th", null, el("titles")), button = make("button", null, head), mark = make("span", "", null, "arrow");
  head.scope = "col"; mark.setAttribute("aria-hidden", "true");
  // Beside the title, on the side with room in the column.
  button.append(...(index ? [mark, column.title] : [column.title, mark]));
  button.addEventListener("click", () => sort(index, order === index ? !isDescending : !!column.isNumber));
  make("option", column.title.toLowerCase(), el("sortby")).value = index;
}
function sort(index, descending) { order = index; isDescending = descending; limit = page; fill(); }
function fill() {
  const search = el("search").value.toLowerCase().split(/\s+/).filter(Boolean), value = titles[order].of;
  const found = shown.filter(e => {
    if (chosen && !chosen.test(e)) return false;
    if (!search.length) return true;
    const text = `${e.url} ${e.type} ${e.status} ${e.isFresh ? "fresh" : "stale"} ${e.pin ? "pinned" : ""} ${e.tags}`.toLowerCase();
    return search.every(word => text.includes(word));
  });
  const turn = isDescending ? -1 : 1;
  found.sort((a, b) => { const p = value(a), q = value(b); return (p < q ? -1 : p > q ? 1 : 0) * turn || a.id - b.id; });
  const rows = document.createDocumentFragment();
  for (const e of found.slice(0, limit)) {
    const row = make("tr", null, rows), url = make("td", null, row), cell = (text, className, title) => { const td = make("td", text, row, className); if (title) td.dataset.title = title; return td; };
    make("span", e.host, url, "host"); url.append(e.path + (e.pin ? " (pinned)" : ""));
    cell(e.status || "–", "status" + (e.status >= 400 ? " old" : "")); cell(e.type, "ctype"); cell(bytes(e.b), "size");
    cell(e.age === null ? "–" : span(e.age), "rest", "age"); cell(e.used === null ? "–" : span(e.used) + " ago", "rest", "used");
    cell(e.left === null ? "no" : e.isFresh ? span(e.left) : "stale", "rest " + (e.isFresh ? "fresh" : "old"), "fresh");
    const variant = cell(null, "rest");
    if (e.variants > 1) { const mark = make("span", `${e.variant} of ${e.variants}`, variant, "variant"); mark.title = "One of several variants of this URL"; if (e.vary) make("span", " " + e.vary, variant, "host"); }
  }
  el("rows").replaceChildren(rows);
  [...el("titles").children].forEach((head, i) => {
    head.removeAttribute("aria-sort");
    if (i === order) head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    head.querySelector(".arrow").textContent = i === order ? (isDescending ? "▼" : "▲") : "";
  });
  el("sortby").value = order; el("turn").textContent = isDescending ? "▼ descending" : "▲ ascending";
  el("count").textContent = `${count(found.length)} of ${many(shown.length, "entry", "entries")}, ${bytes(found.reduce((sum, e) => sum + e.b, 0))} of bodies, ${bytes(found.reduce((sum, e) => sum + e.d, 0))} on disk` + (data.cut ? `. URLs longer than ${data.cut} characters are cut in this page.` : "");
  el("filter").replaceChildren();
  if (chosen) make("button", `Only ${chosen.name} ✕`, el("filter")).addEventListener("click", () => { chosen = null; fill(); el("search").focus(); });
  el("more").hidden = found.length <= limit;
}
el("search").addEventListener("input", () => { limit = page; fill(); });
el("sortby").addEventListener("change", () => sort(+el("sortby").value, !!titles[+el("sortby").value].isNumber));
el("turn").addEventListener("click", () => sort(order, !isDescending));
el("more").addEventListener("click", () => { limit += 500; fill(); });

// ——— Filter by host and time
function drawAll() {
  shown = isFiltered() ? entries.filter(e => (!only.host || e.host === only.host) && (only.from === -Infinity && only.to === Infinity || e.at !== null && e.at >= only.from && e.at <= only.to)) : entries;
  loads = loadsShown(); chosen = null; limit = page;
  head(); won(); rebuild(); drawTreemap(); el("detail").replaceChildren(); groupBars(); expiry(); heat(); whys(); fill();
  el("clear").hidden = !isFiltered();
  el("filtered").textContent = isFiltered() ? `${many(shown.length, "entry", "entries")} and ${many(loads.loads, "load", "loads")}. Entries count by the time when they were stored, loads by spans of ${span(log ? log.width : 1)}.` : "";
}
(function filters() {
  const hosts = [...new Set([...groups(e => e.host).map(g => g.name), ...(log ? log.series.map(s => s.host).filter(Boolean) : [])])];
  make("option", `all ${count(hosts.length)}`, el("hostfilter")).value = "";
  for (const host of hosts.slice(0, 500)) make("option", host, el("hostfilter")).value = host;
  el("hostlabel").hidden = hosts.length < 2;
  el("filters").hidden = isEmpty && !(log && log.loads);
  const time = (id, none) => { const value = el(id).value ? new Date(el(id).value) / 1000 : NaN; return Number.isFinite(value) ? value : none; };
  el("filters").addEventListener("change", () => { only.host = el("hostfilter").value; only.from = time("from", -Infinity); only.to = time("to", Infinity); drawAll(); });
  el("filters").addEventListener("submit", event => event.preventDefault());
  el("clear").addEventListener("click", () => { el("filters").reset(); Object.assign(only, { host: "", from: -Infinity, to: Infinity }); drawAll(); el("hostfilter").focus(); });
})();

drawAll();
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; rebuild(); drawTreemap(); drawRatio(); } });
document.body.dataset.ready = "yes";
