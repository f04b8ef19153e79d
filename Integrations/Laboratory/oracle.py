"""What RFC 9111 allows, written from its text for histories of the laboratory, and not from our code: whether a stored answer may be reused."""
import copy, re

UNSAFE = ("POST", "PUT", "DELETE")
# Cacheable by default (RFC 9110 §15.1), of those that the histories have.
HEURISTIC = (200, 203, 204, 301, 404, 410)


def directives(fields, name="Cache-Control"):
    """The values of each directive of a field; an empty text for a directive without one."""
    text = ", ".join(value for field, value in fields if field.lower() == name.lower())
    found = {}
    for match in re.finditer(r'\s*([^=,\s]+)(?:=("[^"]*"|[^,]*))?\s*(?:,|$)', text):
        key, value = match[1].lower(), (match[2] or "").strip().strip('"')
        found.setdefault(key, []).append(value)
    return found


def seconds(values):
    """Of the values of a directive the first one, which §4.2.1 allows where there are several; None if there is none, 0 if it is no number."""
    if not values:
        return None
    if not re.fullmatch(r"\d+", values[0]):
        return 0
    return int(values[0])


def field(fields, name):
    return next((value for one, value in fields if one.lower() == name.lower()), None)


def has_own_condition(request):
    """Whether the client itself asks only for something else than it has."""
    return any(field(request["fields"], name) for name in ("If-None-Match", "If-Modified-Since"))


def date(value, at):
    """The time that a field of a history means, when it was answered at this time; None for none that is valid."""
    return at + int(value[1:]) if value and value.startswith("@") else None


# Reasons that bind a cache only if it heeds what a request says, which is advisory (§5.2.1; `Pragma` is deprecated, §5.4), if it takes a lifetime
# that is no number for none, which §4.2.1 encourages, or if it takes an old `Date` for age (§4.2.3: more conservative). Ours does all that.
NO_STORE, NO_CACHE, MAX_AGE, MIN_FRESH = (
    "the request that it answered said no-store", "the request says no-cache", "the request's max-age", "the request's min-fresh")
NO_NUMBER = "stale, since its lifetime is no number"
OLD_DATE = "stale, by its Date"
ADVISORY = {NO_STORE, NO_CACHE, MAX_AGE, MIN_FRESH, NO_NUMBER, OLD_DATE}


class Stored:
    """An answer that a client got, as a cache may have stored it."""
    def __init__(self, number, answer, request, method, at):
        self.number, self.status, self.fields, self.request, self.at = number, answer["status"], list(answer["fields"]), request, at
        # That of the request to the origin: a HEAD may have been sent as GET.
        self.method = method
        # The number of the answer that its `X-One` is from.
        self.one = number
        self.invalidated = False

    def freshen(self, answer, number, at):
        """Its head after a 304 (§3.2)."""
        names = {name.lower() for name, _ in answer["fields"]}
        # The origin always sends a Date, and an old Age would count from the old one.
        self.fields = [one for one in self.fields if one[0] not in ("Date", "Age")]
        self.fields = [one for one in self.fields if one[0].lower() not in names] + list(answer["fields"])
        self.at, self.invalidated = at, False
        if "x-one" in names:
            self.one = number

    @property
    def made(self):
        """The time of its `Date`, which the origin always sends."""
        return date(field(self.fields, "Date"), self.at) or self.at

    @property
    def tag(self):
        return opaque_of(field(self.fields, "ETag"), self.number)

    def lifetime(self, shared):
        control = directives(self.fields)
        for name in ("s-maxage", "max-age") if shared else ("max-age",):
            if name in control:
                return seconds(control[name])
        if field(self.fields, "Expires") is not None:
            expires = date(field(self.fields, "Expires"), self.at)
            return max(0, expires - self.made) if expires is not None else 0
        modified = date(field(self.fields, "Last-Modified"), self.at)
        if modified is not None and (self.status in HEURISTIC or "public" in control):
            # A tenth, as §4.2.2 suggests; a guess may be longer.
            return max(0, (self.made - modified) / 10)
        return 0

    def age(self, now):
        return max(self.told, self.at - self.made) + now - self.at

    @property
    def told(self):
        value = field(self.fields, "Age")
        return int(value) if value and value.isdigit() else 0

    def may_not_be_stored(self, shared):
        control = directives(self.fields)
        if "no-store" in control:
            yield "no-store"
        if "no-store" in directives(self.request["fields"]):
            yield NO_STORE
        if shared and "" in control.get("private", []):
            yield "private"
        if shared and field(self.request["fields"], "Authorization") and not {"public", "s-maxage", "must-revalidate"} & set(control):
            yield "Authorization"
        explicit = {"max-age", "public"} & set(control) or shared and "s-maxage" in control or field(self.fields, "Expires")
        if self.status not in HEURISTIC and not explicit:
            yield "its status is not cacheable by default"

    def may_not_answer_later(self, request, shared):
        """Why it may not be used without validation, however old it is; a stale one neither, when the origin cannot be had (§4.2.4)."""
        control = directives(self.fields)
        yield from self.may_not_be_stored(shared)
        if "*" in (field(self.fields, "Vary") or ""):
            yield "Vary: *"
        if request["method"] not in ("GET", "HEAD"):
            yield "the method is not safe to answer"
        if self.method == "HEAD" and request["method"] != "HEAD":
            yield "it is the answer to a HEAD"
        if not self.is_selected(request):
            yield "Vary"
        if "" in control.get("no-cache", []):
            yield "no-cache"

    def is_selected(self, request):
        """By `Vary`, of which `*` is another question."""
        names = [part.strip() for part in (field(self.fields, "Vary") or "").split(",") if part.strip() not in ("", "*")]
        return all(field(self.request["fields"], name) == field(request["fields"], name) for name in names)

    def is_strict(self, shared):
        """Whether it may never be used when it is stale (§5.2.2.2, §5.2.2.8, §5.2.2.10)."""
        control = directives(self.fields)
        return bool({"must-revalidate"} & set(control) or shared and {"proxy-revalidate", "s-maxage"} & set(control))

    def refusals(self, request, now, shared):
        """Why it may not be reused for a request without asking; nothing if it may."""
        asked = directives(request["fields"])
        reasons = list(self.may_not_answer_later(request, shared))
        if self.invalidated:
            reasons.append("an unsafe request invalidated it")
        if "no-cache" in asked or not asked and field(request["fields"], "Pragma") == "no-cache":
            reasons.append(NO_CACHE)
        lifetime, age = self.lifetime(shared), self.age(now)
        if "max-age" in asked and age > int(asked["max-age"][0]):
            reasons.append(MAX_AGE)
        if "min-fresh" in asked and lifetime - age < int(asked["min-fresh"][0]):
            reasons.append(MIN_FRESH)
        if age >= lifetime and (self.is_strict(shared) or "max-stale" not in asked or age - lifetime > int(asked["max-stale"][0])):
            is_by_date = self.told + now - self.at < lifetime
            reasons.append(NO_NUMBER if self.has_no_number(shared) else OLD_DATE if is_by_date else "stale")
        return reasons

    def has_no_number(self, shared):
        control = directives(self.fields)
        name = next((name for name in (("s-maxage", "max-age") if shared else ("max-age",)) if name in control), None)
        return name is not None and not re.fullmatch(r"\d+", control[name][0])

    def fulfils(self, request):
        """Whether the request's own condition makes a 304 of it (§4.3.2)."""
        tags, since = field(request["fields"], "If-None-Match"), field(request["fields"], "If-Modified-Since")
        if tags is not None:
            return tags == "*" or self.tag in [part.strip().removeprefix("W/") for part in tags.split(",")]
        if since is None:
            return False
        return self.modified <= int(since[1:])

    @property
    def modified(self):
        """Seconds before the answer: of its `Last-Modified`, or else of its `Date`, or else none."""
        return int((field(self.fields, "Last-Modified") or field(self.fields, "Date") or "@0")[1:])


class Oracle:
    """Follows one player through a history: what it may have stored, and what each of its answers without a request was."""
    def __init__(self, history, shared, ours=False):
        self.history, self.shared, self.ours, self.stored = history, shared, ours, {"a": [], "b": []}

    def step(self, request, outcome):
        """Why an answer was not allowed; None if it was."""
        now = int(outcome.at)
        fault = self.of_a_hit(request, outcome, now) if outcome.kind == "hit" else self.of_an_answer(request, outcome)
        for one in outcome.asked:
            self.learn(request, one, now)
        return fault

    def of_a_hit(self, request, outcome, now):
        """Of all answers that it may be, one must be allowed."""
        path = request["path"]
        named = [one for one in self.stored[path] if outcome.body in ("", f"{path}{one.number}")]
        reasons = [one.refusals(request, now, self.shared) + list(self.wrongs(one, request, outcome, now)) for one in named]
        return (reasons[-1] if reasons else ["nothing was stored"]) if all(reasons) else None

    def wrongs(self, stored, request, outcome, now):
        """What is wrong with a stored answer as the client got it."""
        if outcome.status != (304 if outcome.status == 304 and stored.fulfils(request) else stored.status):
            yield "another status than the stored one"
        if outcome.one is not None and outcome.status != 304:
            control = directives(stored.fields)
            hidden = [control.get("no-cache", [])] + ([control.get("private", [])] if self.shared else [])
            if any(value.lower() == "x-one" for values in hidden for value in values):
                yield "a field that no-cache or private names"
            if outcome.one != str(stored.one):
                yield "a field that a 304 has replaced"
        if self.ours and outcome.status != 304 and (outcome.age is None or abs(outcome.age - stored.age(now)) > 1):
            yield "a wrong Age"

    def of_an_answer(self, request, outcome):
        """After a request to the origin the client gets its answer, or a stored one that the answer allows."""
        if not outcome.asked or outcome.status in (0, 504):
            return None
        path, last = request["path"], outcome.asked[-1]
        if last["status"] == 304:
            return self.after_a_304(request, outcome)
        own = has_own_condition(request)
        if outcome.body == f"{path}{last['number']}" or not outcome.body and outcome.status == last["status"]:
            return None
        if outcome.status >= 500 and not outcome.body or outcome.status == 304 and own:
            return None
        if last["status"] < 500 or last["method"] in UNSAFE:
            return ["not what the origin answered"]
        # When the origin fails a stale answer may be used.
        reasons = [list(self.not_for_errors(one, request)) for one in self.given(path, outcome)]
        return (reasons[-1] if reasons else ["not what the origin answered"]) if all(reasons) else None

    def given(self, path, outcome):
        """The stored answers that an outcome may be."""
        return [one for one in self.stored[path] if (outcome.body == f"{path}{one.number}" if outcome.body else outcome.status == one.status)]

    def not_for_errors(self, stored, request):
        yield from stored.may_not_answer_later(request, self.shared)
        if stored.is_strict(self.shared):
            yield "stale"
        if stored.invalidated:
            yield "an unsafe request invalidated it"

    def after_a_304(self, request, outcome):
        """§4.3.4: the stored answer that the 304 is about."""
        path, last = request["path"], outcome.asked[-1]
        own = has_own_condition(request)
        if outcome.status == 304:
            return None if own else ["a 304 for a client that has nothing"]
        tag = opaque_of(field(self.answer(path, last)["fields"], "ETag"), last["number"])
        older = self.given(path, outcome)
        for one in older:
            reasons = list(one.may_not_be_stored(self.shared))
            if "if-none-match" in last["conditions"] and one.tag != tag:
                reasons.append("another answer than the one that the 304 is about")
            if not reasons:
                return None
        return reasons if older else None

    def answer(self, path, asked):
        answers = self.history["answers"][path]
        return answers[min(asked["number"], len(answers)) - 1]

    def learn(self, request, one, now):
        candidates, answer = self.stored[one["path"]], self.answer(one["path"], one)
        if one["method"] in UNSAFE:
            if answer["status"] < 400:
                for old in candidates:
                    old.invalidated = True
        elif one["status"] == 304:
            tag = opaque_of(field(answer["fields"], "ETag"), one["number"])
            own = has_own_condition(request)
            for old in list(candidates):
                if own and (tag is None or field(request["fields"], "If-None-Match") == "*"):
                    # By the letter of §4.3.4 it is about a stored answer; but `*` asks for none, so a cache may let it be.
                    candidates.append(copy.copy(old))
                if tag is not None and old.tag == tag and not old.is_selected(request):
                    # The request could not have selected it (§4.3.4), so it may stay as it is.
                    candidates.append(copy.copy(old))
                if old.tag != tag if tag is not None else not old.is_selected(request):
                    continue
                old.freshen(answer, one["number"], now)
                # The origin has chosen it for this request, too.
                also = copy.copy(old)
                also.request = request
                candidates.append(also)
        elif one["method"] in ("GET", "HEAD"):
            candidates.append(Stored(one["number"], answer, request, one["method"], now))


def opaque_of(tag, number):
    if tag is None:
        return None
    return (tag % number if "%d" in tag else tag).removeprefix("W/")
