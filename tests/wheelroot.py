"""The wheel as files: unpacked, as pip would, and in a root that has the C library and nothing else."""
import ctypes
import os
import shutil
import subprocess
import zipfile

CLONE_NEWUSER = 0x10000000
GLIBC = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"]


def wheel_of(build):
    """What `make wheel` made."""
    (found,) = (build / "wheel").glob("*.whl")
    return found


def unpack(wheel, folder):
    """As pip does it, with the mode of programs."""
    with zipfile.ZipFile(wheel) as file:
        for info in file.infolist():
            path = file.extract(info, folder)
            if info.external_attr >> 16 & 0o111 and not info.is_dir():
                os.chmod(path, 0o755)
    return folder


class Root:
    """A folder that programs take for the whole file system."""

    def __init__(self, folder, build, wheel):
        self.folder = folder
        self.has_proc = True
        self.native = unpack(wheel, folder / "wheel") / "custream/native"
        (folder / "app").mkdir()
        (folder / "tmp").mkdir()
        (folder / "proc/self").mkdir(parents=True)
        for program in (build / "tests/demo", *(build / "fakecuda").glob("lib*.so*")):
            shutil.copy(program, folder / "app")
        for line in subprocess.run(["ldd", self.native / "custream", build / "tests/demo"], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            path = words[2] if len(words) > 3 else words[0] if words[0].startswith("/lib") else ""
            if os.path.basename(path) in GLIBC:
                self.put(path, os.path.dirname(path))
            elif "ld-linux" in path:
                self.put(path, os.path.dirname(path))

    def put(self, path, folder):
        place = self.folder / folder.strip("/")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), place / os.path.basename(path))

    def run(self, *argv, **env):
        """A program in it, to its end."""
        return subprocess.run(argv, **self.inside(argv[0], env), capture_output=True, check=False, timeout=60)

    def start(self, *argv, **env):
        """A program in it, which goes on."""
        return subprocess.Popen(argv, **self.inside(argv[0], env), stdout=subprocess.PIPE)  # pylint: disable=consider-using-with

    def inside(self, program, env):
        """How to start one. Root may change the root; others in a namespace of their own."""
        here = self.folder / "proc/self/exe"  # what of /proc the loader and the command read
        here.unlink(missing_ok=True)
        if self.has_proc:
            here.symlink_to(program)

        def enter():
            if os.geteuid():
                ctypes.CDLL(None).unshare(CLONE_NEWUSER)
            os.chroot(self.folder)
            os.chdir("/")

        return {"preexec_fn": enter, "env": {"LD_LIBRARY_PATH": "/app", **env}, "text": True}
