#!/usr/bin/env python3
"""Compares a server without a cache, with a private one, with a shared one, and with Redis. Run by hand:

    swift build -c release --package-path Integrations/ServerExample
    Integrations/ServerExample/harness.py [SECONDS] [PLOT.svg]

wrk asks with 32 connections for 10,000 articles of 4 KB, the n-th most popular with a share of 1/n (Zipf). The upstream needs 20 ms, 200 ms for
a tenth of the articles, and fails each hundredth request. Each server is a process of its own and begins empty. Needs wrk and redis-server.
CPU is that of the server alone, for each request that it answered.
"""

import os, pathlib, re, socket, subprocess, sys, tempfile, time, urllib.request

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
HERE = pathlib.Path(__file__).resolve().parent
SERVER = next((p for p in [HERE / ".build/release/ServerExample", HERE / ".build/debug/ServerExample"] if p.exists()), None)
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
    io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,
        latency:percentile(50), latency:percentile(99), summary.errors.status))
end
"""


def start(*arguments):
    process = subprocess.Popen([SERVER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    return process, f"http://127.0.0.1:{int(line.split()[1])}"


def cpu(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asked(url):
    return int(urllib.request.urlopen(f"{url}/requests").read())


def measure(name, arguments, folder):
    process, url = start("upstream")
    server, address = start("serve", "--upstream", url, *arguments)
    try:
        script = folder / "load.lua"
        script.write_text(SCRIPT)
        output = subprocess.run(
            ["wrk", "--threads=1", "--connections=32", f"--duration={SECONDS}s", "--latency", f"--script={script}", address],
            capture_output=True, text=True, check=True).stdout
        answered, duration, median, slowest, failed = map(int, re.search(r"RESULT (.*)", output)[1].split())
        return name, answered / duration * 1e6, median / 1e3, slowest / 1e3, cpu(server) / answered * 1e6, asked(url) / answered, failed
    finally:
        for each in (server, process):
            each.terminate()
            each.wait()


def plot(rows, path):
    """Bars of requests for each second, on one scale."""
    most = max(row[1] for row in rows)
    bars = "".join(
        f'<text x="0" y="{30 * n + 19}">{row[0]}</text><rect x="90" y="{30 * n + 5}" width="{400 * row[1] / most:.0f}" height="20" '
        f'fill="#4a7ebb"/><text x="{96 + 400 * row[1] / most:.0f}" y="{30 * n + 19}">{row[1]:,.0f} a second</text>'
        for n, row in enumerate(rows))
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="620" height="{30 * len(rows) + 5}" font-family="sans-serif" font-size="13">{bars}</svg>\n')


if not SERVER:
    sys.exit("error: build it first: swift build -c release --package-path Integrations/ServerExample")
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    redis = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lru"],
                             stdout=subprocess.DEVNULL)
    time.sleep(1)
    try:
        rows = [
            measure("no cache", [], folder),
            measure("private", ["--directory", str(folder / "private"), "--private", "yes"], folder),
            measure("shared", ["--directory", str(folder / "shared")], folder),
            measure("Redis", ["--redis", port], folder),
        ]
    finally:
        redis.terminate()
print("| Cache | requests a second | p50 | p99 | CPU a request | requests at the upstream | failed |\n|---|---|---|---|---|---|---|")
for name, rate, median, slowest, each, share, failed in rows:
    print(f"| {name} | {rate:,.0f} | {median:.1f} ms | {slowest:.0f} ms | {each:.0f} µs | {share:.1%} | {failed} |")
if len(sys.argv) > 2:
    plot(rows, pathlib.Path(sys.argv[2]))
