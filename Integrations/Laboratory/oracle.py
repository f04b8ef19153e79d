"""What RFC 9111 allows, written from its text for histories of the laboratory, and not from our code: whether a stored answer may be reused."""
import re

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


def date(value, at):
    """The time that a field of a history means, when it was answered at this time; None for none that is valid."""
    return at + int(value[1:]) if value and value.startswith("@") else None


class Stored:
    """An answer that a client got, as a cache may have stored it."""
    def __init__(self, number, answer, request, at):
        self.number, self.status, self.fields, self.request, self.at = number, answer["status"], list(answer["fields"]), request, at
        self.invalidated = False

    def freshen(self, answer, at):
        """Its head after a 304 (§3.2)."""
        names = {name.lower() for name, _ in answer["fields"]}
        self.fields = [one for one in self.fields if one[0].lower() not in names] + list(answer["fields"])
        self.at, self.invalidated = at, False

    @property
    def made(self):
        """The time of its `Date`, which the origin always sends."""
        return date(field(self.fields, "Date"), self.at) or self.at

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
        value = field(self.fields, "Age")
        told = int(value) if value and value.isdigit() else 0
        return max(told, self.at - self.made) + now - self.at

    def refusals(self, request, now, shared):
        """Why it may not be reused for a request without asking; nothing if it may."""
        control, asked = directives(self.fields), directives(request["fields"])
        reasons = []
        if request["method"] not in ("GET", "HEAD"):
            reasons.append("the method is not safe to answer")
        if "no-store" in control:
            reasons.append("no-store")
        if "no-store" in directives(self.request["fields"]):
            reasons.append("the request that it answered said no-store")
        if shared and "" in control.get("private", []):
            reasons.append("private")
        if shared and field(self.request["fields"], "Authorization") and not {"public", "s-maxage", "must-revalidate"} & set(control):
            reasons.append("it answered a request with Authorization")
        explicit = {"max-age", "public"} & set(control) or shared and "s-maxage" in control or field(self.fields, "Expires")
        if self.status not in HEURISTIC and not explicit:
            reasons.append("its status is not cacheable by default")
        vary = field(self.fields, "Vary") or ""
        if "*" in vary:
            reasons.append("Vary: *")
        for name in (part.strip() for part in vary.split(",") if part.strip() not in ("", "*")):
            if field(self.request["fields"], name) != field(request["fields"], name):
                reasons.append("Vary")
        if self.invalidated:
            reasons.append("an unsafe request invalidated it")
        if "" in control.get("no-cache", []):
            reasons.append("no-cache")
        if "no-cache" in asked or not asked and field(request["fields"], "Pragma") == "no-cache":
            reasons.append("the request says no-cache")
        lifetime, age = self.lifetime(shared), self.age(now)
        # The client may have got its answer a moment before; nothing is fresh for no time at all.
        slack = 1 if lifetime > 0 else 0
        if "max-age" in asked and age > int(asked["max-age"][0]) + slack:
            reasons.append("the request's max-age")
        if "min-fresh" in asked and lifetime - age < int(asked["min-fresh"][0]) - slack:
            reasons.append("the request's min-fresh")
        if age >= lifetime + slack:
            strict = {"must-revalidate"} & set(control) or shared and {"proxy-revalidate", "s-maxage"} & set(control)
            stale = int(asked["max-stale"][0]) if "max-stale" in asked else 0
            if strict or age - lifetime > stale + slack:
                reasons.append("stale")
        return reasons


class Oracle:
    """Follows one player through a history: what it may have stored, and what each of its answers without a request was."""
    def __init__(self, history, shared, ours=False):
        self.history, self.shared, self.stored = history, shared, {"a": [], "b": []}

    def step(self, request, outcome):
        """Why an answer without a request was not allowed; None if it was, or the origin was asked."""
        path, fault = request["path"], None
        candidates = self.stored[path]
        if not outcome.asked and outcome.status not in (0, 504):
            named = [one for one in candidates if outcome.body in ("", f"{path}{one.number}")]
            reasons = [one.refusals(request, outcome.at, self.shared) for one in named]
            if all(reasons):
                fault = reasons[-1] if reasons else ["nothing was stored"]
        for one in outcome.asked:
            answers = self.history["answers"][path]
            answer = answers[min(one["number"], len(answers)) - 1]
            if one["method"] in UNSAFE:
                if answer["status"] < 400:
                    for old in candidates:
                        old.invalidated = True
            elif one["status"] == 304:
                tag = field(answer["fields"], "ETag")
                for old in candidates:
                    if tag is None or opaque(old) == opaque_of(tag, one["number"]):
                        old.freshen(answer, outcome.at)
            elif one["method"] == "GET":
                candidates.append(Stored(one["number"], answer, request, outcome.at))
        return fault


def opaque(stored):
    return opaque_of(field(stored.fields, "ETag"), stored.number)


def opaque_of(tag, number):
    if tag is None:
        return None
    return (tag % number if "%d" in tag else tag).removeprefix("W/")
