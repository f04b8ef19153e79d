"""Differences that were decided: who does what, by which clause, and who is right. The first row that holds is the answer; None is a difference that
nobody has decided yet."""
import re
from oracle import directives, field


def compares(ours, other):
    """Whether two players are to do the same: ways of ours with each other, and the direct one with others of its kind."""
    return ours.name in ("ours (direct)", "ours (shared)") and ours.shared == other.shared


class Difference:
    """The first step at which two players differ."""
    def __init__(self, history, index, ours, other, other_player, fault_of_ours, fault_of_other):
        self.request = history["steps"][index]
        self.ours, self.other = ours[index], other[index]
        self.name, self.shared = other_player.name, other_player.shared
        self.fault_of_ours, self.fault_of_other = fault_of_ours, fault_of_other
        self.kinds = (self.ours.kind, self.other.kind)
        self.asked = directives(self.request["fields"])
        # What the other had got of this path before, the last one first.
        answers = history["answers"][self.request["path"]]
        numbers = [one["number"] for step in other[:index] for one in step.asked if one["path"] == self.request["path"]]
        self.before = [answers[min(number, len(answers)) - 1] for number in reversed(numbers)]
        # Whether a request for the head was sent as one for the whole.
        self.head_as_get = any(
            request["method"] == "HEAD" and any(one["method"] == "GET" for one in step.asked) for request, step in zip(history["steps"], other[:index + 1]))
        self.varies_by_anything = any("*" in (field(answer["fields"], "Vary") or "") for answer in self.before)
        self.own_condition = any(field(self.request["fields"], name) for name in ("If-None-Match", "If-Modified-Since"))

    def has(self, name):
        """Whether an answer of before has a field."""
        return any(field(answer["fields"], name) is not None for answer in self.before)

    def may_be(self, *statuses):
        return any(answer["status"] in statuses for answer in self.before)


def row(d):
    if d.name.startswith("ours"):
        return None
    ours, other = d.kinds
    if "only-if-cached" in d.asked and ours == "error" and other != "hit":
        return f"{d.name} asks, though the request says only-if-cached (§5.2.1.7, a SHOULD)"
    if d.fault_of_ours:
        return None
    if other == "hit" and d.fault_of_other:
        return f"{d.name} uses a stored answer against: {d.fault_of_other[-1]} (§4, a MUST)"
    if ours == "hit" and other != "hit":
        return f"{d.name} asks, where a stored answer may be used (§4): its choice"
    if d.head_as_get:
        return f"{d.name} asks with GET for a HEAD, and keeps what it gets: its choice"
    if ours == other == "hit" and number(d.other.body) < number(d.ours.body):
        return f"{d.name} uses an older stored answer than the last one (§4: the most recent, a MUST)"
    if d.shared and d.has("Set-Cookie") and other in ("hit", "validated"):
        return f"{d.name} shares a response with Set-Cookie; we do not (§7.3): our choice"
    if ours == "validated" and other == "asked":
        return f"{d.name} asks for the whole, where we validate (§4.3): its choice"
    if d.own_condition and ours == other == "validated" and {d.ours.status, d.other.status} == {200, 304}:
        return f"{d.name} and we answer the client's own condition differently, by 200 and 304 (§4.3.2): both may"
    if ours == "asked" and "no-store" in d.asked and other in ("hit", "validated"):
        return f"{d.name} uses its store for a request with no-store, which is about storing (§5.2.1.5); we do not: both may"
    if ours == other and d.ours.status >= 500 and number(d.other.body) < number(d.ours.body):
        return f"{d.name} answers with what it has stored when the origin fails (§4.2.4): its choice; ours is `staleIfError`"
    if other == "validated" and ours == "asked":
        if d.varies_by_anything:
            return f"{d.name} keeps an answer with Vary: * to validate it; we do not: our choice"
        if not d.has("ETag") and not d.has("Last-Modified"):
            return f"{d.name} validates by the time at which it got an answer that has no Last-Modified: its choice"
        if d.may_be(404, 410, 500, 503, 203, 204):
            return f"{d.name} keeps an answer other than 200 only to validate it; we do not: our choice"
    return None


def number(body):
    return int(re.sub(r"\D", "", body) or 0)
