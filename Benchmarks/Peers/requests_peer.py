"""The Python side of `run`: requests alone, with CacheControl, and with requests-cache.

Each line of standard input asks for loads, one after the other, and is answered by the nanoseconds that they took. Its
fields are the client, the URL up to the number, the first number, how many, how often, the length of each body, and
an entity tag or nothing.
"""
import importlib.metadata, os, sys, time

import cachecontrol, requests, requests_cache
from cachecontrol.cache import DictCache
from cachecontrol.caches import FileCache


def requests_cached(backend, name):
    # cache_control: it goes by the response, as the others do, and not by a time that the program sets.
    return requests_cache.CachedSession(os.path.join(folder, name), backend=backend, cache_control=True)


def cache_controlled(cache):
    return cachecontrol.CacheControl(requests.Session(), cache=cache)


folder = sys.argv[1]
clients = {
    "requests": requests.Session(),
    "CacheControl, FileCache": cache_controlled(FileCache(os.path.join(folder, "files"))),
    "CacheControl, DictCache": cache_controlled(DictCache()),
    "requests-cache, SQLite": requests_cached("sqlite", "responses.sqlite"),
    "requests-cache, filesystem": requests_cached("filesystem", "responses"),
    "requests-cache, memory": requests_cached("memory", "memory"),
}
packages = ("requests", "CacheControl", "requests-cache")
print(f"Python {sys.version.split()[0]},", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages), flush=True)
for line in sys.stdin:
    client, url, first, count, times, length, tag = line.rstrip("\n").split("\t")
    session, headers = clients[client], {"If-None-Match": tag} if tag else {}
    start = time.perf_counter_ns()
    for number in list(range(int(first), int(first) + int(count))) * int(times):
        received = len(session.get(f"{url}{number}", headers=headers).content)
        assert received == int(length), f"{received} bytes for {line}"
    print(time.perf_counter_ns() - start, flush=True)
