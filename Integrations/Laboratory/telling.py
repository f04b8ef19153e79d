"""Short histories in which caches differ, for the page `Documentation/HowCachesDiffer.md`. `laboratory telling` plays them."""


def history(answers, *steps):
    """Of answers (fields in one text, or a status and fields) and requests (method, fields in one text, seconds before)."""
    def fields(text):
        return [tuple(part.split(": ", 1)) for part in text.split("; ") if part]
    made = [{"status": 200, "fields": fields(one)} if isinstance(one, str) else {"status": one[0], "fields": fields(one[1])} for one in answers]
    requests = [{"path": "a", "method": method, "fields": fields(text), "wait": wait} for method, text, wait in steps]
    return {"answers": {"a": made}, "steps": requests, "restart": False}


GET = ("GET", "", 0)
TELLING = [
    ("POST, then GET", "§4.4, MUST", history(["Cache-Control: max-age=100"], GET, ("POST", "", 0), GET)),
    ("an answer that is already older than its lifetime", "§4.2.3, MUST NOT", history(["Cache-Control: max-age=100; Age: 200"], GET, GET)),
    ("`private`", "§5.2.2.7, MUST NOT for shared caches", history(["Cache-Control: private, max-age=100"], GET, GET)),
    ("the answer to a request with `Authorization`, for one without", "§3.5, MUST NOT for shared caches",
     history(["Cache-Control: max-age=100"], ("GET", "Authorization: Basic YTpi", 0), GET)),
    ("`Set-Cookie`", "§7.3, a choice", history(["Cache-Control: max-age=100; Set-Cookie: a=b"], GET, GET)),
    ("the request says `no-cache`", "§5.2.1.4, advisory", history(["Cache-Control: max-age=100"], GET, ("GET", "Cache-Control: no-cache", 0))),
    ("the request says `only-if-cached`, and nothing is stored", "§5.2.1.7, advisory",
     history(["Cache-Control: max-age=100"], ("GET", "Cache-Control: only-if-cached", 0))),
    ("`must-revalidate`, and the origin answers 503", "§5.2.2.2, MUST NOT use the old one",
     history(['Cache-Control: must-revalidate, max-age=0; ETag: "%d"', (503, "")], GET, GET)),
    ("`stale-if-error`, and the origin answers 503", "RFC 5861 §4, MAY use the old one",
     history(['Cache-Control: stale-if-error=100, max-age=0; ETag: "%d"', (503, "")], GET, GET)),
    ("a new answer whose `Date` is older", "§4.3.3, MUST use the new one",
     history(['Cache-Control: max-age=0; ETag: "%d"', "Date: @-50"], GET, GET)),
    ("`If-None-Match: *` of the client, and a fresh answer is stored", "§4.3.2, SHOULD be 304",
     history(["Cache-Control: max-age=100"], GET, ("GET", "If-None-Match: *", 0))),
    ("`no-cache` for a field", "§5.2.2.4, MUST NOT send the field",
     history(['Cache-Control: no-cache="X-One", max-age=100; X-One: %d'], GET, GET)),
    ("two values of `max-age`, the lesser one is over", "§4.2.1, the first, or stale",
     history(["Cache-Control: max-age=100, max-age=1"], GET, ("GET", "", 2))),
    ("an answer without any lifetime, changed long ago", "§4.2.2, MAY be guessed", history(["Last-Modified: @-1000"], GET, GET)),
]
