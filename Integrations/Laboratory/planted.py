#!/usr/bin/env python3
"""Whether the laboratory finds faults that are known: ten are built into a copy of this cache, each behind a number in the environment, and one old
fault of another cache.

    ./planted.py [--histories 8000] [--players okhttp,squid] [--player PATH] [--old PYTHON]

One build of the copy, in `.build/planted`, is enough for all; `--player` is one that is there. The number 0 is the cache as it is, in which nothing
may be found. `--old` is a Python that has requests-cache 0.9, which gave one language for another.
"""
import argparse, os, pathlib, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / ".build/planted"
SOURCES = "Sources/DiskURLCache/"
SWITCH = '''import Foundation

/// The fault that this process has.
let planted = Int(ProcessInfo.processInfo.environment["LABORATORY_PLANT"] ?? "") ?? 0
'''
# What it is, the file, the text there, and what stands there instead.
FAULTS = [
    ("the Age that an answer came with does not count", "HTTP/Age.swift",
     "facts.ageOnArrival.corrected.addingSaturated(residentTime)", "(planted == 1 ? 0 : facts.ageOnArrival.corrected).addingSaturated(residentTime)"),
    ("of several stored answers Vary selects any", "HTTP/VaryKey.swift",
     "for field in fields where field.value != request.digest(of: field.name, field.salt) { return false }",
     "for field in fields where planted != 2 && field.value != request.digest(of: field.name, field.salt) { return false }"),
    ("PUT invalidates nothing", "HTTP/Invalidation.swift",
     '["GET", "HEAD",', '[planted == 3 ? "PUT" : "GET", "GET", "HEAD",'),
    ("no-store of a response is not heeded", "Decisions/Storability.swift",
     "return said.noStore ? .noStore : nil", "return said.noStore && planted != 4 ? .noStore : nil"),
    ("a shared cache stores what is private", "HTTP/SharedCache.swift",
     "if said.isPrivate {", "if said.isPrivate, planted != 5 {"),
    ("min-fresh of a request is not heeded", "Decisions/ReuseVerdict.swift",
     "if let minFresh = asked.minFresh, freshness", "if planted != 6, let minFresh = asked.minFresh, freshness"),
    ("a 304 does not replace the stored fields", "Decisions/StorableFields+Update.swift",
     "result.fields = filtered(HeaderFields(kept + update), isShared: isShared)",
     "result.fields = filtered(planted == 7 ? stored.fields : HeaderFields(kept + update), isShared: isShared)"),
    ("If-None-Match of a client matches any stored answer", "HTTP/Preconditions.swift",
     "return EntityTagCondition(value).matches(stored.entityTag)", "return planted == 8 || EntityTagCondition(value).matches(stored.entityTag)"),
    ("max-stale is stronger than must-revalidate", "HTTP/SharedCache.swift",
     "mustRevalidate || (isShared", "mustRevalidate && planted != 9 || (isShared"),
    ("a restart forgets how old an answer is", "Disk/Records/MetadataCodec.swift",
     "requestTime: requestTime,\n            responseTime: responseTime, vary: vary)",
     "requestTime: planted == 10 ? Date() : requestTime, responseTime: planted == 10 ? Date() : responseTime, vary: vary)"),
]


def build():
    """The copy is what is committed."""
    if not COPY.exists():
        subprocess.run(["git", "clone", "-q", ROOT, COPY], check=True)
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["git", "-C", COPY, "fetch", "-q", ROOT, head], check=True)
    subprocess.run(["git", "-C", COPY, "reset", "-q", "--hard", head], check=True)
    (COPY / SOURCES / "Planted.swift").write_text(SWITCH)
    for what, file, right, wrong in FAULTS:
        path = COPY / SOURCES / file
        text = path.read_text()
        if text.count(right) != 1:
            sys.exit(f"{file} no longer has the place for: {what}")
        path.write_text(text.replace(right, wrong))
    package = COPY / "Integrations/Laboratory/Player"
    subprocess.run(["swift", "build", "-c", "release", "--package-path", package], check=True)
    return package / ".build/release/Player"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--histories", type=int, default=8_000)
    options.add_argument("--players", default="okhttp,squid")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--player", help="the built copy")
    options.add_argument("--old", help="the python with requests-cache 0.9")
    options = options.parse_args()
    player, found = options.player or build(), 0
    print(f"as it is: {'FOUND' if played(options, player, 0)[0] else 'nothing is found'}")
    for number, (what, *_) in enumerate(FAULTS, 1):
        is_found, seconds, how = played(options, player, number)
        found += is_found
        print(f"{number:3} {'found' if is_found else 'NOT FOUND'} after {seconds:.0f} s: {what} | {how}", flush=True)
    print(f"{found} of {len(FAULTS)} are found")
    if options.old and not finds_the_old_fault(options, player):
        found = 0
    return 0 if found >= 9 else 1


def finds_the_old_fault(options, player):
    began = time.monotonic()
    run = laboratory(options.old, "--histories", "2000", "--players", "requests-cache", environment={"LABORATORY_PLAYER": str(player)})
    row = next((line.strip() for line in run.stdout.split("\n") if "requests-cache" in line and "against: Vary (" in line), None)
    version = next((word for word in run.stdout.split("\n")[0].split(", ") if "requests-cache" in word), "")
    print(f"{version}: {row or 'NOT FOUND'}, after {time.monotonic() - began:.0f} s")
    return row is not None


def laboratory(python, *words, environment):
    run = subprocess.run([python, HERE / "laboratory", "play", *words], env=os.environ | environment, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(run.stdout + run.stderr)
    return run


def played(options, player, number):
    """Whether the laboratory finds something, after how many seconds, and what."""
    began = time.monotonic()
    run = laboratory(
        sys.executable, "--until-found", "--show", "1", "--histories", str(options.histories), "--seed", str(options.seed),
        "--players", options.players, environment={"LABORATORY_PLAYER": str(player), "LABORATORY_PLANT": str(number)})
    lines = run.stdout.split("\n")
    return run.returncode == 1, time.monotonic() - began, next((line for line in lines if "seed" in line and ":" in line), "")


if __name__ == "__main__":
    sys.exit(main())
