"""Those who play a history: caches behind a socket, libraries in this process, and ours in a program of its own. Each loads one request after the
other, and says what its client got: the status and the body."""
import asyncio, json, os, pathlib, shutil, socket, subprocess, tempfile

HERE = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Proxy:
    """A cache in front of the origin. A client has one connection for a history."""
    shared = True

    def __init__(self, name, command, files):
        self.name, self.command, self.files = name, command, files

    async def start(self, origin_port):
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix=f"lab-{self.name}-")
        os.chmod(self.folder, 0o777)
        values = {"PORT": str(self.port), "ORIGIN": str(origin_port), "DIR": self.folder}
        def filled(text):
            for key, value in values.items():
                text = text.replace(f"%{key}%", value)
            return text
        for name, text in self.files.items():
            pathlib.Path(self.folder, name).write_text(filled(text))
        log = open(pathlib.Path(self.folder, "output"), "w")
        self.process = subprocess.Popen([filled(word) for word in self.command], stdout=log, stderr=log, cwd=self.folder)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} does not listen: {self.folder}/output")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def client(self):
        return ProxyClient(self.port)


class ProxyClient:
    def __init__(self, port):
        self.port, self.writer = port, None

    async def load(self, method, target, fields):
        for attempt in (1, 2):
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            body = "x" if method in ("POST", "PUT") else ""
            lines = [f"{method} {target} HTTP/1.1", "Host: origin.example"] + [f"{name}: {value}" for name, value in fields]
            if body:
                lines.append("Content-Length: 1")
            try:
                self.writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1"))
                return await self.answer(method)
            except (asyncio.IncompleteReadError, ConnectionError):
                # A cache closes a connection that was idle.
                self.close()
        return 0, ""

    async def answer(self, method):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if ":" in line}
        body = b""
        if method == "HEAD" or status in (204, 304):
            pass
        elif "chunked" in fields.get("transfer-encoding", ""):
            while length := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                body += await self.reader.readexactly(length)
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
        elif "content-length" in fields:
            body = await self.reader.readexactly(int(fields["content-length"]))
        else:
            body = await self.reader.read()
        if fields.get("connection", "").lower() == "close":
            self.close()
        return status, body.decode("latin-1")

    def close(self):
        if self.writer:
            self.writer.close()
        self.writer = None


NGINX = """daemon off; worker_processes 1; pid %DIR%/pid; error_log %DIR%/error; user root;
events { worker_connections 8192; }
http { access_log off; client_body_temp_path %DIR%/b; proxy_temp_path %DIR%/t; proxy_cache_path %DIR%/c keys_zone=z:64m levels=1:2 use_temp_path=off;
  fastcgi_temp_path %DIR%/f; uwsgi_temp_path %DIR%/u; scgi_temp_path %DIR%/s;
  upstream origin { server 127.0.0.1:%ORIGIN%; keepalive 64; }
  server { listen 127.0.0.1:%PORT% backlog=2000; location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_cache z; proxy_cache_key $uri; proxy_cache_revalidate on; } } }
"""
VARNISH = 'vcl 4.1; backend default { .host = "127.0.0.1"; .port = "%ORIGIN%"; }\n'
SQUID = """http_port 127.0.0.1:%PORT% accel defaultsite=origin.example
cache_peer 127.0.0.1 parent %ORIGIN% 0 no-query originserver name=origin
acl all_there src all
http_access allow all
cache_mem 256 MB
memory_cache_shared off
collapsed_forwarding off
access_log none
cache_log %DIR%/log
cache_store_log none
pid_filename %DIR%/pid
coredump_dir %DIR%
refresh_pattern . 0 20% 4320
shutdown_lifetime 1 second
visible_hostname laboratory
"""
APACHE = """ServerRoot %DIR%
ServerName origin.example
PidFile %DIR%/pid
ErrorLog %DIR%/error
Listen 127.0.0.1:%PORT%
User www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule cache_module /usr/lib/apache2/modules/mod_cache.so
LoadModule cache_disk_module /usr/lib/apache2/modules/mod_cache_disk.so
CacheRoot %DIR%
CacheEnable disk /
CacheQuickHandler on
ProxyPreserveHost On
ProxyPass / http://127.0.0.1:%ORIGIN%/
"""
HAPROXY = """global
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
cache laboratory
  total-max-size 128
  max-age 3600
  process-vary on
frontend all
  bind 127.0.0.1:%PORT%
  http-request cache-use laboratory
  http-response cache-store laboratory
  default_backend origin
backend origin
  server origin 127.0.0.1:%ORIGIN%
"""


def proxies():
    return [
        Proxy("nginx", ["nginx", "-c", "%DIR%/nginx.conf", "-e", "%DIR%/error"], {"nginx.conf": NGINX}),
        Proxy("varnish", ["varnishd", "-F", "-a", "127.0.0.1:%PORT%", "-f", "%DIR%/vcl", "-n", "%DIR%/n", "-s", "malloc,256m", "-j", "none",
                          "-p", "default_grace=0", "-p", "default_ttl=0", "-p", "default_keep=100", "-T", "127.0.0.1:0"], {"vcl": VARNISH}),
        Proxy("squid", ["squid", "-n", "laboratory", "-N", "-f", "%DIR%/conf"], {"conf": SQUID}),
        Proxy("apache", ["apache2", "-DFOREGROUND", "-f", "%DIR%/conf"], {"conf": APACHE}),
        Proxy("haproxy", ["haproxy", "-db", "-f", "%DIR%/conf"], {"conf": HAPROXY}),
    ]


class Library:
    """A Python library, with a cache for each history."""
    shared = False

    def __init__(self, name, make):
        self.name, self.make = name, make

    async def start(self, origin_port):
        self.origin = f"http://127.0.0.1:{origin_port}"

    def stop(self):
        pass

    async def client(self):
        return LibraryClient(self.origin, self.make())


class LibraryClient:
    def __init__(self, origin, request):
        self.origin, self.request = origin, request

    async def load(self, method, target, fields):
        data = "x" if method in ("POST", "PUT") else None
        def run():
            try:
                return self.request(method, self.origin + target, dict(fields), data)
            except Exception:
                return 0, ""
        return await asyncio.get_running_loop().run_in_executor(None, run)

    def close(self):
        pass


def requests_cache():
    import requests_cache
    session = requests_cache.CachedSession(backend="memory", cache_control=True, expire_after=0, allowable_methods=("GET", "HEAD"))
    return lambda method, url, fields, data: of_requests(session.request(method, url, headers=fields, data=data, allow_redirects=False))


def cachecontrol():
    import requests, cachecontrol
    session = cachecontrol.CacheControl(requests.Session())
    return lambda method, url, fields, data: of_requests(session.request(method, url, headers=fields, data=data, allow_redirects=False))


def hishel():
    import hishel, hishel.httpx, httpx, sqlite3
    storage = hishel.SqliteStorage(connection=sqlite3.connect(":memory:", check_same_thread=False))
    client = httpx.Client(transport=hishel.httpx.CacheTransport(httpx.HTTPTransport(), storage, rfc=True))
    def load(method, url, fields, data):
        response = client.request(method, url, headers=fields, content=data)
        return response.status_code, response.text
    return load


def of_requests(response):
    return response.status_code, response.text


def libraries():
    return [Library("requests-cache", requests_cache), Library("CacheControl", cachecontrol), Library("hishel", hishel)]


class Ours:
    """The program `Player`, by one of its ways to load."""
    program = None

    def __init__(self, way):
        self.name, self.way, self.shared = f"ours ({way})", way, way == "shared"

    async def start(self, origin_port):
        self.origin = f"http://127.0.0.1:{origin_port}"
        if Ours.program is None:
            Ours.program = await Program().start()

    def stop(self):
        if Ours.program:
            Ours.program.stop()
            Ours.program = None

    async def client(self):
        return self

    async def load(self, method, target, fields):
        return await Ours.program.load(self.way, method, self.origin + target, fields)

    def close(self):
        pass


class Program:
    async def start(self):
        self.folder = tempfile.mkdtemp(prefix="lab-ours-")
        binary = os.environ.get("LABORATORY_PLAYER", HERE / "Player/.build/release/Player")
        self.process = await asyncio.create_subprocess_exec(
            binary, self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 20)
        self.waiting, self.count = {}, 0
        self.reading = asyncio.create_task(self.read())
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            answer = json.loads(line)
            self.waiting.pop(answer["id"]).set_result((answer["status"], answer["body"]))

    async def load(self, way, method, url, fields):
        self.count += 1
        order = {"id": self.count, "way": way, "method": method, "url": url, "fields": fields}
        self.waiting[self.count] = answer = asyncio.get_running_loop().create_future()
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        await self.process.stdin.drain()
        return await answer

    def stop(self):
        self.reading.cancel()
        self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def all_players():
    return [Ours("session"), Ours("direct"), Ours("shared")] + proxies() + libraries()
