"""Those who play a history: caches behind a socket, libraries in this process, and programs. Each loads one request after the other, and says what
its client got: the status, the body, and the fields by their names in lower case."""
import asyncio, importlib.metadata, json, os, pathlib, re, shutil, signal, socket, subprocess, tempfile
from origin import fields_of

WITH_BODY = ("POST", "PUT", "PATCH")
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
os.environ["PATH"] += ":/usr/sbin"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def output(*command):
    """What a command prints, without the clock of the laboratory."""
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return found.stdout.strip()


class Proxy:
    """A cache in front of the origin. A client has one connection for a history."""
    shared, sees_clock, survives = True, True, False

    def __init__(self, name, command, files, version, **differs):
        self.name, self.command, self.files, self.versioned = name, command, files, version
        self.__dict__.update(differs)

    def missing(self):
        return None if shutil.which(self.command[0]) else f"{self.command[0]} is not installed"

    def version(self):
        return re.search(r"\d+\.\d+(\.\d+)?", output(*self.versioned))[0]

    async def start(self, origin_port):
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix=f"lab-{self.name}-")
        os.chmod(self.folder, 0o777)
        self.values = {"PORT": str(self.port), "ORIGIN": str(origin_port), "DIR": self.folder}
        for name, text in self.files.items():
            path = pathlib.Path(self.folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(self.filled(text))
        await self.run()

    def filled(self, text):
        for key, value in self.values.items():
            text = text.replace(f"%{key}%", value)
        return text

    async def run(self):
        self.free = []
        with open(pathlib.Path(self.folder, "output"), "a") as log:
            self.process = subprocess.Popen([self.filled(word) for word in self.command], stdout=log, stderr=log, cwd=self.folder)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} does not listen: {self.folder}/output")

    async def restart(self):
        if self.survives:
            self.end()
            await self.run()

    def end(self):
        for client in self.free:
            client.close()
        if not self.survives:
            # Squid and Traffic Server would wait for a clock that stands.
            self.process.kill()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def stop(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self):
        return self

    async def load(self, method, target, fields):
        client = self.free.pop() if self.free else ProxyClient(self.port)
        answer = await client.load(method, target, fields)
        self.free.append(client)
        return answer


class ProxyClient:
    def __init__(self, port):
        self.port, self.writer = port, None

    async def load(self, method, target, fields):
        for attempt in (1, 2):
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            body = "x" if method in WITH_BODY else ""
            lines = [f"{method} {target} HTTP/1.1", "Host: origin.example"] + [f"{name}: {value}" for name, value in fields]
            if body:
                lines.append("Content-Length: 1")
            try:
                self.writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1"))
                return await self.answer(method)
            except (asyncio.IncompleteReadError, ConnectionError):
                # A cache closes a connection that was idle.
                self.close()
        return 0, "", {}

    async def answer(self, method):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        fields = fields_of(head[1:])
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
        return status, body.decode("latin-1"), fields

    def close(self):
        if self.writer:
            self.writer.close()
        self.writer = None


NGINX = """daemon off; worker_processes 1; pid %DIR%/pid; error_log %DIR%/error; user root;
events { worker_connections 8192; }
http { access_log off; client_body_temp_path %DIR%/b; proxy_temp_path %DIR%/t;
  proxy_cache_path %DIR%/c keys_zone=z:64m levels=1:2 use_temp_path=off inactive=30d;
  fastcgi_temp_path %DIR%/f; uwsgi_temp_path %DIR%/u; scgi_temp_path %DIR%/s;
  upstream origin { server 127.0.0.1:%ORIGIN%; keepalive 64; keepalive_requests 1000000; }
  keepalive_requests 1000000;
  server { listen 127.0.0.1:%PORT% backlog=2000;
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
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
CacheRoot %DIR%/cache
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
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


# A layout of its own, so that nothing of the system's configuration is used.
TRAFFIC_SERVER = """prefix: %DIR%
exec_prefix: %DIR%
bindir: /usr/bin
sbindir: /usr/bin
sysconfdir: %DIR%/etc
datadir: %DIR%/data
includedir: %DIR%/include
libdir: %DIR%/lib
libexecdir: /usr/lib/trafficserver/modules
localstatedir: %DIR%/run
runtimedir: %DIR%/run
logdir: %DIR%/log
mandir: %DIR%/man
infodir: %DIR%/info
cachedir: %DIR%/cache
"""
RECORDS = """CONFIG proxy.config.http.server_ports STRING %PORT%:ipv4:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.cache.ram_cache.size INT 128M
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 360000
CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 360000
CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 360000
CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 360000
"""


def proxies():
    return [
        Proxy("nginx", ["nginx", "-c", "%DIR%/nginx.conf", "-e", "%DIR%/error"], {"nginx.conf": NGINX}, ["nginx", "-v"], survives=True),
        Proxy("varnish", ["varnishd", "-F", "-a", "127.0.0.1:%PORT%", "-f", "%DIR%/vcl", "-n", "%DIR%/n", "-s", "malloc,256m", "-j", "none",
                          "-p", "default_grace=0", "-p", "default_ttl=0", "-p", "default_keep=100", "-T", "127.0.0.1:0"], {"vcl": VARNISH},
              ["varnishd", "-V"]),
        Proxy("squid", ["squid", "-n", "laboratory%PORT%", "-N", "-f", "%DIR%/conf"], {"conf": SQUID}, ["squid", "-v"]),
        Proxy("apache", ["apache2", "-DFOREGROUND", "-f", "%DIR%/conf"], {"conf": APACHE, "cache/readme": ""}, ["apache2", "-v"], survives=True),
        # Its clock goes on by itself when that of the system jumps.
        Proxy("haproxy", ["haproxy", "-db", "-f", "%DIR%/conf"], {"conf": HAPROXY}, ["haproxy", "-v"], sees_clock=False),
        Proxy("trafficserver", ["traffic_server", "--run-root=%DIR%/runroot.yaml"], {
            "runroot.yaml": TRAFFIC_SERVER, "etc/records.config": RECORDS, "etc/storage.config": "%DIR%/cache 256M\n",
            "etc/remap.config": "map / http://127.0.0.1:%ORIGIN%/\n", "cache/readme": "", "run/readme": "", "log/readme": "",
            "etc/ip_allow.yaml": "ip_allow:\n  - {apply: in, ip_addrs: 0/0, action: allow, methods: ALL}\n",
        }, ["traffic_server", "-V"]),
    ]


class Library:
    """A Python library, with a cache for each history."""
    shared, sees_clock, survives = False, True, False

    def __init__(self, name, module, make):
        self.name, self.module, self.make = name, module, make

    def missing(self):
        try:
            importlib.metadata.version(self.module)
        except importlib.metadata.PackageNotFoundError:
            return f"pip has no {self.module}"

    def version(self):
        return importlib.metadata.version(self.module)

    async def start(self, origin_port):
        self.origin = f"http://127.0.0.1:{origin_port}"

    async def restart(self):
        pass

    def stop(self):
        pass

    def client(self):
        return LibraryClient(self.origin, self.make())


class LibraryClient:
    def __init__(self, origin, request):
        self.origin, self.request = origin, request

    async def load(self, method, target, fields):
        data = "x" if method in WITH_BODY else None
        def run():
            try:
                return self.request(method, self.origin + target, dict(fields), data)
            except Exception:
                return 0, "", {}
        return await asyncio.get_running_loop().run_in_executor(None, run)


def requests_cache():
    import requests_cache
    session = requests_cache.CachedSession(backend="memory", cache_control=True, expire_after=0, allowable_methods=("GET", "HEAD"))
    session.trust_env = False
    return lambda method, url, fields, data: plainly(session.request(method, url, headers=fields, data=data, allow_redirects=False))


def cachecontrol():
    import requests, cachecontrol
    session = cachecontrol.CacheControl(requests.Session())
    session.trust_env = False
    return lambda method, url, fields, data: plainly(session.request(method, url, headers=fields, data=data, allow_redirects=False))


def hishel():
    import hishel, hishel.httpx, httpx, sqlite3
    storage = hishel.SqliteStorage(connection=sqlite3.connect(":memory:", check_same_thread=False))
    # The connections are shared: to make a transport takes many times as long as a history.
    if not hasattr(httpx, "of_all"):
        httpx.of_all = httpx.HTTPTransport(verify=False, limits=httpx.Limits(max_connections=None))
    # By default it is a shared cache.
    private = hishel.CacheOptions(shared=False)
    client = httpx.Client(transport=hishel.httpx.CacheTransport(httpx.of_all, storage, rfc=private), trust_env=False)
    return lambda method, url, fields, data: plainly(client.request(method, url, headers=fields, content=data))


def plainly(response):
    return response.status_code, response.text, {name.lower(): value for name, value in response.headers.items()}


def libraries():
    return [
        Library("requests-cache", "requests-cache", requests_cache), Library("CacheControl", "CacheControl", cachecontrol),
        Library("hishel", "hishel", hishel),
    ]


class Program:
    """A process that loads what it is asked for, line by line, and answers in any order. `%DIR%` is its folder."""
    prepare = None

    def __init__(self, command, coded, decoded):
        self.command, self.coded, self.decoded = command, coded, decoded
        self.users, self.folder = 0, None

    async def start(self):
        self.users += 1
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="lab-program-")
            os.mkdir(self.folder + "/caches")
            self.running = asyncio.create_task(self.prepare_and_run())
        await asyncio.shield(self.running)

    def filled(self, command):
        return [word.replace("%DIR%", self.folder) for word in command]

    async def prepare_and_run(self):
        if self.prepare:
            await (await asyncio.create_subprocess_exec(*self.filled(self.prepare))).wait()
        await self.run()

    async def run(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.filled(self.command), self.folder + "/caches", stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 20)
        self.waiting, self.count = {}, 0
        # The first line says which ways to load there are.
        self.ways = (await self.process.stdout.readline()).decode().split()
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        while line := await self.process.stdout.readline():
            number, *answer = self.decoded(line)
            self.waiting.pop(number).set_result(answer)

    async def load(self, *order):
        self.count += 1
        self.waiting[self.count] = answer = asyncio.get_running_loop().create_future()
        self.process.stdin.write(self.coded(self.count, *order))
        return await answer

    async def restart(self):
        """It ends as a program does, and finds in its folder what it had stored."""
        self.process.stdin.close()
        await self.process.wait()
        await self.run()

    def stop(self):
        self.users -= 1
        if self.users == 0:
            self.reading.cancel()
            if self.process.returncode is None:
                self.process.kill()
            shutil.rmtree(self.folder, ignore_errors=True)


def coded_as_json(number, way, method, url, fields):
    return json.dumps({"id": number, "way": way, "method": method, "url": url, "fields": fields}).encode() + b"\n"


def decoded_from_json(line):
    answer = json.loads(line)
    return answer["id"], answer["status"], answer["body"], answer["fields"]


def coded_by_tabs(number, way, method, url, fields):
    return "\t".join([str(number), method, url, *(part for field in fields for part in field)]).encode() + b"\n"


def decoded_from_tabs(line):
    number, status, body, *fields = line.decode().rstrip("\n").split("\t")
    return int(number), int(status), body, dict(zip(fields[::2], fields[1::2]))


class Ours:
    """A way to load of a program."""
    sees_clock, survives = True, True

    def __init__(self, name, way, program, shared, lead):
        self.name, self.way, self.program, self.shared = name, way, program, shared
        # Of several ways that share a program, the one that starts it again.
        self.lead = lead

    def missing(self):
        commands = [command for command in (self.program.command, self.program.prepare) if command]
        for command in commands:
            if not shutil.which(command[0]):
                return f"{command[0]} is missing"
        files = [part for command in commands for word in command if word.startswith("/") for part in word.split(":")]
        return next((f"{file} is missing" for file in files if not os.path.exists(file) and "%DIR%" not in file), None)

    def version(self):
        if self.way == "okhttp":
            return self.program.ways[1].removeprefix("okhttp/")
        return output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")

    async def start(self, origin_port):
        self.origin = f"http://127.0.0.1:{origin_port}"
        await self.program.start()
        return self.way in self.program.ways

    async def restart(self):
        if self.lead:
            await self.program.restart()

    def stop(self):
        self.program.stop()

    def client(self):
        return self

    async def load(self, method, target, fields):
        return await self.program.load(self.way, method, self.origin + target, fields)


def programs():
    player = os.environ.get("LABORATORY_PLAYER", str(ROOT / ".build/nested/release/Player"))
    ours = Program([player], coded_as_json, decoded_from_json)
    jars = "/usr/share/java/okhttp.jar:/usr/share/java/okio.jar"
    java = Program(["java", "-Xshare:auto", "-cp", f"{jars}:%DIR%", "Peer"], coded_by_tabs, decoded_from_tabs)
    java.prepare = ["javac", "-cp", jars, "-d", "%DIR%", str(HERE / "Peer.java")]
    return [
        Ours("ours (direct)", "direct", ours, False, True), Ours("ours (shared)", "shared", ours, True, False),
        Ours("ours (session)", "session", ours, False, False), Ours("ours (client)", "client", ours, False, False),
        Ours("ours (shared client)", "shared-client", ours, True, False), Ours("okhttp", "okhttp", java, False, True),
    ]


def all_players():
    return programs() + proxies() + libraries()
