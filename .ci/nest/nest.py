#!/usr/bin/env python3
"""Nests the public types of DiskURLCache under its class, and moves what only adapters and tools need into two products.

    nest.py TREE            works on the work tree TREE (a clean checkout); run once on it
    nest.py TREE --publish  only the second half: gives `package` access to what the two products use of the library

Steps: move files, split what has to be split, rename (Swift, Markdown, .ci), format, publish.
Each edit by hand is in EDITS: it must match, otherwise the script stops and says which did not.
"""
import os, pathlib, re, subprocess, sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
CORE, TOOLS, ADAPTERS = (ROOT / "Sources" / name for name in ("DiskURLCache", "DiskURLCacheTools", "DiskURLCacheAdapters"))

TESTING = ROOT / "Sources/DiskURLCacheTesting"

# Old name: new name under the class.
NAMES = {
    "CacheRule": "Rule", "CacheTreatment": "Options", "CacheEvent": "Event", "CacheLoadReport": "Report",
    "CacheStatistics": "Statistics", "CacheError": "Error", "CacheLayer": "Layer", "KeyPolicy": "KeyPolicy",
    "CacheReason": "Reason", "CacheAnswer": "Answer",
    # Of the products.
    "CacheStream": "ResponseStream", "CacheHead": "Head", "CacheTransport": "Transport", "CacheReceiver": "Receiver",
    "EntryStorage": "EntryStorage", "CacheEntry": "Entry", "CacheInspector": "Inspector",
    # Of the product for tests.
    "StubOrigin": "StubOrigin", "TestClock": "TestClock",
}
OF_TOOLS = {"CacheInspector", "EventLog"}
OF_ADAPTERS = {"CacheStream", "CacheHead", "CacheTransport", "CacheReceiver", "EntryStorage", "CacheEntry", "StubOrigin", "TestClock"}


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, text=True, **options)


def fail(text):
    sys.exit(f"nest.py: {text}")


def texts(*suffixes, under=None):
    """The tracked files with these suffixes that exist."""
    names = run("git", "ls-files", "-co", "--exclude-standard", capture_output=True).stdout.split("\n")
    for name in names:
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink() and (not suffixes or name.endswith(suffixes)):
            if under is None or under in path.parents:
                yield path


def edit(path, old, new, count=1):
    """Replaces text in a file. A regular expression when `old` is a compiled one."""
    text = path.read_text()
    if isinstance(old, re.Pattern):
        result, n = old.subn(new, text)
    else:
        result, n = text.replace(old, new), text.count(old)
    if n < 1 or (count and n != count):
        fail(f"{path.relative_to(ROOT)}: {n} places in place of {count or 'some'} for: {getattr(old, 'pattern', old)[:200]}")
    path.write_text(result)


def move(old, new):
    new.parent.mkdir(parents=True, exist_ok=True)
    run("git", "mv", str(old.relative_to(ROOT)), str(new.relative_to(ROOT)))


def find(name, under=CORE):
    found = list(under.rglob(name))
    if len(found) != 1:
        fail(f"{len(found)} files {name}")
    return found[0]


def cut(path, start, end=None):
    """Takes the text from a line that begins with `start` (with the comment before it) to the closing brace at the same margin."""
    text = path.read_text()
    match = re.search(r"^([ ]*)" + start, text, re.M)
    if not match:
        fail(f"{path.relative_to(ROOT)}: nothing begins with {start}")
    begin = match.start()
    lines = text[:begin].split("\n")[:-1]
    while lines and (lines[-1].strip().startswith("///") or lines[-1].strip().startswith("@") or lines[-1].strip().startswith("// ")):
        begin -= len(lines.pop()) + 1
    close = re.compile(r"^" + match[1] + r"\}\n", re.M).search(text, match.end())
    if not close:
        fail(f"{path.relative_to(ROOT)}: {start} has no end")
    piece = text[begin:close.end()]
    rest = (text[:begin] + text[close.end():])
    path.write_text(re.sub(r"\n{3,}", "\n\n", rest).rstrip("\n") + "\n")
    return piece


HEADER = "import Foundation\n\n#if canImport(FoundationNetworking)\n    import FoundationNetworking\n#endif\n\n"


# 1. Files of the products.

def move_files():
    inspection = CORE / "Inspection"
    move(inspection / "CacheInspector.swift", TOOLS / "Inspector.swift")
    move(inspection / "CacheInspector+Changes.swift", TOOLS / "Inspector+Changes.swift")
    move(inspection / "CacheInspector+Record.swift", TOOLS / "Inspector+Record.swift")
    move(inspection / "EventLog.swift", TOOLS / "EventLog.swift")
    piece = cut(inspection / "Explanation.swift", r"extension CacheInspector \{")
    (TOOLS / "Inspector+Explanation.swift").write_text(HEADER + piece)

    storage = find("EntryStorage.swift")
    adapter = find("StorageAdapter.swift")
    move(storage, ADAPTERS / "EntryStorage.swift")
    move(adapter, ADAPTERS / "StorageAdapter.swift")
    storage, adapter = ADAPTERS / "EntryStorage.swift", ADAPTERS / "StorageAdapter.swift"
    entry = cut(storage, r"public struct CacheEntry")
    concerned = cut(adapter, r"extension CacheEntry \{")
    (ADAPTERS / "Entry.swift").write_text("import Foundation\n\n" + entry + "\n" + concerned)
    matches = cut(storage, r"extension EntryCriteria \{")
    message = cut(adapter, r"extension EntryCriteria \{")
    write_criteria(matches, message)
    for name, new in [("CacheTransport", "Transport"), ("CacheStream", "ResponseStream"), ("CacheHead", "Head")]:
        move(find(name + ".swift"), ADAPTERS / (new + ".swift"))
    answers = find("DiskURLCache+Answers.swift")
    load = cut(answers, r"public func load\(")
    (ADAPTERS / "DiskURLCache+Load.swift").write_text(HEADER + "extension DiskURLCache {\n" + load + "}\n")

    edit(answers, "    fileprivate func requireURL()", "    func requireURL()")
    transport = CORE / "Loading/Transport.swift"
    move(transport, CORE / "Loading/LoadTransport.swift")
    for old, new in [("CacheError.swift", "Error.swift"), ("CacheEvent.swift", "Event.swift"), ("CacheReason.swift", "Reason.swift"),
                     ("CacheLayer.swift", "Layer.swift"), ("CacheAnswer.swift", "Answer.swift"), ("Treatment.swift", "Options.swift"),
                     ("URLRequest+Treatment.swift", "URLRequest+Options.swift"),
                     ("DiskURLCache+Treatment.swift", "DiskURLCache+Options.swift")]:
        path = find(old)
        move(path, path.parent / new)


def write_criteria(matches, message):
    """The criteria that a storage sees: a value round those that the library has for itself."""
    core = find("EntryCriteria.swift")
    scope_type = cut(core, r"public enum Scope")
    scope = cut(core, r"public var scope: Scope \{")
    text = core.read_text()
    text = text.replace("public struct EntryCriteria", "struct EntryCriteria").replace("public static let", "static let")
    text = text.replace("/// A cache makes these, for its own layers and for an ``EntryStorage``.\n", "/// A cache makes these, for its own layers and for a storage of the app's.\n")
    text = text.replace("    // MARK: Where to look\n\n", "")
    core.write_text(text)

    def body(piece):
        return "\n".join(piece.strip("\n").split("\n")[1:-1])

    scope = re.sub(r"\bself\b", "criteria", scope)
    scope = re.sub(r"\bif let key \{ return \.name\(key\.digest\.hex, variant: variant\)",
                   "if let key = criteria.key { return .name(key.digest.hex, variant: criteria.variant)", scope)
    scope = re.sub(r"switch \((\w+), hostHash, tag\)", r"switch (criteria.\1, criteria.hostHash, criteria.tag)", scope)
    message_body = body(message)
    # The static func that reads a message stays one of the library's own criteria's.
    read = re.search(r"\n    /// A message that is not understood.*", message_body, re.S)
    reading = read[0]
    message_body = message_body[:read.start()]
    message_body = message_body.rstrip()
    message_body = re.sub(r"if let key \{", "if let key = criteria.key {", message_body)
    message_body = re.sub(r"guard let (\w+), self == EntryCriteria", r"guard let \1 = criteria.\1, criteria == EntryCriteria", message_body)
    matches_body = body(matches)
    matches_body = re.sub(r"if let key \{ return entry\.key == key && \(variant == nil \|\| entry\.variant == variant\) \}",
                          "if let key = criteria.key {\n            return entry.key == key && (criteria.variant == nil || entry.variant == criteria.variant)\n        }", matches_body)
    matches_body = re.sub(r"return matches\(entry\.entry", "return criteria.matches(entry.entry", matches_body)
    (ADAPTERS / "Criteria.swift").write_text(f"""import Foundation

extension DiskURLCache {{
    /// Which entries an ``EntryStorage`` is to remove: those for which every condition given holds; without a condition, all of them.
    /// A cache makes these.
    public struct Criteria: Sendable, Hashable {{
    let criteria: EntryCriteria

    init(_ criteria: EntryCriteria) {{ self.criteria = criteria }}

    /// All entries.
    public static let everything = Criteria(.everything)

{scope_type}
{scope}
{matches_body}

{message_body}
    }}
}}

// Removals, as one process tells another: a key, a URL, or everything.

extension EntryCriteria {{{reading}
}}
""")


# 2. What changes with the move.

def split():
    adapter = ADAPTERS / "StorageAdapter.swift"
    edit(adapter, re.compile(r"removeEntries\(matching: EntryCriteria\((.*?)\)\)(?= \}$|$)", re.M),
         r"removeEntries(matching: DiskURLCache.Criteria(EntryCriteria(\1)))", 0)
    edit(adapter, "removeEntries(matching: criteria)", "removeEntries(matching: DiskURLCache.Criteria(criteria))")
    edit(adapter, re.compile(r"// Removals, as one process tells another.*\n*"), "", 0) if "// Removals, as one" in adapter.read_text() else None
    text = adapter.read_text().rstrip("\n")
    adapter.write_text("import Foundation\n\n" + text + """

/// Makes the layer for a storage of the app.
struct OwnStorage: StorageMaker {
    let storage: any EntryStorage
    var isForSeveralUsers: Bool { storage.isForSeveralUsers }
    func layer(keepsURLs: Bool) -> any StorageLayer { StorageAdapter(storage, keepsURLs: keepsURLs) }
}
""")
    storage = ADAPTERS / "EntryStorage.swift"
    edit(storage, "matching criteria: EntryCriteria", "matching criteria: DiskURLCache.Criteria")
    edit(storage, "`EntryCriteria.scope`", "`DiskURLCache.Criteria.scope`", 0) if "`EntryCriteria.scope`" in storage.read_text() else None

    configuration = find("DiskURLCache+Configuration.swift")
    text = configuration.read_text()
    match = re.search(r"(?:        ///[^\n]*\n)+        public var diskStorage: \(any EntryStorage\)\?\n", text)
    if not match:
        fail("Configuration.diskStorage")
    comment = "".join(line + "\n" for line in match[0].split("\n") if "///" in line)
    configuration.write_text(text.replace(match[0], "        /// Makes a disk layer of the app's own: see `DiskURLCacheAdapters`.\n        var storageMaker: (any StorageMaker)?\n"))
    text = storage.read_text().rstrip("\n") + "\n"
    indented = comment.replace("        ///", "    ///")
    storage.write_text(text + f"""
extension DiskURLCache.Configuration {{
{indented}    public var diskStorage: (any EntryStorage)? {{
        get {{ (storageMaker as? OwnStorage)?.storage }}
        set {{ storageMaker = newValue.map {{ OwnStorage(storage: $0) }} }}
    }}
}}
""")
    layer = find("StorageLayer.swift")
    text = layer.read_text()
    layer.write_text("""/// Makes a disk layer that is not the built-in one.
protocol StorageMaker: Sendable {
    /// Whether caches of several users keep their entries in it.
    var isForSeveralUsers: Bool { get }
    func layer(keepsURLs: Bool) -> any StorageLayer
}

""" + text)
    cache = find("DiskURLCache.swift")
    edit(cache, "if let storage = configuration.diskStorage {", "if let storage = configuration.storageMaker {")
    edit(cache, "storage: (any EntryStorage)? = nil", "storage: (any StorageMaker)? = nil")
    edit(cache, "storage.map { StorageAdapter($0, keepsURLs: configuration.keepsURLs) }", "storage?.layer(keepsURLs: configuration.keepsURLs)")
    edit(find("TieredStore.swift"), re.compile(r"\bStorageAdapter\?"), "(any StorageLayer)?", 0)
    event = find("Event.swift")
    edit(event, "public internal(set) var url: URL?", "public package(set) var url: URL?")
    edit(event, "public internal(set) var error:", "public package(set) var error:")
    for path in texts(".swift", under=CORE):
        text = path.read_text()
        # Of the statistics, too.
        path.write_text(text)


# 3. Names.

FOR_TYPE = r"(?<![\w.`/])"

def declare_nested(path):
    """`public struct CacheRule {…}` at the margin becomes a type in an extension of the class."""
    lines = path.read_text().split("\n")
    out, i = [], 0
    while i < len(lines):
        match = re.match(r"public (?:final )?(?:struct|enum|class|protocol) (\w+)", lines[i])
        if match and match[1] in NAMES:
            begin = len(out)
            while begin and (out[begin - 1].startswith("///") or out[begin - 1].startswith("@")):
                begin -= 1
            end = i
            if not re.search(r"\{\s*\}?$", lines[i]) or not lines[i].rstrip().endswith("}"):
                while lines[end] != "}":
                    end += 1
            block = out[begin:] + lines[i:end + 1]
            del out[begin:]
            old, new = match[1], NAMES[match[1]]
            for number, line in enumerate(block):
                if re.match(r"public (?:final )?(?:struct|enum|class|protocol) ", line):
                    block[number] = re.sub(rf"\b{old}\b", new, line, count=1)
                    break
            out += ["extension DiskURLCache {"] + [("    " + line if line else line) for line in block] + ["}"]
            i = end + 1
            continue
        out.append(lines[i])
        i += 1
    path.write_text("\n".join(out))


def rename_swift(path):
    text = path.read_text()
    original = text
    names = sorted(NAMES, key=len, reverse=True)
    inside = any(path.is_relative_to(folder) for folder in (CORE, TOOLS, ADAPTERS, TESTING))
    of_core_docs = path.is_relative_to(CORE) and ("full" if "URLRequest" in path.name else "short")

    def link(match):
        return symbol_link(match[1], of_core_docs)

    lines = []
    for line in text.split("\n"):
        at = line.find("///")
        comment_at = at if at >= 0 and not line[:at].strip() else -1
        if comment_at >= 0:
            line = re.sub(r"``([^`]+)``", link, line)
            line = re.sub(r"(?<!`)`((?:" + "|".join(names) + r")\b[^`]*)`(?!`)", lambda m: "`" + code_voice(m[1]) + "`", line)
        if path.is_relative_to(ADAPTERS) and comment_at >= 0:
            line = re.sub(r"`EntryCriteria\b", "`DiskURLCache.Criteria", line)
        for name in names:
            line = re.sub(rf"(?<![\w`/.]){name}\b(?!`)", f"DiskURLCache.{NAMES[name]}", line)
        lines.append(line)
    text = "\n".join(lines)
    text = text.replace("DiskURLCache.DiskURLCache.", "DiskURLCache.")
    text = shorten(text) if inside else text
    # Declarations that were nested above lost their name to the rule of names: none is left over.
    text = re.sub(r"(public (?:final )?(?:struct|enum|class|protocol)) DiskURLCache\.(\w+)", r"\1 \2", text)
    if inside and re.search(r"(extension|class) DiskURLCache\b", text):
        text = re.sub(r"(?<![\w.])(any |some )Error\b", r"\1Swift.Error", text)
    if text != original:
        path.write_text(text)


def shorten(text):
    """Within the class its types need no prefix; `Error` keeps it, since it is not Swift's."""
    out, within = [], False
    for line in text.split("\n"):
        if re.match(r"(extension|public class) DiskURLCache\b[^.]*\{$", line):
            within = True
        elif line.startswith("}"):
            within = False
        if within and not line.strip().startswith("///"):
            line = re.sub(r"\bDiskURLCache\.(" + "|".join(n for n in NAMES.values() if n != "Error") + r")\b", r"\1", line)
        out.append(line)
    return "\n".join(out)


def code_voice(symbol):
    """`CacheError.Code` as code."""
    head, rest = re.match(r"(\w+)(.*)", symbol, re.S).groups()
    if head in NAMES:
        return f"DiskURLCache.{NAMES[head]}{rest}"
    return symbol


def symbol_link(symbol, linkable):
    """A link of the documentation as what it is now: a link when it is to the library's own symbols, otherwise code."""
    if symbol == "DiskURLCache":
        return f"``{symbol}``"
    parts = symbol.split("/")
    if parts[:2] == ["DiskURLCache", "DiskURLCache"]:
        parts = parts[1:]
        rooted = True
    else:
        rooted = parts[0] == "DiskURLCache"
    moved = {"EventLog", "Inspector"} | {NAMES[n] for n in OF_TOOLS | OF_ADAPTERS if n in NAMES}
    name = parts[0]
    if name == "EntryCriteria":
        parts, name = ["DiskURLCache", "Criteria"] + parts[1:], "DiskURLCache"
        is_moved = True
    elif name in NAMES:
        is_moved = name in OF_TOOLS | OF_ADAPTERS
        parts = ["DiskURLCache", NAMES[name]] + parts[1:]
    else:
        is_moved = any(part.split("(")[0] in {"EventLog", "diskStorage"} or part.startswith("load(_:through") for part in parts)
        if not rooted:
            # Relative to where it stands.
            return f"``{symbol}``" if linkable and not is_moved else "`" + ".".join(parts) + "`"
    if is_moved or not linkable:
        return "`" + ".".join(re.sub(r"-\(.*", "", part) for part in parts) + "`"
    if linkable == "short" and not rooted:
        # Within the class.
        return "``" + "/".join(parts[1:]) + "``"
    return "``DiskURLCache/" + "/".join(parts) + "``"


def rename_markdown(path):
    text = path.read_text()
    original = text
    linkable = "DiskURLCache.docc" in str(path) and "full"
    text = re.sub(r"``([^`\n]+)``(?!`)", lambda m: symbol_link(m[1], linkable), text)
    # Samples: the type is known where rules and options are given.
    text = re.sub(r"(?<!\w)CacheRule\(", ".init(", text) if "CacheRule(" in text else text
    text = re.sub(r"(\.init\([^\n]*?), CacheTreatment\(", r"\1, .init(", text)
    text = re.sub(r"(cacheTreatment = )CacheTreatment\(", r"\1.init(", text)
    for name in sorted(NAMES, key=len, reverse=True):
        text = re.sub(rf"(?<![\w/.]){name}\b", f"DiskURLCache.{NAMES[name]}", text)
    text = re.sub(r"\bEntryCriteria\b", "DiskURLCache.Criteria", text)
    text = text.replace("DiskURLCache.DiskURLCache.", "DiskURLCache.")
    # A list of topics has links only.
    text = re.sub(r"^- `[^`\n]+`\n", "", text, flags=re.M) if linkable and "## Topics" in text else text
    text = re.sub(r"### [^\n]+\n\n(?=###|\Z)", "", text) if linkable else text
    if text != original:
        path.write_text(text)


# Paths in pages, relative to the library's sources.
PLACES = [
    ("Store/StorageAdapter.swift", "../DiskURLCacheAdapters/StorageAdapter.swift"), ("Store/EntryStorage.swift", "../DiskURLCacheAdapters/EntryStorage.swift"),
    ("Loading/CacheTransport.swift", "../DiskURLCacheAdapters/Transport.swift"), ("Loading/Transport.swift", "Loading/LoadTransport.swift"),
    ("HTTP/CacheReason.swift", "HTTP/Reason.swift"), ("Errors/CacheError.swift", "Errors/Error.swift"), ("Events/CacheEvent.swift", "Events/Event.swift"),
    ("Entries/CacheLayer.swift", "Entries/Layer.swift"), ("Inspection/EventLog.swift", "../DiskURLCacheTools/EventLog.swift"),
    ("Inspection/CacheInspector", "../DiskURLCacheTools/Inspector"),
]


def documents():
    for path in texts(".md"):
        text = original = path.read_text()
        for old, new in PLACES:
            text = re.sub(r"(?<![/\w])" + re.escape(old), new, text)
        if path.name in ("CustomStorage.md", "CustomTransport.md", "Inspecting.md") and "DiskURLCache.docc" in str(path):
            module = "DiskURLCacheTools" if path.name == "Inspecting.md" else "DiskURLCacheAdapters"
            text, n = re.subn(r"\A(# [^\n]*\n\n(?:[^\n]+\n)+\n(?:## Overview\n\n)?)", rf"\1Import `{module}`.\n\n", text)
            if not n:
                print(f"{path.name}: no place for the import")
        if path.name == "CHANGELOG.md":
            text = text.replace("`DiskURLCache.Inspector`, and", "`DiskURLCache.Inspector` (product `DiskURLCacheTools`), and")
            text = text.replace("(`DiskURLCache.EntryStorage`)", "(`DiskURLCache.EntryStorage`)").replace(
                "`load(_:through:)` and `DiskURLCache.Transport`: the", "`load(_:through:)` and `DiskURLCache.Transport` (product `DiskURLCacheAdapters`, as is a storage of your own): the")
        if text != original:
            path.write_text(text)


WORDS = [
    (r"\bcacheTreatment\b", "cacheOptions"), (r"\bmayCarryTreatment\b", "mayCarryOptions"), (r"\bcarriedTreatment\b", "carriedOptions"),
    (r"diskurlcache-treatment:", "diskurlcache-options:"), (r"DiskURLCache\.treatment\b", "DiskURLCache.options"),
    (r"aTreatmentOfTheRequestCounts", "optionsOfTheRequestCount"),
    (r"the treatment's, the one of", "those of the options, the one of"),
    (r"a request's treatment\b", "a request's options"),
    (r"A treatment holds", "The options hold"), (r"the treatment is a", "the options are a"),
    (r"the treatment sets nothing", "the options set nothing"), (r"the treatment says", "the options say"),
    (r"the request's treatment says", "the request's options say"),
    (r"needs no other treatment", "needs no other options"),
    (r"own treatment wins", "own options win"),
    (r"\bA treatment for\b", "Options for"), (r"[Rr]ules and treatments", lambda m: m[0].replace("treatments", "options")),
    (r"\bmaximumEntryShare\b", "maximumEntryFraction"), (r"\bpinnedShare\b", "pinnedFraction"), (r"\blowWaterShare\b", "lowWaterFraction"),
    (r"[Tt]he admission closure", "`Configuration.willCacheResponse`"), (r"(?<!func )\badmission\b", "willCacheResponse"),
    (r"\bhasAdmission\b", "editsResponses"), (r"\brefusedByAdmission\b", "refusedByApp"),
    (r"\+Treatment\b", "+Options"), (r"\bTreatment\.swift\b", "Options.swift"),
]
# In code the word is the name of a value or a function.
CODE_WORDS = [(r"\btreatments\b", "cacheOptions"), (r"\btreatment\b", "cacheOptions")]


def words(path):
    text = original = path.read_text()
    for old, new in WORDS:
        text = re.sub(old, new, text)
    if path.suffix == ".swift":
        lines = []
        for line in text.split("\n"):
            if line.strip().startswith("//"):
                line = re.sub(r"`treatment`", "`cacheOptions`", line)
                line = re.sub(r"\b(- Parameter |  - )treatment:", r"\1options:", line)
                line = re.sub(r"\btreatments?\b", "options", line)
            else:
                parts = re.split(r'("(?:\\.|[^"\\])*")', line)
                for n in range(0, len(parts), 2):
                    for old, new in CODE_WORDS:
                        parts[n] = re.sub(old, new, parts[n])
                for n in range(1, len(parts), 2):
                    parts[n] = re.sub(r"\btreatments?\b", "options", parts[n])
                line = "".join(parts)
            lines.append(line)
        text = "\n".join(lines)
    elif path.suffix == ".md":
        text = re.sub(r"\btreatments?\b", "options", text)
    if text != original:
        path.write_text(text)


def rename_transport():
    for path in list(texts(".swift", under=CORE)) + list(texts(".swift", under=ROOT / "Tests")) + list(texts(".swift", under=ADAPTERS)):
        text = path.read_text()
        new = re.sub(r"((?:\b(?:any|some|protocol|extension|is)|:|,|as\?|as!)\s+)Transport\b(?!\()", r"\1LoadTransport", text)
        new = re.sub(r"((?:protocol|extension|:) )Transport(?= \{)", r"\1LoadTransport", new)
        if new != text:
            path.write_text(new)


# 3a. Manifests, imports, .ci.

USES = {
    "DiskURLCacheTools": r"\bDiskURLCache\.(Inspector|EventLog)\b|\bEventLog\b",
    "DiskURLCacheAdapters": r"\bDiskURLCache\.(EntryStorage|Entry|Criteria|Transport|Receiver|Head|ResponseStream)\b|\bdiskStorage\b"
                            r"|\bStorageAdapter\b|\bOpenTransport\b|(?<!Self)\.load\((?:[^()]|\([^()]*\))*through:",
}


def products_of(text):
    code = "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))
    return [name for name, pattern in USES.items() if re.search(pattern, code)]


def add_imports():
    for path in list(texts(".swift", under=ROOT / "Tests")) + list(texts(".swift", under=ROOT / "Integrations")):
        text = original = path.read_text()
        if "EntryCriteria" not in text:
            continue
        if "Integrations" in path.parts and path.is_relative_to(ROOT / "Integrations"):
            text = re.sub(r"\bEntryCriteria\b", "DiskURLCache.Criteria", text)
        else:
            text = wrap_criteria(text)
        if text != original:
            path.write_text(text)
    for folder in ("Tests", "Examples", "Integrations", "Benchmarks"):
        for path in texts(".swift", under=ROOT / folder):
            text = path.read_text()
            match = re.search(r"^(@testable )?import DiskURLCache\n", text, re.M)
            if not match or path.name == "Package.swift":
                continue
            new = "".join(f"{match[1] or ''}import {name}\n" for name in products_of(text) if f"import {name}\n" not in text)
            if new:
                # In the order of the alphabet.
                path.write_text(text[:match.end()] + "".join(sorted(new.splitlines(True))) + text[match.end():])


def wrap_criteria(text):
    """A storage gets the public criteria; what a test makes for one is wrapped."""
    text = re.sub(r"(matching criteria: |Mutex<\[|_ criteria: )EntryCriteria\b(?!Tests)", r"\1DiskURLCache.Criteria", text)
    text = re.sub(r"(?<![\w.])EntryCriteria\.Scope\b", "DiskURLCache.Criteria.Scope", text)
    out, at = "", 0
    for match in re.finditer(r"(?<![\w.(])EntryCriteria\(|(?<=removeElsewhere\()EntryCriteria\(|(?<=\()EntryCriteria\(", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        is_for_storage = re.match(r"\.(scope|message|matches)\b", text[end:]) or text[:match.start()].endswith(("removeElsewhere(", "removeEntries(matching: "))
        if is_for_storage and match.start() >= at:
            out += text[at:match.start()] + "DiskURLCache.Criteria(" + text[match.start():end] + ")"
            at = end
    return out + text[at:]


def manifests():
    root = ROOT / "Package.swift"
    edit(root, """        .library(name: "DiskURLCacheTesting", targets: ["DiskURLCacheTesting"]),
""", """        .library(name: "DiskURLCacheAdapters", targets: ["DiskURLCacheAdapters"]),
        .library(name: "DiskURLCacheTools", targets: ["DiskURLCacheTools"]),
        .library(name: "DiskURLCacheTesting", targets: ["DiskURLCacheTesting"]),
""")
    edit(root, """        // For the tests of an app:""", """        // For HTTP clients that the cache is put in front of, and for a disk layer of an app's own.
        .target(name: "DiskURLCacheAdapters", dependencies: ["DiskURLCache"]),
        // For tools: looks into a cache's directory, and an event log.
        .target(name: "DiskURLCacheTools", dependencies: ["DiskURLCache"]),
        // For the tests of an app:""")
    edit(root, """            name: "DiskURLCacheTests", dependencies: ["DiskURLCache", "DiskURLCacheTesting"], exclude: ["Fixtures"]),""",
         """            name: "DiskURLCacheTests",
            dependencies: ["DiskURLCache", "DiskURLCacheAdapters", "DiskURLCacheTools", "DiskURLCacheTesting"],
            exclude: ["Fixtures"]),""")
    for name in ("Examples/Package.swift", "Integrations/Package.swift", "Integrations/ServerExample/Package.swift", "Benchmarks/Package.swift"):
        path = ROOT / name
        text = path.read_text()
        # Each target gets the products that its files import.
        def depend(match):
            block = match[0]
            target = re.search(r'name: "([\w-]+)"', block)[1]
            kind = "Tests" if ".testTarget" in block else "Sources"
            folder = re.search(r'path: "([\w/]+)"', block)
            folder = path.parent / (folder[1] if folder else f"{kind}/{target}")
            wanted = set()
            for file in folder.rglob("*.swift") if folder.exists() else []:
                wanted |= set(re.findall(r"import (DiskURLCache(?:Tools|Adapters))\n", file.read_text()))
            for product in sorted(wanted):
                reference = f'.product(name: "{product}", package: "DiskURLCache")'
                if reference in block:
                    continue
                if '.product(name: "DiskURLCache", package: "DiskURLCache")' in block:
                    block = block.replace('.product(name: "DiskURLCache", package: "DiskURLCache")',
                                          '.product(name: "DiskURLCache", package: "DiskURLCache"), ' + reference, 1)
                elif '"DiskURLCache"' in block:
                    block = block.replace('"DiskURLCache"', '"DiskURLCache", ' + reference, 1)
                else:
                    block = re.sub(r"dependencies: \[", "dependencies: [" + reference + ", ", block, count=1)
            return block
        text = re.sub(r"        \.(?:target|executableTarget|testTarget)\(.*?(?=\n        (?:\.|//)|\n    \])", depend, text, flags=re.S)
        path.write_text(text)
    for name in ("Package.swift", "Examples/Package.swift", "Integrations/Package.swift", "Integrations/ServerExample/Package.swift", "Benchmarks/Package.swift"):
        run("swift", "format", "-i", name)


def continuous_integration():
    edit(ROOT / ".ci/check-samples", 'import DiskURLCache" > file', 'import DiskURLCache\\nimport DiskURLCacheAdapters\\nimport DiskURLCacheTools" > file')
    edit(ROOT / ".ci/check-samples", '[ -e "$modules/DiskURLCache.swiftmodule" ] || swift build --target DiskURLCache || exit 1',
         '[ -e "$modules/DiskURLCacheTools.swiftmodule" ] || swift build || exit 1')
    edit(ROOT / ".spi.yml", "[DiskURLCache]", "[DiskURLCache, DiskURLCacheAdapters, DiskURLCacheTools]")
    edit(ROOT / ".ci/run", re.compile(r"count triple limit=\d+"), "count triple limit=200")
    apple = ROOT / ".ci/check-apple"
    edit(apple, """            -enable-testing -experimental-skip-all-function-bodies "${flags[@]}" @"$work/library.files"
""", """            -enable-testing -experimental-skip-all-function-bodies "${flags[@]}" @"$work/library.files"
        # The products for adapters and tools, bodies included.
        local product
        for product in DiskURLCacheAdapters DiskURLCacheTools; do
            python3 "$copy/preprocess.py" $platform Sources/$product "$work/$product"
            find "$work/$product" -name '*.swift' | sort >"$work/$product.files"
            "$swift/swift-frontend" -frontend -emit-module -o "$work/$product.swiftmodule" -module-name $product \\
                -enable-testing -module-cache-path "$copy/modules" -I "$work" "${flags[@]}" @"$work/$product.files" || failed=1
        done
""")
    for path in (ROOT / ".ci").iterdir():
        if path.is_file() and path.name in ("breakages",):
            text = path.read_text()
            text = text.replace("'Loading/CacheTransport.swift'", "'../DiskURLCacheAdapters/Transport.swift'")
            text = text.replace("'Loading/Transport.swift'", "'Loading/LoadTransport.swift'")
            text = text.replace("'Inspection/EventLog.swift'", "'../DiskURLCacheTools/EventLog.swift'")
            text = text.replace("'Inspection/CacheInspector", "'../DiskURLCacheTools/Inspector")
            text = text.replace("'Store/StorageAdapter.swift'", "'../DiskURLCacheAdapters/StorageAdapter.swift'")
            text = text.replace("'Store/EntryStorage.swift'", "'../DiskURLCacheAdapters/EntryStorage.swift'")
            for old, new in [("+Treatment.swift", "+Options.swift"), ("Treatment.swift", "Options.swift"), ("CacheError.swift", "Error.swift"),
                             ("CacheEvent.swift", "Event.swift"), ("CacheReason.swift", "Reason.swift"), ("CacheLayer.swift", "Layer.swift"),
                             ("CacheAnswer.swift", "Answer.swift")]:
                text = re.sub(r"(?<=[/'])(\w*)" + re.escape(old), lambda m: m[1] + new, text)
            for old, new in WORDS + CODE_WORDS:
                text = re.sub(old, new, text)
            for name in sorted(NAMES, key=len, reverse=True):
                text = re.sub(rf"(?<![\w/.'+]){name}\b(?!\.swift|Tests)", f"DiskURLCache.{NAMES[name]}", text)
            path.write_text(text)


# 4. What the products use of the library gets `package` access.

PUBLISHED = re.compile(r"^(public|open|package|private|fileprivate)\b")
FLAGS = ["-module-name", "DiskURLCache", "-package-name", "diskurlcache", "-parse-as-library", "-swift-version", "6", "-suppress-warnings"]
KEYWORDS = "struct|class|enum|protocol|actor|typealias|func|var|let|init|subscript|extension"


def in_slot(*command):
    """Runs a compiler; gives its output. The whole script is to be run in one of the machine's slots."""
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True)


def sources(*folders):
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted(folder.rglob("*.swift"))]


def publish():
    """All as one module first: which declarations of the library do the products use, and what do those name in turn?"""
    import json, tempfile
    work = pathlib.Path(tempfile.mkdtemp())
    everything = sources(CORE, TOOLS, ADAPTERS)
    result = in_slot("swiftc", "-emit-module", *FLAGS, "-emit-module-path", str(work / "DiskURLCache.swiftmodule"), "-emit-symbol-graph",
                     "-emit-symbol-graph-dir", str(work), "-symbol-graph-minimum-access-level", "internal", *everything)
    if result.returncode:
        fail("the sources do not compile as one module:\n" + "\n".join(l for l in result.stderr.split("\n") if "error:" in l))
    symbols, by_path = {}, {}
    relations = []
    for graph in work.glob("*.symbols.json"):
        content = json.loads(graph.read_text())
        relations += content["relationships"]
        for symbol in content["symbols"]:
            symbols[symbol["identifier"]["precise"]] = symbol
            by_path.setdefault(".".join(symbol["pathComponents"]), symbol["identifier"]["precise"])
    used = set()
    for product in (TOOLS, ADAPTERS):
        for file in sources(product):
            rest = [name for name in everything if name != file]
            dump = subprocess.run(["swift-frontend", "-frontend", "-dump-ast", "-dump-ast-format", "json", *FLAGS, "-primary-file", file, *rest],
                                  cwd=ROOT, text=True, capture_output=True).stdout
            used |= set(re.findall(r'"decl_usr":"(s:12DiskURLCache[^"]*|s:[^"]*12DiskURLCache[^"]*)"', dump))
            types = sorted(set(re.findall(r'"type_usr":"([^"]*12DiskURLCache[^"]*)"', dump)))
            names = subprocess.run(["swift", "demangle", "--compact"], input="\n".join(types), text=True, capture_output=True).stdout
            for name in re.findall(r"DiskURLCache\.([A-Z]\w*(?:\.[A-Z]\w*)*)", names):
                if name in by_path:
                    used.add(by_path[name])
    used = {usr for usr in used if usr in symbols}
    in_products = lambda symbol: "/DiskURLCacheTools/" in uri(symbol) or "/DiskURLCacheAdapters/" in uri(symbol)
    uri = lambda symbol: symbol.get("location", {}).get("uri", "")
    # What a declaration is in, and what its signature names, has to be as visible.
    parents = {r["source"]: r["target"] for r in relations if r["kind"] in ("memberOf", "requirementOf")}
    todo, done = list(used), set()
    while todo:
        usr = todo.pop()
        if usr in done or usr not in symbols:
            continue
        done.add(usr)
        if usr in parents:
            todo.append(parents[usr])
        for fragment in symbols[usr].get("declarationFragments", []):
            if "preciseIdentifier" in fragment:
                todo.append(fragment["preciseIdentifier"])
    # Cases of an enumeration that is published name types, too.
    for r in relations:
        if r["kind"] in ("memberOf", "requirementOf") and r["target"] in done and r["source"] in symbols:
            kind = symbols[r["source"]]["kind"]["identifier"]
            if kind == "swift.enum.case" or r["kind"] == "requirementOf":
                for fragment in symbols[r["source"]].get("declarationFragments", []):
                    if fragment.get("preciseIdentifier") in symbols:
                        todo.append(fragment["preciseIdentifier"])
    while todo:
        usr = todo.pop()
        if usr not in done and usr in symbols:
            done.add(usr)
            if usr in parents:
                todo.append(parents[usr])
            todo += [f["preciseIdentifier"] for f in symbols[usr].get("declarationFragments", []) if "preciseIdentifier" in f]
    lines_of, without, implicit = {}, [], []
    for usr in sorted(done):
        symbol = symbols[usr]
        if symbol["accessLevel"] != "internal" or in_products(symbol):
            continue
        kind = symbol["kind"]["identifier"]
        if kind == "swift.enum.case" or usr in parents and symbols.get(parents[usr], {}).get("kind", {}).get("identifier") == "swift.protocol":
            continue
        if not uri(symbol):
            without.append(".".join(symbol["pathComponents"]))
            continue
        position = symbol["location"]["position"]["line"]
        path = pathlib.Path(uri(symbol).removeprefix("file://"))
        if kind == "swift.init" and not re.search(r"\binit\b", path.read_text().split("\n")[position]):
            if usr in used:
                implicit.append((path, position, symbol["pathComponents"][-1]))
            continue
        lines_of.setdefault(str(path), set()).add(position)
    count = sum(map(len, lines_of.values()))
    for name, numbers in lines_of.items():
        path = pathlib.Path(name)
        lines = path.read_text().split("\n")
        for number in numbers:
            lines[number] = with_package(lines[number])
        path.write_text("\n".join(lines))
    # From the end of each file, so that the numbers of lines hold.
    for path, number, name in sorted(implicit, key=lambda item: (str(item[0]), -item[1])):
        spell_out(path, number, name)
    print(f"{count} declarations in {len(lines_of)} files have package access now; without a place: {', '.join(without) or 'none'}")


def spell_out(path, number, name):
    """The initialiser that Swift makes for a structure is internal: the same as the compiler's, with `package`."""
    lines = path.read_text().split("\n")
    labels = [label for label in name[len("init("):-1].split(":") if label]
    margin = re.match(r" *", lines[number])[0]
    end = next(i for i in range(number + 1, len(lines)) if lines[i].startswith(margin + "}"))
    parameters, last = {}, number
    for i in range(number + 1, end):
        match = re.match(rf"{margin}    (?:package |public )?(?:(?:package|private|internal)\(set\) )?(let|var) (\w+)(?:: ([^={{]+?))?(?: = ([^{{]+))?$", lines[i])
        if match and match[2] in labels:
            kind, label, type_, default = match.groups()
            if not type_:
                type_ = {"true": "Bool", "false": "Bool"}.get(default, "Int" if re.fullmatch(r"[\d_]+", default or "") else None)
                if not type_:
                    print(f"{path}: {name}: no type of {label}")
                    return
            if "->" in type_ and not type_.endswith("?"):
                type_ = "@escaping " + type_
            if kind == "var" and default is None and type_.endswith("?"):
                default = "nil"
            parameters[label] = f"{label}: {type_}" + (f" = {default}" if default else "")
            last = i
    if set(parameters) != set(labels):
        print(f"{path}: {name}: no place of {set(labels) - set(parameters)}")
        return
    # Behind what else belongs to the last property.
    text = [f"", f"{margin}    package init({', '.join(parameters[label] for label in labels)}) {{"]
    text += [f"{margin}        self.{label} = {label}" for label in labels] + [f"{margin}    }}"]
    if last + 1 < end and lines[last + 1].strip():
        text.append("")
    lines[last + 1:last + 1] = text
    path.write_text("\n".join(lines))


def verify():
    """Compiles the library's interface and then the products; gives `package` to what a compiler says needs it."""
    import tempfile
    work = pathlib.Path(tempfile.mkdtemp())
    frontend = ["swift-frontend", "-frontend", "-package-name", "diskurlcache", "-parse-as-library", "-swift-version", "6",
                "-diagnostic-style", "llvm", "-suppress-warnings"]
    for _ in range(6):
        result = in_slot(*frontend, "-emit-module", "-module-name", "DiskURLCache", "-experimental-skip-all-function-bodies",
                         "-o", str(work / "DiskURLCache.swiftmodule"), *sources(CORE))
        errors = [line for line in result.stderr.split("\n") if ": error: " in line]
        if not errors:
            if result.returncode:
                print(f"the compiler ended with {result.returncode}:", result.stderr[-3000:])
            break
        mended = 0
        for error in sorted(set(errors)):
            match = re.match(r"(.*?):(\d+):\d+: error: (.*must be declared package.*|.*must be as accessible as.*|.*uses an internal type.*)", error)
            if not match:
                continue
            path = ROOT / match[1]
            lines = path.read_text().split("\n")
            if "uses an internal type" in match[3]:
                continue
            number = int(match[2]) - 1
            new = with_package(lines[number])
            mended += new != lines[number]
            lines[number] = new
            path.write_text("\n".join(lines))
        if not mended:
            break
    if errors:
        print("DiskURLCache:\n" + "\n".join(sorted(set(errors))))
    triple = re.search(r'"triple": "([^"]+)"', subprocess.run(["swiftc", "-print-target-info"], capture_output=True, text=True).stdout)[1]
    subprocess.run(["swift", "symbolgraph-extract", "-module-name", "DiskURLCache", "-I", str(work), "-target", triple,
                    "-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", str(work)])
    if (work / "DiskURLCache.symbols.json").exists():
        print((work / "DiskURLCache.symbols.json").read_text().count('"pathComponents"'), "public symbols")
    for product in (TOOLS, ADAPTERS, TESTING):
        result = in_slot(*frontend, "-typecheck", "-module-name", product.name, "-I", str(work), *sources(product))
        errors = sorted(set(line for line in result.stderr.split("\n") if ": error: " in line))
        print(f"{product.name}: {len(errors)} errors")
        print("\n".join(errors))


def with_package(line):
    """A declaration with `package`, unless it says its access."""
    match = re.match(r"(\s*)((?:@\w+(?:\([^)]*\))?\s+)*)(.*)", line)
    if PUBLISHED.match(match[3]) or re.match(r"(case|extension)\b", match[3]):
        return line
    return f"{match[1]}{match[2]}package {match[3]}"


def by_hand():
    """What no rule does: patches beside this script, applied where they fit."""
    for patch in sorted(pathlib.Path(__file__).resolve().parent.glob("*.patch")):
        result = subprocess.run(["git", "apply", "--recount", str(patch)], cwd=ROOT, capture_output=True, text=True)
        if result.returncode:
            print(f"{patch.name} does not fit: {result.stderr}")


def main():
    if not {"--publish", "--verify"} & set(sys.argv):
        move_files()
        split()
        rename_transport()
        for folder in (CORE, TOOLS, ADAPTERS, TESTING):
            for path in texts(".swift", under=folder):
                declare_nested(path)
        for path in texts(".swift"):
            if "apple-stubs" not in str(path):
                rename_swift(path)
        for path in texts(".md"):
            rename_markdown(path)
        for path in texts(".swift", ".md"):
            if "apple-stubs" not in str(path) and path.name != "CHANGELOG.md":
                words(path)
        for folder in (TOOLS, ADAPTERS):
            for path in texts(".swift", under=folder):
                text = path.read_text()
                text = text if text.startswith("import Foundation") else "import Foundation\n\n" + text
                path.write_text("import DiskURLCache\n" + text)
        documents()
        add_imports()
        manifests()
        continuous_integration()
        by_hand()
        places = ["Sources", "Tests", "Examples/Sources", "Examples/Recipes", "Integrations/Sources", "Integrations/Tests", "Benchmarks/Sources"]
        subprocess.run(["swift", "format", "-i", "-r", *[place for place in places if (ROOT / place).exists()]], cwd=ROOT)
    if "--text" in sys.argv:
        return
    if "--verify" not in sys.argv:
        publish()
        run("swift", "format", "-i", "-r", "Sources")
    verify()


main()
