#!/usr/bin/env python3
"""Compares a server without a cache, with a private one, with a shared one, and with Redis. Run by hand, on a machine that does nothing else:

    SERVER_EXAMPLE=1 swift build -c release --product ServerExample     (in the folder above this one)
    Harness/harness.py [--seconds 10] [--plot Harness/results.svg]

wrk sends requests on 32 connections for 10,000 articles of 4 KB, the n-th most popular with a share of 1/n (Zipf). The upstream needs 20 ms,
200 ms for a tenth of the articles, and fails each hundredth request. Each server is a process of its own and begins empty. It is measured
after as many seconds of the same load. Needs wrk and redis-server.

CPU is the processor time of the server, and of Redis, for each request that the server answered. "Upstream" is the number of requests that
the upstream got for each request that the server answered.
"""

import argparse, os, pathlib, re, socket, subprocess, sys, tempfile, time, urllib.request

SERVER = pathlib.Path(__file__).resolve().parent.parent / ".build/release/ServerExample"
SCRIPT = """
local sums, sum = {}, 0
for n = 1, 10000 do sum = sum + 1 / n; sums[n] = sum end
math.randomseed(42)
request = function()
    local wanted, low, high = math.random() * sum, 1, 10000
    while low < high do
        local middle = math.floor((low + high) / 2)
        if sums[middle] < wanted then low = middle + 1 else high = middle end
    end
    return wrk.format("GET", "/articles/" .. low)
end
done = function(summary, latency)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration,
        latency:percentile(50), latency:percentile(99), errors.status,
        errors.connect + errors.read + errors.write + errors.timeout))
end
"""


def start(*command):
    """A process that writes its port, and its URL."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    if not line.startswith("port "):
        sys.exit(f"error: {' '.join(map(str, command))} did not start")
    return process, f"http://127.0.0.1:{int(line.split()[1])}"


def start_redis():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lru"],
        stdout=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, str(port)
        time.sleep(0.1)
    sys.exit("error: redis-server did not start")


def cpu(processes):
    """Seconds of processor time."""
    total = 0
    for process in processes:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def load(address, script, seconds):
    command = ["wrk", "--threads=1", "--connections=32", f"--duration={seconds}s", "--timeout=10s", f"--script={script}", address]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return map(int, re.search(r"RESULT (.*)", output)[1].split())


def measure(name, arguments, script, seconds, redis=None):
    upstream, url = start(SERVER, "upstream")
    server, address = start(SERVER, "serve", "--upstream", url, *arguments)
    measured = [process for process in (server, redis) if process]

    def state():
        return cpu(measured), int(urllib.request.urlopen(f"{url}/requests").read())

    try:
        load(address, script, seconds)
        cpu_before, asked_before = state()
        answered, duration, median, slowest, failed, broken = load(address, script, seconds)
        cpu_after, asked_after = state()
        if broken:
            print(f"warning: {name}: {broken} connections failed", file=sys.stderr)
        return {
            "name": name, "rate": answered / duration * 1e6, "median": median / 1e3, "slowest": slowest / 1e3,
            "cpu": (cpu_after - cpu_before) / answered * 1e6, "upstream": (asked_after - asked_before) / answered,
            "failed": failed / answered,
        }
    finally:
        for each in (server, upstream):
            each.terminate()
            each.wait()


COLUMNS = [
    ("requests a second", "rate", "{:,.0f}"), ("p50", "median", "{:.1f} ms"), ("p99", "slowest", "{:.0f} ms"),
    ("CPU a request", "cpu", "{:.0f} µs"), ("upstream", "upstream", "{:.1%}"), ("failed", "failed", "{:.2%}"),
]


def table(rows):
    lines = ["| Cache | " + " | ".join(title for title, _, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += ["| " + " | ".join([row["name"]] + [form.format(row[key]) for _, key, form in COLUMNS]) + " |" for row in rows]
    return "\n".join(lines)


def plot(rows):
    """Bars of three columns, each on a scale of its own that begins at 0."""
    parts, top = [], 0
    for title, key, form in (column for column in COLUMNS if column[1] in ("rate", "slowest", "upstream")):
        most = max(row[key] for row in rows) or 1
        parts.append(f'<text x="0" y="{top + 16}" font-weight="bold">{title}</text>')
        for n, row in enumerate(rows):
            y, width = top + 24 + 22 * n, 400 * row[key] / most
            parts.append(f'<text x="0" y="{y + 14}">{row["name"]}</text>')
            parts.append(f'<rect x="80" y="{y + 2}" width="{width:.0f}" height="16" fill="#4a7ebb"/>')
            parts.append(f'<text x="{width + 86:.0f}" y="{y + 14}">{form.format(row[key])}</text>')
        top += 24 + 22 * len(rows) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="580" height="{top}" font-family="sans-serif" font-size="13">'
        f'<rect width="580" height="{top}" fill="white"/>' + "\n".join(parts) + "</svg>\n")


options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--seconds", type=int, default=10, help="for each server, twice")
options.add_argument("--plot", type=pathlib.Path, help="an SVG file to write")
options = options.parse_args()
if not SERVER.exists():
    sys.exit("error: build it first: see the head of this file")
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    script = folder / "load.lua"
    script.write_text(SCRIPT)
    redis, port = start_redis()
    try:
        rows = [
            measure("no cache", [], script, options.seconds),
            measure("private", ["--directory", str(folder / "private"), "--private", "yes"], script, options.seconds),
            measure("shared", ["--directory", str(folder / "shared")], script, options.seconds),
            measure("Redis", ["--redis", port], script, options.seconds, redis),
        ]
    finally:
        redis.terminate()
        redis.wait()
print(table(rows))
if options.plot:
    options.plot.write_text(plot(rows))
