"""Random histories: what an origin answers, and what a client asks in which order. And how one is made smaller."""
import copy, random

# A field whose value begins with "@" is a date, so many seconds from the moment at which the origin answers.
FRESHNESS = [
    [], ["max-age=100"], ["max-age=100"], ["max-age=100"], ["max-age=1"], ["max-age=0"], ["no-cache"], ["no-store"], ["private", "max-age=100"],
    ["public", "max-age=100"], ["s-maxage=100"], ["s-maxage=1", "max-age=100"], ["s-maxage=100", "max-age=0"], ["must-revalidate", "max-age=100"],
    ["must-revalidate", "max-age=0"], ["proxy-revalidate", "max-age=1"], ["max-age=100", "max-age=1"], ["max-age=abc"], ["max-age=-1"],
    ["MAX-AGE=100"], ["max-age=\"100\""], ["no-cache=\"X-One\"", "max-age=100"], ["private=\"X-One\"", "max-age=100"],
    ["immutable", "max-age=100"],
    ["stale-if-error=100", "max-age=0"],
]
RESPONSE_FIELDS = [
    ("ETag", '"%d"'), ("ETag", 'W/"%d"'), ("ETag", '"same"'), ("Last-Modified", "@-1000"),
    ("Expires", "@100"), ("Expires", "@-100"), ("Expires", "0"),
    ("Age", "0"), ("Age", "50"), ("Age", "200"), ("Age", "-1"), ("Date", "@-50"), ("Date", "@-200"), ("Vary", "Accept-Language"), ("Vary", "*"),
    ("Vary", "Accept-Language, X-Two"), ("Pragma", "no-cache"), ("Set-Cookie", "a=b"), ("X-One", "%d"), ("Warning", '110 - "stale"'),
    ("Surrogate-Control", "max-age=100"), ("CDN-Cache-Control", "no-store"),
]
# Without redirects, of which some clients lose the body; and without `stale-while-revalidate`, which asks at any later time.
STATUS = [200] * 12 + [203, 204, 404, 404, 410, 500, 503]
REQUEST_FIELDS = [
    ("Cache-Control", "no-cache"), ("Cache-Control", "max-age=0"), ("Cache-Control", "max-age=10"), ("Cache-Control", "min-fresh=500"),
    ("Cache-Control", "max-stale=150"), ("Cache-Control", "only-if-cached"), ("Cache-Control", "no-store"), ("Pragma", "no-cache"),
    ("Authorization", "Basic YTpi"), ("Cookie", "a=b"), ("If-None-Match", '"1"'), ("If-None-Match", '"same"'), ("If-None-Match", "*"),
    ("If-Modified-Since", "@-1000"), ("If-Modified-Since", "@-2000"),
]
LANGUAGES = ["de", "de", "en"]
# No sum of these and of an Age above is within a second of a lifetime above, since a cache may count seconds as it likes.
WAITS = [2, 2, 60, 210]
# How many seeds are played together. They wait at the same moments, so that one clock is enough.
BATCH = 1_000
# The caches that keep what they have are started again before the first request so many seconds after the start, in one of so many batches.
RESTART, RESTART_EVERY = 60, 4


def make(seed):
    """A history of two to five requests for one or two paths."""
    r = random.Random(seed)
    answers = {path: [answer(r) for _ in range(3)] for path in ("a", "b")}
    for path in answers:
        if r.random() < 0.15:
            answers[path] = [unchanged(one) for one in answers[path]]
    # A restart is only seen by what is asked for after it.
    restart = seed // BATCH % RESTART_EVERY == RESTART_EVERY - 1
    waits = 0.5 if restart else 0.2
    steps = []
    for number in range(r.choice((2, 2, 3, 3, 4, 5))):
        method = r.choice(("GET",) * 9 + ("HEAD", "POST", "PUT", "DELETE"))
        fields = [("Accept-Language", r.choice(LANGUAGES))] if r.random() < 0.3 else []
        if r.random() < 0.35 and number > 0:
            fields.append(r.choice(REQUEST_FIELDS))
        wait = r.choice(WAITS) if number > 0 and r.random() < waits else 0
        steps.append({"path": "b" if r.random() < 0.12 else "a", "method": method, "fields": fields, "wait": wait})
    return {"answers": answers, "steps": steps, "restart": restart}


def answer(r):
    fields = []
    control = r.choice(FRESHNESS)
    if control:
        fields.append(("Cache-Control", ", ".join(control)))
    names = set()
    for name, value in r.sample(RESPONSE_FIELDS, r.choice((0, 1, 1, 2, 3))):
        if name not in names:
            names.add(name)
            fields.append((name, value))
    return {"status": r.choice(STATUS), "fields": fields}


def unchanged(one):
    """An answer of a resource that stays the same, while its fields change: a 304 brings them."""
    kept = [(name, value) for name, value in one["fields"] if name not in ("ETag", "X-One")]
    return {"status": 200, "fields": kept + [("ETag", '"same"'), ("X-One", "%d")]}


def smaller(history):
    """Each history that lacks one thing of this one."""
    if history["restart"]:
        yield {**copy.deepcopy(history), "restart": False}
    for index in range(len(history["steps"])):
        if len(history["steps"]) > 1:
            less = copy.deepcopy(history)
            del less["steps"][index]
            yield less
    for step in range(len(history["steps"])):
        for index in range(len(history["steps"][step]["fields"])):
            less = copy.deepcopy(history)
            del less["steps"][step]["fields"][index]
            yield less
        for key, plain in (("wait", 0), ("method", "GET"), ("path", "a")):
            if history["steps"][step][key] != plain:
                less = copy.deepcopy(history)
                less["steps"][step][key] = plain
                yield less
    for path, answers in history["answers"].items():
        if len(answers) > 1:
            less = copy.deepcopy(history)
            less["answers"][path].pop()
            yield less
        for index, one in enumerate(answers):
            for field in range(len(one["fields"])):
                less = copy.deepcopy(history)
                del less["answers"][path][index]["fields"][field]
                yield less
            if one["status"] != 200:
                less = copy.deepcopy(history)
                less["answers"][path][index]["status"] = 200
                yield less


def text(history):
    """A history in lines that a person can read."""
    lines = [f"  the caches are started again before the first request after {RESTART} s or more"] if history["restart"] else []
    used = {step["path"] for step in history["steps"]}
    for path in sorted(used):
        for number, one in enumerate(history["answers"][path], 1):
            fields = "; ".join(f"{name}: {value}" for name, value in one["fields"])
            lines.append(f"  {path}, answer {number}: {one['status']} {fields}")
    for step in history["steps"]:
        fields = "; ".join(f"{name}: {value}" for name, value in step["fields"])
        wait = f" after {step['wait']} s" if step["wait"] else ""
        lines.append(f"  {step['method']} {step['path']}{wait} {fields}".rstrip())
    return "\n".join(lines)
