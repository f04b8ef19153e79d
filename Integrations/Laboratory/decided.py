"""Differences that were decided, as a table: what the other does, by which clause of RFC 9111, and who is right. The first row that holds is the
answer; a difference without a row is one that nobody has decided yet.

A row that says that ours is right, or may choose, says when; the oracle has judged each answer of ours before, so no row is asked about one that it
forbids."""
import collections, re
from oracle import ADVISORY, directives, field, has_own_condition, opaque_of


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
        path = self.request["path"]
        answers = history["answers"][path]
        # What the other had got of this path before, the last one first, each with its number and the request for it. Ours had got the same.
        self.before = [
            Got(one["number"], answers[min(one["number"], len(answers)) - 1], request, one["status"], one["method"])
            for request, step in reversed(list(zip(history["steps"][:index], other[:index]))) for one in reversed(step.asked) if one["path"] == path]
        bodies = [one for one in self.before if one.method == "GET" and one.status != 304]
        self.bodies, self.last = bodies, bodies[0] if bodies else None
        # The stored answer that is in question: what the other gave its client, by the body or else the status, or else the last one.
        given = [one for one in bodies if self.is_given(one)]
        self.used = next((one for one in given if self.other.body or one.states_a_lifetime()), given[0] if given else self.last)
        self.is_one_of_several = not self.other.body and len(given) > 1
        self.is_unsafe_before = any(one.request["method"] in ("POST", "PUT", "DELETE") for one in self.before)
        # Whether a request for the head was sent as one for the whole.
        self.head_as_get = any(
            request["method"] == "HEAD" and any(one["method"] == "GET" for one in step.asked)
            for request, step in zip(history["steps"], other[:index + 1]))
        self.has_asked_more = any(len(two.asked) > len(one.asked) > 0 for one, two in zip(ours[:index + 1], other[:index + 1]))
        # Whether a 304 has fitted nothing that we have stored, so that we asked once more.
        self.is_distrusted = any(len(step.asked) > 1 and step.asked[0]["status"] == 304 for step in ours[:index])
        self.own_condition = has_own_condition(self.request)

    def is_given(self, got):
        if self.other.body:
            return got.number == number(self.other.body)
        return self.other.kind == "hit" and got.answer["status"] == self.other.status

    @property
    def used_fields(self):
        """The fields of the stored answer, after each 304 that may be about it (§3.2)."""
        fields = self.used.answer["fields"] if self.used else []
        for one in reversed(self.confirmations):
            new = one.answer["fields"]
            tags = opaque_of(field(fields, "ETag"), self.used.number), opaque_of(field(new, "ETag"), one.number)
            if None in tags or tags[0] == tags[1]:
                fields = [old for old in fields if field(new, old[0]) is None] + list(new)
        return fields

    def used_has(self, name):
        return field(self.used_fields, name) is not None

    def bound(self):
        """The reasons against the other's answer that bind every cache."""
        return [reason for reason in self.fault_of_other or [] if reason not in ADVISORY]

    @property
    def confirmations(self):
        """The 304s since the stored answer came."""
        return [one for one in self.before if one.status == 304 and self.used is not None and one.number > self.used.number]

    def has_set_cookie(self):
        """Whether the stored answer, or a 304 for it, sets a cookie."""
        return self.used_has("Set-Cookie") or any(one.status == 304 and field(one.answer["fields"], "Set-Cookie") for one in self.before)

    def is_of_a_request_with_cookie(self):
        """Whether the stored answer, or a 304 for it, answered a request with `Cookie`."""
        return self.used is not None and any(field(one.request["fields"], "Cookie") for one in [self.used, *self.confirmations])

    def varies_by_all(self):
        return "*" in (field(self.used_fields, "Vary") or "")

    def is_confirmed_for_another_variant(self):
        """Whether a 304 with its tag answered a request for which `Vary` does not select it."""
        return any(self.is_of_another_variant(one.request) for one in self.confirmations)

    @property
    def used_control(self):
        return directives(self.used_fields)

    def asks_as_another_user(self):
        """Whether the stored answer is of a request with other credentials."""
        return self.used is not None and field(self.used.request["fields"], "Authorization") != field(self.request["fields"], "Authorization")

    def has_newer(self):
        """Whether a later answer than the used one came, to which another one may be preferred only if it is stored, too. Without a body nobody knows
        which one was used."""
        return self.used is not None and self.last is not None and (self.last.number > self.used.number or self.is_one_of_several)

    def last_is_not_to_be_kept(self):
        control, asked = directives(self.last.answer["fields"]), directives(self.last.request["fields"])
        return "no-store" in control or "no-store" in asked or self.shared and "private" in control

    def head_tells_of_rules(self):
        """Whether a HEAD after the used answer had other fields that say what may be reused."""
        return self.used is not None and any(
            one.method == "HEAD" and one.number > self.used.number
            and any(field(one.answer["fields"], name) for name in ("Vary", "Cache-Control", "Expires")) for one in self.before)

    def head_tells_of_another(self):
        """Whether a HEAD after the used answer had a validator of another one."""
        return self.used is not None and any(
            one.method == "HEAD" and one.number > self.used.number
            and any(field(one.answer["fields"], name) for name in ("ETag", "Last-Modified")) for one in self.before)

    def is_of_another_variant(self, request=None):
        """Whether Vary does not select the stored answer for a request, by default this one."""
        if self.used is None:
            return False
        names = [name.strip() for name in (field(self.used_fields, "Vary") or "").split(",")]
        return any(field(self.used.request["fields"], name) != field((request or self.request)["fields"], name) for name in names)


class Got(collections.namedtuple("Got", "number answer request status method")):
    def states_a_lifetime(self):
        fields = self.answer["fields"]
        return field(fields, "Expires") is not None or bool({"max-age", "s-maxage"} & set(directives(fields)))


Row = collections.namedtuple("Row", "holds does clause right")


def uses(d):
    """The other gives a stored answer, by itself or after asking, where ours asks for one; the oracle allows it."""
    does_not = d.kinds[0] in ("asked", "validated") or d.kinds[0] == "error" and "only-if-cached" in d.asked
    return does_not and d.kinds[1] == "hit"


def validates(d):
    return d.kinds == ("asked", "validated")


OURS, BOTH = "ours does what it says", "both may"
ROWS = [
    Row(lambda d: "only-if-cached" in d.asked and d.kinds[0] == "error" and d.kinds[1] not in ("hit", "error"),
        "asks, though the request says only-if-cached", "§5.2.1.7, a SHOULD, advisory", BOTH),
    Row(lambda d: d.kinds[1] == "hit" and d.fault_of_other and d.bound(),
        lambda d: f"uses a stored answer against: {d.bound()[-1]}", "§4, a MUST", OURS),
    Row(lambda d: d.kinds[1] == "hit" and d.fault_of_other,
        lambda d: f"uses a stored answer against: {d.fault_of_other[-1]}", "§4.2.1, §4.2.3, §5.2.1 and §5.4, advisory", BOTH),
    Row(lambda d: d.kinds[1] in ("asked", "validated") and d.fault_of_other,
        lambda d: f"answers after a request to the origin by: {d.fault_of_other[-1]}", "§4.3.3 and §4.3.4", OURS),
    Row(lambda d: d.kinds[0] == "hit" and d.kinds[1] in ("asked", "validated", "error"),
        "asks, where a stored answer may be used", "§4", BOTH),
    Row(lambda d: d.has_asked_more, "asks the origin more than once for one request", "none", BOTH),
    Row(lambda d: d.head_as_get, "asks with GET for a HEAD, and keeps what it gets", "§4", BOTH),
    Row(lambda d: d.own_condition and {d.ours.status, d.other.status} > {304} and d.kinds[0] == d.kinds[1] == "hit" and d.ours.status == 304,
        "gives the whole, where the client's own condition makes a 304 of a stored answer", "§4.3.2, a SHOULD", OURS),
    Row(lambda d: d.own_condition and {d.ours.status, d.other.status} > {304} and d.kinds[0] == d.kinds[1],
        "answers the client's own condition by 304 or by the whole, and we the other way", "§4.3.2", BOTH),
    Row(lambda d: d.own_condition and d.kinds == ("validated", "validated"),
        "passes on the client's own condition, where we validate what we have", "§4.3.1", BOTH),
    Row(lambda d: d.kinds == ("validated", "validated") and d.ours.asked[-1]["conditions"] != d.other.asked[-1]["conditions"],
        "validates by other fields than we, so that the origin answers otherwise", "§4.3.1", BOTH),
    Row(lambda d: d.kinds == ("hit", "hit") and 0 < number(d.other.body) < number(d.ours.body),
        "uses an older stored answer than the last one", "§4, the most recent: a MUST", OURS),
    Row(lambda d: d.shared and d.has_set_cookie() and (uses(d) or d.kinds[1] == "validated" or d.kinds == ("hit", "hit")),
        "shares a response with Set-Cookie; we do not", "§7.3", BOTH),
    Row(lambda d: d.kinds == ("validated", "asked"),
        "asks for the whole, where we validate", "§4.3", BOTH),
    Row(lambda d: "no-store" in d.asked and d.kinds[0] == "asked" and d.kinds[1] in ("hit", "validated"),
        "uses its store for a request with no-store, which is about storing; we do not", "§5.2.1.5", BOTH),
    Row(lambda d: "0" in d.asked.get("max-age", []) and uses(d),
        "uses an answer of the same second for a request with max-age=0; we ask", "§5.2.1.1", BOTH),
    Row(lambda d: len(d.used_control.get("max-age", [])) > 1 and uses(d),
        "takes the greater of two values of max-age; we the lesser one", "§4.2.1: the first, or stale", BOTH),
    Row(lambda d: d.shared and d.is_of_a_request_with_cookie() and (uses(d) or validates(d)),
        "shares an answer to a request with Cookie that is not said to be for all; we do not", "§7.3", BOTH),
    Row(lambda d: d.asks_as_another_user() and (uses(d) or validates(d) or d.kinds == ("hit", "hit")),
        "gives one user what another one got, with other credentials; ours keeps them apart", "§3.5 is about shared caches only", BOTH),
    Row(lambda d: uses(d) and d.used_has("Pragma") and not d.used_has("Cache-Control"),
        "does not heed Pragma: no-cache of a response, which no RFC defines; we ask", "§5.4", BOTH),
    Row(lambda d: uses(d) and d.has_newer(),
        "uses an answer that is still fresh after a later one came that was not to be kept; we ask", "§4", BOTH),
    Row(lambda d: d.kinds == ("hit", "hit") and d.has_newer() and d.ours.status == d.last.answer["status"],
        "uses an answer that is still fresh after a later one came that it has not kept; we give the later one", "§4", BOTH),
    Row(lambda d: uses(d) and d.head_tells_of_another(),
        "uses a stored answer after a HEAD told of another one; we ask", "§4.3.5, a SHOULD", OURS),
    Row(lambda d: uses(d) and d.head_tells_of_rules(),
        "does not take over what a HEAD says of a stored answer; we do, and ask", "§4.3.5, a SHOULD", OURS),
    Row(lambda d: uses(d) and "max-stale" in d.asked and d.used is not None and d.used.answer["status"] >= 300,
        "keeps an error that is never fresh, for a request with max-stale; we do not", "§5.2.1.2", BOTH),
    Row(lambda d: uses(d) and any(has_own_condition(one.request) for one in d.confirmations),
        "takes over a 304 to the client's own condition; we ask", "§4.3.4", BOTH),
    Row(lambda d: uses(d) and d.is_confirmed_for_another_variant(),
        "takes a 304 for all answers with its tag, also for one that Vary does not select; we ask", "§4.3.4", BOTH),
    Row(lambda d: d.shared and uses(d) and d.used_has("Last-Modified") and not d.used_has("Expires")
        and not {"max-age", "s-maxage", "public"} & set(d.used_control),
        "guesses a lifetime from Last-Modified; ours, as a shared cache, only of what is public", "§4.2.2", BOTH),
    Row(lambda d: d.kinds[0] == d.kinds[1] and d.ours.status >= 500
        and (d.other.status != d.ours.status or number(d.other.body) < number(d.ours.body)),
        "answers with what it has stored when the origin fails; ours if `staleIfError` says so", "§4.2.4", BOTH),
    Row(lambda d: d.ours.status < 500 <= d.other.status and any("stale-if-error" in directives(one.answer["fields"]) for one in d.bodies),
        "passes on the origin's error, where stale-if-error allows a stored answer", "RFC 5861 §4", BOTH),
    Row(lambda d: validates(d) and d.varies_by_all(),
        "keeps an answer with Vary: * to validate it; we do not", "§4.1", BOTH),
    Row(lambda d: validates(d) and d.is_of_another_variant() and not d.used_has("ETag"),
        "validates by its date a variant that Vary does not select; we ask for the whole", "§4.1 and §4.3.1", BOTH),
    Row(lambda d: validates(d) and d.other.asked[-1]["conditions"] == ["if-modified-since"]
        and any(field(one.answer["fields"], "Last-Modified") is None for one in d.bodies),
        "validates by the time at which it got an answer that has no Last-Modified", "§4.3.1", BOTH),
    Row(lambda d: validates(d) and d.used is not None and d.used.answer["status"] not in (200, 203, 204),
        "keeps an answer other than a success that is never fresh, to validate it; we do not", "§4.3.1", BOTH),
    Row(lambda d: validates(d) and d.last is not None and (field(d.last.answer["fields"], "ETag") is None or d.last_is_not_to_be_kept())
        and any(field(one.answer["fields"], name) for one in d.bodies[1:] for name in ("ETag", "Last-Modified")),
        "validates an older answer than the last one, which has no tag or is not to be kept; we have removed it", "§4.3.1", BOTH),
    Row(lambda d: validates(d) and (d.head_tells_of_another() or d.head_tells_of_rules()),
        "validates a stored answer after a HEAD told of another one; we ask for the whole", "§4.3.5", BOTH),
    Row(lambda d: d.request["method"] == "HEAD" and any(one.method == "HEAD" for one in d.before)
        and (uses(d) or validates(d) or d.kinds == ("hit", "hit")),
        "keeps the answer to a HEAD for another one; we do not", "RFC 9110 §9.3.2", BOTH),
    Row(lambda d: validates(d) and d.used is not None and "no-store" in directives(d.used.request["fields"]),
        "keeps the answer to a request with no-store, to validate it; we do not", "§5.2.1.5, advisory", BOTH),
    Row(lambda d: validates(d) and "no-store" in d.used_control,
        "keeps an answer with no-store, to validate it", "§5.2.2.5, a MUST NOT", OURS),
    Row(lambda d: validates(d) and d.is_distrusted,
        "validates after a 304 that fitted nothing stored; we ask this resource without conditions for a while", "§4.3.4", BOTH),
    Row(lambda d: validates(d) and d.is_unsafe_before,
        "validates what an unsafe request made invalid; we have removed it", "§4.4", BOTH),
]


def row(d):
    """The text of the row for a difference; None if nobody has decided it."""
    if d.name.startswith("ours") or d.fault_of_ours:
        return None
    found = next((row for row in ROWS if row.holds(d)), None)
    if found is None:
        return None
    does = found.does(d) if callable(found.does) else found.does
    return f"{d.name} {does} ({found.clause}): {found.right}"


def number(body):
    return int(re.sub(r"\D", "", body) or 0)
