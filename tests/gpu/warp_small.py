"""Makes of Warp's wheel what its own CUDA tests need, small enough to be carried to a machine without network.

    warp_small.py WHEEL FOLDER

Its library has GPU code for ten kinds of GPUs: all but that for compute capability 9.0 becomes zeros, which pack well. FOLDER gets its Python files, the
headers that its kernels are compiled with, and its libraries packed (warp/bin/*.so.xz); the examples stay out. unpack() makes a folder for PYTHONPATH of it.
"""
import glob
import lzma
import os
import shutil
import struct
import sys
import zipfile

FATBIN = struct.pack("<IHH", 0xBA55ED50, 1, 16)  # magic, version, length of the header, which ends with the length of what follows
ELF, KEPT = 2, 90
LEFT_OUT = ("warp/examples/", "warp/tests/assets/", "warp/stubs.py")


def entries(library):
    """(kind, compute capability, begin, end) of the code of each GPU in a library."""
    at = library.find(FATBIN)
    while at >= 0:
        at, end = at + 16, at + 16 + struct.unpack_from("<Q", library, at + 8)[0]
        while at < end <= len(library):
            kind, _, header, size = struct.unpack_from("<HHIQ", library, at)
            capability, = struct.unpack_from("<I", library, at + 28)
            if not header:
                break
            yield kind, capability, at + header, at + header + size
            at += header + size
        at = library.find(FATBIN, at)


def smaller(library):
    library = bytearray(library)
    for kind, capability, begin, end in list(entries(library)):
        if (kind, capability) != (ELF, KEPT):
            library[begin:end] = bytes(end - begin)
    return bytes(library)


def is_kept(name):
    return name.startswith("warp/") and not name.startswith(LEFT_OUT) and (name.endswith(".py") or name.startswith("warp/native/"))


def make(wheel, folder):
    os.makedirs(os.path.join(folder, "warp", "bin"))
    with zipfile.ZipFile(wheel) as file:
        for name in file.namelist():
            if is_kept(name):
                file.extract(name, folder)
            elif name.startswith("warp/bin/") and name.endswith(".so"):
                with lzma.open(os.path.join(folder, name + ".xz"), "wb", preset=3) as packed:
                    packed.write(smaller(file.read(name)))


def unpack(folder, to):
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.xz"), dirs_exist_ok=True)
    for path in glob.glob(os.path.join(folder, "warp", "bin", "*.so.xz")):
        with lzma.open(path) as packed, open(os.path.join(to, "warp", "bin", os.path.basename(path)[:-len(".xz")]), "wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)


if __name__ == "__main__":
    make(*sys.argv[1:])
