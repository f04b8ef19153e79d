"""The time of day of all who play, which the laboratory sets: `clock.c` is loaded before their C library. So a wait of minutes takes no time, and all
that happens between two waits happens in the same second."""
import mmap, os, pathlib, struct, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent


class Clock:
    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 16)
        self.base = struct.unpack("qq", self.memory[:])[0] // 10**9

    def set(self, seconds):
        """Only forward: the tests of a cache may not take a clock that goes back for a fault of ours."""
        self.base = seconds
        self.memory[:] = struct.pack("qq", seconds * 10**9, time.monotonic_ns())


def start():
    """The clock of this process. It starts itself again, since a library is loaded at the start only."""
    if "LABORATORY_CLOCK" not in os.environ:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="lab-clock-"))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "clock.so", HERE / "clock.c"], check=True)
        (folder / "now").write_bytes(struct.pack("qq", int(time.time()) * 10**9, time.monotonic_ns()))
        os.environ.update(LD_PRELOAD=str(folder / "clock.so"), LABORATORY_CLOCK=str(folder / "now"))
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return Clock(os.environ["LABORATORY_CLOCK"])
