"""The origin of all histories, on one port. A path is `/HISTORY/PATH`; the k-th request for it gets its k-th answer, and the last one again."""
import asyncio, time
from email.utils import formatdate

CONDITIONS = ("if-modified-since", "if-none-match", "if-range", "range")


def dated(value, now):
    """For `@` and a number the date so many seconds from now, in the form of strftime that may follow; any other value as it is."""
    if not value.startswith("@"):
        return value
    seconds, _, form = value[1:].partition(" ")
    return time.strftime(form, time.gmtime(now + int(seconds))) if form else formatdate(now + int(seconds), usegmt=True)


def value_of(value, number, now, name):
    """A date from now, or the value with the number of the answer, and with the name of the history for `%h`."""
    value = dated(value, now).replace("%h", name)
    return value % number if "%d" in value else value


def fields_of(lines):
    """The fields of the lines of a head, by their names in lower case; of several lines of a name the values, with commas between them."""
    fields = {}
    for name, _, value in (line.partition(":") for line in lines):
        name, value = name.lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


class Connection(asyncio.Protocol):
    def __init__(self, origin):
        self.origin, self.data = origin, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].decode("latin-1").split("\r\n")
            fields = fields_of(head[1:])
            if "chunked" in fields.get("transfer-encoding", ""):
                # The only body that is sent is "x", of which some make a chunk.
                body = self.data.find(b"0\r\n\r\n", end + 4) + 5
                if body < 5:
                    return
            else:
                body = end + 4 + int(fields.get("content-length", "0"))
            if len(self.data) < body:
                return
            self.data = self.data[body:]
            method, target, _ = head[0].split(" ", 2)
            answer, ends = self.origin.answer(method, target, fields)
            self.transport.write(answer)
            if ends:
                return self.transport.close()


class Origin:
    def __init__(self):
        self.histories = {}
        # What each history was asked: (method, path, names of conditions, all fields, the number of the answer).
        self.asked = {}

    async def start(self):
        self.server = await asyncio.get_running_loop().create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=2_000)
        self.port = self.server.sockets[0].getsockname()[1]

    def open(self, name, history):
        self.histories[name] = history
        self.asked[name] = []

    def close(self, name):
        del self.histories[name], self.asked[name]

    def answer(self, method, target, fields):
        """The bytes of an answer, and whether the connection ends with them: before they are whole, or, for the status 0, without any."""
        _, name, path = target.split("?")[0].split("/")[-3:]
        history = self.histories.get(name)
        if history is None:
            return b"HTTP/1.1 404 Unknown\r\nContent-Length: 0\r\n\r\n", False
        answers, asked = history["answers"][path], self.asked[name]
        number = 1 + sum(1 for one in asked if one["path"] == path)
        conditions = [field for field in CONDITIONS if field in fields]
        asked.append({"method": method, "path": path, "conditions": conditions, "fields": fields, "number": number, "status": 0})
        one = answers[min(number, len(answers)) - 1]
        now = time.time()
        status, body = one["status"], one.get("body", f"{path}{number}")
        if status == 0:
            return b"", True
        # Lines, of which a name may have several, and the value None means that there is none.
        lines = [(field, value and value_of(value, number, now, name)) for field, value in one["fields"]]
        out = dict(lines)
        if "Date" not in out:
            lines.append(("Date", formatdate(now, usegmt=True)))
        tag = out.get("ETag")
        if status == 200 and method in ("GET", "HEAD") and not one.get("whole"):
            if "if-none-match" in fields:
                weak = [part.strip().removeprefix("W/") for part in fields["if-none-match"].split(",")]
                if "*" in weak or tag and tag.removeprefix("W/") in weak:
                    status = 304
            elif "if-modified-since" in fields and "Last-Modified" in out:
                status = 304
        asked[-1]["status"] = status
        if status in (204, 304):
            body = ""
        elif "Content-Length" not in out:
            lines.append(("Content-Length", str(len(body))))
        head = [f"HTTP/1.1 {status} X"] + [f"{field}: {value}" for field, value in lines if value is not None]
        is_cut = method != "HEAD" and body != "" and int(out.get("Content-Length", "0")) > len(body)
        return ("\r\n".join(head) + "\r\n\r\n" + (body if method != "HEAD" else "")).encode("latin-1"), is_cut
