"""The origin of all histories, on one port. A path is `/HISTORY/PATH`; the k-th request for it gets its k-th answer, and the last one again."""
import asyncio, time
from email.utils import formatdate

CONDITIONS = ("if-modified-since", "if-none-match", "if-range", "range")


def value_of(value, number, now):
    """A date from now, or the value with the number of the answer."""
    if value.startswith("@"):
        return formatdate(now + int(value[1:]), usegmt=True)
    return value % number if "%d" in value else value


class Connection(asyncio.Protocol):
    def __init__(self, origin):
        self.origin, self.data = origin, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].decode("latin-1").split("\r\n")
            fields = {}
            for line in head[1:]:
                name, _, value = line.partition(":")
                fields[name.lower()] = value.strip()
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
            self.transport.write(self.origin.answer(method, target, fields))


class Origin:
    def __init__(self):
        self.histories = {}
        # What each history was asked: (method, path, names of conditions, the number of the answer).
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
        _, name, path = target.split("?")[0].split("/")[-3:]
        history = self.histories.get(name)
        if history is None:
            return b"HTTP/1.1 404 Unknown\r\nContent-Length: 0\r\n\r\n"
        answers, asked = history["answers"][path], self.asked[name]
        number = 1 + sum(1 for one in asked if one["path"] == path)
        conditions = [field for field in CONDITIONS if field in fields]
        asked.append({"method": method, "path": path, "conditions": conditions, "number": number, "status": 0})
        one = answers[min(number, len(answers)) - 1]
        now = time.time()
        out, status, body = {}, one["status"], f"{path}{number}"
        for field, value in one["fields"]:
            out[field] = value_of(value, number, now)
        out.setdefault("Date", formatdate(now, usegmt=True))
        tag = out.get("ETag")
        if status == 200 and method in ("GET", "HEAD"):
            if "if-none-match" in fields:
                weak = [part.strip().removeprefix("W/") for part in fields["if-none-match"].split(",")]
                if "*" in weak or tag and tag.removeprefix("W/") in weak:
                    status = 304
            elif "if-modified-since" in fields and "Last-Modified" in out:
                status = 304
        asked[-1]["status"] = status
        if status in (204, 304):
            body = ""
        else:
            out["Content-Length"] = str(len(body))
        lines = [f"HTTP/1.1 {status} X"] + [f"{field}: {value}" for field, value in out.items()]
        return ("\r\n".join(lines) + "\r\n\r\n" + (body if method != "HEAD" else "")).encode("latin-1")
