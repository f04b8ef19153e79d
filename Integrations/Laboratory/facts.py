"""The facts of `facts.json`: whether a player does what each of them requires. The form of the file is in README.md."""
import collections, json, pathlib
from origin import dated

FILE = pathlib.Path(__file__).with_name("facts.json")
PROJECTS = {"apache-httpclient", "hishel", "methanol", "okhttp", "undici", "wpt"}
KEYS = {"id", "requires", "clause", "kind", "seen_in", "caches", "answers", "steps"}
STEP, EXPECTATION = {"method", "path", "fields", "wait", "given", "expect"}, {"asked", "conditions", "status", "body", "fields"}
MATCHERS = {"least", "most", "has", "lacks", "not"}
# Facts that ways of ours do not fulfil, which ways, and why. One that a way does fulfil has no place here, so the program fails for it.
PRIVATE, SHARED = {"ours (direct)", "ours (session)", "ours (client)"}, {"ours (shared)", "ours (shared client)"}
BY_SESSION = {"ours (direct)", "ours (session)", "ours (shared)"}
DECIDED = {
    "set-cookie-is-stored": (
        PRIVATE, "Set-Cookie is never stored: a cache must not set a cookie again with every reuse (Documentation/HTTPConformance.md)."),
    "must-revalidate-504": (SHARED, "A client throws the error of the connection, as URLSession does; a 504 in its place would hide why."),
    "guess-for-redirect": (BY_SESSION, "URLSession on Linux tells no delegate of a redirect without Location, so the cache does not see it."),
    "explicit-for-redirect": (BY_SESSION, "The same."),
    "vary-omitted-once": (
        PRIVATE | SHARED, "A response without Vary removes the variants before it (Storability.replaces): there is none to prefer."),
    "head-without-validators": (
        PRIVATE | SHARED,
        "Without validators an answer does not show that it is about the stored response: no field is changed (HeadUpdate.swift)."),
}


class Fact:
    def __init__(self, data):
        self.__dict__.update(data)
        self.history = {"answers": data["answers"], "restart": False, "steps": [
            {"method": "GET", "path": "a", "fields": [], "wait": 0} | step for step in data["steps"]]}

    def is_for(self, player):
        return self.caches == "all" or (self.caches == "shared") == player.shared

    def faults(self):
        """What is wrong with the form of the fact."""
        data = self.__dict__.keys() - {"history"}
        if data != KEYS:
            yield f"its keys are {sorted(data)}"
            return
        if self.kind not in ("must", "should", "may") or self.caches not in ("all", "private", "shared"):
            yield "its kind, or its caches"
        if not set(self.seen_in) <= PROJECTS:
            yield "a project that is not known"
        if not any(step.get("expect") for step in self.steps):
            yield "it expects nothing"
        for step in self.steps:
            if step.keys() - STEP or any(step.get(part, {}).keys() - EXPECTATION for part in ("given", "expect")):
                yield f"a key of the step {step}"
            for part in (step.get("given", {}), step.get("expect", {})):
                values = [part.get("status"), part.get("body"), *part.get("fields", {}).values(), *part.get("conditions", {}).values()]
                if any(isinstance(value, dict) and value.keys() - MATCHERS for value in values):
                    yield f"a matcher of the step {step}"
        for step in self.history["steps"]:
            if not self.answers.get(plain(step["path"])):
                yield f"the path {step['path']} has no answer"


def read():
    """All facts; an error for one of another form."""
    known = [Fact(data) for data in json.loads(FILE.read_text())]
    wrong = [f"{fact.id}: {fault}" for fact in known for fault in fact.faults()]
    wrong += [f"{name} is there twice" for name, count in collections.Counter(fact.id for fact in known).items() if count > 1]
    wrong += [f"{name} is decided, but is no fact" for name in DECIDED.keys() - {fact.id for fact in known}]
    if wrong:
        raise ValueError("; ".join(wrong))
    return known


def plain(path):
    return path.split("?")[0]


def matches(expected, value, at=0):
    """Whether a value, or None for a field that is missing, is what is expected. A matcher without a word means: it is there."""
    if isinstance(expected, str):
        return value == dated(expected, at)
    if not isinstance(expected, dict):
        return value == expected
    if "not" in expected:
        return not matches(expected["not"], value, at)
    if value is None:
        return expected.keys() == {"lacks"}
    parts = [part.strip() for part in str(value).split(",")]
    if {"least", "most"} & expected.keys():
        number = int(value) if str(value).isdigit() else -1
        return expected.get("least", 0) <= number <= expected.get("most", number)
    return all(part in parts for part in expected.get("has", [])) and not any(part in parts for part in expected.get("lacks", []))


def wrongs(expected, step, path):
    """What of an expectation does not hold for a step, in words."""
    if "asked" in expected:
        asked, method = expected["asked"], step.asked[0]["method"] if step.asked else None
        if asked != method if isinstance(asked, str) else asked != bool(step.asked):
            yield f"the origin was {f'asked by {method}' if step.asked else 'not asked'}"
    for name, value in expected.get("conditions", {}).items():
        got = step.asked[0]["fields"].get(name.lower()) if step.asked else None
        if not step.asked or not matches(value, got, step.at):
            yield f"the origin got {name}: {got}, not {json.dumps(value)}" if step.asked else f"the origin was not asked, with {name}"
    if "status" in expected and not matches(expected["status"], step.status):
        yield f"the status is {step.status}, not {expected['status']}"
    if "body" in expected:
        text = lambda body: f"{plain(path)}{body}" if isinstance(body, int) else body
        body = expected["body"]
        if not matches({"not": text(body["not"])} if isinstance(body, dict) else text(body), step.text):
            yield f"the body is {step.text or 'empty'}, not that of {body}"
    for name, value in expected.get("fields", {}).items():
        got = step.fields.get(name.lower())
        if not matches(value, got, step.at):
            yield f"{name} is {got}, not {json.dumps(value)}"


class Outcome:
    """Whether a player did what a fact requires."""
    def __init__(self, fact, play):
        self.fact, self.player, self.steps = fact, play.player, play.steps
        self.failure = play.failure
        self.silent, self.wrong = [], [play.failure] if play.failure else []
        for number, (request, step) in enumerate(zip(fact.history["steps"], play.steps), 1):
            # After a step that did something else than it had to for the fact to say anything, the fact says nothing: a cache need not store.
            # After one that failed, what the next ones do says nothing more.
            for part, into in (("given", self.silent), ("expect", self.wrong)):
                into += [f"step {number}: {wrong}" for wrong in wrongs(request.get(part, {}), step, request["path"])]
                if self.silent or self.wrong:
                    return

    @property
    def kind(self):
        return "fails" if self.failure else "silent" if self.silent else "fails" if self.wrong else "holds"


def is_decided(one):
    return one.player.name in DECIDED.get(one.fact.id, ((), ""))[0]


def report(found, ways, show=False):
    """Prints what failed, and a table of all players. 1 if a way of ours failed where nobody has decided that it may, or if not so many ways play."""
    ours = [one for one in found if one.player.name.startswith("ours")]
    failing = collections.defaultdict(list)
    for one in ours:
        # Ours stores all that it may, so for it a fact that says nothing has failed, too.
        if one.kind != "holds":
            failing[one.fact.id].append(one)
    for name, some in failing.items():
        fact = some[0].fact
        print(f"\n{'decided' if all(map(is_decided, some)) else 'FAILED'}: {name} ({fact.clause}, {fact.kind})\n  {fact.requires}")
        if name in DECIDED:
            print(f"  {DECIDED[name][1]}")
        for one in some:
            print(f"  {one.player.name}: {'; '.join(one.wrong or one.silent) if one.kind == 'fails' else '; '.join(one.silent)}")
    needless = [one for one in ours if one.kind == "holds" and is_decided(one)]
    for one in needless:
        print(f"\n{one.fact.id} is fulfilled by {one.player.name}, and needs no decision")
    if show:
        for one in found:
            print(f"{one.player.name:22} {one.kind:6} {one.steps} {'; '.join(one.wrong + one.silent)}")
    else:
        print_table(found)
    played = len({one.player.name for one in ours})
    if played < ways:
        print(f"\nonly {played} of {ways} ways of ours play")
    return 1 if needless or played < ways or not all(is_decided(one) for some in failing.values() for one in some) else 0


def print_table(found):
    print(f"\n{'':22}{'must':>12}{'should':>12}{'may':>12}   says nothing, since it need not store or validate")
    by_player = collections.defaultdict(list)
    for one in found:
        by_player[one.player.name].append(one)
    for name, some in by_player.items():
        cells, silent = [], sum(one.kind == "silent" for one in some)
        for kind in ("must", "should", "may"):
            told = [one for one in some if one.fact.kind == kind and one.kind != "silent"]
            cells.append(f"{sum(one.kind == 'holds' for one in told)} of {len(told)}")
        print(f"{name:22}" + "".join(f"{cell:>12}" for cell in cells) + f"   {silent}")
    for name, some in by_player.items():
        failed = [one.fact.id for one in some if one.kind == "fails" and one.fact.kind == "must"]
        if failed and not name.startswith("ours"):
            print(f"\n{name} fails of the musts: {', '.join(failed)}")
    for one in found:
        if one.failure:
            print(f"\n{one.fact.id} was not played to its end: {one.failure}")
