"""What a newcomer types: make in a fresh clone, make install, LD_PRELOAD by name."""
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

INSTALLED = {"lib/libcustream_shim.so", "lib/libcustream_shim_dlsym.so", "lib/libcustream.so.0", "lib/libcustream.so", "lib/pkgconfig/custream.pc",
             "bin/custream", "include/custream.h", "share/man/man1/custream.1", "share/bash-completion/completions/custream",
             "share/zsh/site-functions/_custream", "share/fish/vendor_completions.d/custream.fish"}

# A Python whose pip has its wheels at hand.
PIP = """#!/bin/bash
case "$*" in
    "-m pip --version") ;;
    *" --require-hashes "*)
        while [ "$1" != --dest ]; do shift; done
        mkdir -p "$2/w/one/one"
        touch "$2/w/one/LICENSE" "$2/w/one/one/"{yyjson.c,yyjson.h,memory.h}
        tar -czf "$2/one.tar.gz" -C "$2/w" one
        rm -r "$2/w" ;;
    *" download "*)
        while [ "$1" != --dest ]; do shift; done
        for wheel in "${@:3}"; do
            mkdir -p "$2/w/nvidia/any/include"
            touch "$2/w/nvidia/any/include/"{cuda.h,"$wheel"}
            (cd "$2/w" && %s -m zipfile -c "../$wheel.whl" nvidia)
        done
        rm -r "$2/w" ;;
    *) exec %s "$@" ;;
esac
"""


def run(*argv, cwd, **env):
    return subprocess.run([str(a) for a in argv], cwd=cwd, env={**os.environ, "MAKEFLAGS": "", **{k: str(v) for k, v in env.items()}}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


@pytest.fixture
def script(tmp_path):
    """script(name, text) is a program in a folder of its own, tmp_path/bin, for the front of PATH."""
    (tmp_path / "bin").mkdir()

    def write(name, text):
        path = tmp_path / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path
    return write


def path_with(tmp_path):
    return f"{tmp_path}/bin:{os.environ['PATH']}"


def test_make_in_a_fresh_clone_gets_the_headers_first(root, tmp_path):
    files = run("git", "ls-files", "-co", "--exclude-standard", cwd=root).stdout
    clone = tmp_path / "clone"
    clone.mkdir()
    subprocess.run(["tar", "-C", root, "-cT", "-", "-f", tmp_path / "tree.tar"], input="\n".join(f for f in files.splitlines() if (root / f).exists()), text=True, check=True)
    subprocess.run(["tar", "-C", clone, "-xf", tmp_path / "tree.tar"], check=True)
    done = run("make", "-n", "all", "test-programs", cwd=clone, HOME=tmp_path)
    assert done.returncode == 0, done.stderr
    fetched, compiled = [done.stdout.index(text) for text in ("tools/headers.sh build", " -c ")]
    assert fetched < compiled and done.stdout.count("tools/headers.sh") == 1
    assert run("make", "-n", "B=out", "install", cwd=clone).stdout.count("tools/headers.sh") == 1


def test_headers_are_fetched_once(root, tmp_path, script):
    python = script("python", PIP % (sys.executable, sys.executable))
    folder = tmp_path / "headers"
    done = run("tools/headers.sh", "build", cwd=root, HEADERS=folder, PYTHON=python, VENV=tmp_path)
    assert done.returncode == 0 and done.stdout.count("getting from PyPI into ") == 3, done.stderr
    assert {p.name for p in folder.iterdir()} == {"13.5", "cupti", "yyjson"}
    assert (folder / "13.5/wheels.txt").read_text() == "nvidia-cuda-runtime==13.5.37 nvidia-cuda-crt==13.5.37\n"
    assert {p.name for p in (folder / "13.5").iterdir()} == {"wheels.txt", "cuda.h", "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-crt==13.5.37"}
    assert {p.name for p in (folder / "yyjson").iterdir()} == {"wheels.txt", "LICENSE", "yyjson.c", "yyjson.h"}  # another file's name may be a system header's
    again = run("tools/headers.sh", "build", cwd=root, HEADERS=folder, PYTHON="/nowhere", VENV=tmp_path, CC="/nowhere", PATH="/usr/bin:/bin")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_what_building_lacks_is_named(root, tmp_path, script):
    """Without a compiler that finds the libraries' headers; nothing is fetched then."""
    python = script("python", PIP % (sys.executable, sys.executable))
    folder = tmp_path / "headers"
    done = run("tools/headers.sh", "build", cwd=root, HEADERS=folder, PYTHON=python, VENV=tmp_path, CC="gcc -nostdinc")
    assert done.returncode == 1 and done.stdout == "" and not folder.exists()
    assert done.stderr.splitlines()[1] == "custream: as root: apt-get update && apt-get install -y --no-install-recommends libc6-dev libcjson-dev zlib1g-dev libelf-dev libmicrohttpd-dev"
    done = run("tools/headers.sh", "build", cwd=root, HEADERS=folder, PYTHON=python, VENV=tmp_path, CC="no-such-compiler")
    assert done.returncode == 1 and re.search(r"install -y --no-install-recommends gcc\b", done.stderr)


def test_what_the_wheel_lacks_is_named(root, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/dirname").symlink_to(shutil.which("dirname"))
    done = run(shutil.which("bash"), "tools/microhttpd.sh", tmp_path / "out", cwd=root, PATH=tmp_path / "bin")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "install -y --no-install-recommends dpkg-dev" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_mirror_that_has_nothing_leaves_nothing_half(root, tmp_path, script):
    python = script("python", '#!/bin/sh\ncase "$*" in *" download "*) echo no such wheel >&2; exit 1;; esac\n')
    done = run("tools/headers.sh", "build", cwd=root, HEADERS=tmp_path / "headers", PYTHON=python, VENV=tmp_path)
    assert done.returncode == 1 and "copy" in done.stderr and list((tmp_path / "headers").iterdir()) == []


def test_install_and_uninstall(root, make_install, tmp_path, script):
    """Into a package's folder. The loader's cache is not touched; what is there is found by its name."""
    script("ldconfig", f"#!/bin/sh\necho called >>{tmp_path}/ldconfig\n")
    done = make_install(f"DESTDIR={tmp_path}/package", "PREFIX=/usr", env={"PATH": path_with(tmp_path)})
    assert (done.stdout, done.stderr) == ("", "")
    place = tmp_path / "package/usr"
    assert {str(p.relative_to(place)) for p in place.rglob("*") if not p.is_dir()} == INSTALLED
    assert "prefix=/usr\n" in (place / "lib/pkgconfig/custream.pc").read_text()
    for library in ("libcustream_shim.so", "libcustream_shim_dlsym.so"):
        env = {"LD_PRELOAD": library, "LD_LIBRARY_PATH": str(place / "lib")}
        loaded = subprocess.run(["/bin/cat", "/proc/self/maps"], env=env, capture_output=True, text=True, check=True)
        assert loaded.stderr == "" and str(place / "lib" / library) in loaded.stdout
    assert run(place / "bin/custream", "run", "env", cwd=tmp_path).stdout.count(str(place / "lib/libcustream_shim.so")) == 1
    done = run("make", "-s", "uninstall", f"DESTDIR={tmp_path}/package", "PREFIX=/usr", cwd=root, PATH=path_with(tmp_path))
    assert done.returncode == 0 and [p for p in place.rglob("*") if not p.is_dir()] == [] and not (tmp_path / "ldconfig").exists()


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("known", [True, False])
def test_the_loader_is_told(root, tmp_path, script, user, known):
    """By root, and where it does not look into that folder the line says what to type instead."""
    prefix = tmp_path / "prefix"
    script("id", f"#!/bin/sh\necho {user}\n")
    script("ldconfig", f"#!/bin/sh\necho \"called $*\" >>{tmp_path}/ldconfig\n" + (f"echo '\tlibcustream_shim.so (libc6,x86-64) => {prefix}/lib/libcustream_shim.so'\n" if known else ""))
    done = run("tools/ldconfig.sh", "", prefix, cwd=root, PATH=path_with(tmp_path))
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "ldconfig").read_text() == ("called \n" if user == 0 else "") + "called -p\n"
    assert f"LD_PRELOAD={'' if known else f'{prefix}/lib/'}libcustream_shim.so ./app" in done.stdout


def test_root_builds_nothing_in_a_users_tree(root, tmp_path, script):
    script("id", "#!/bin/sh\necho 0\n")
    script("stat", "#!/bin/sh\necho 1000\n")
    done = run("make", "install", f"B={tmp_path}/b", f"PREFIX={tmp_path}/p", cwd=root, PATH=path_with(tmp_path))
    assert done.returncode != 0 and "run make first, not as root" in done.stderr
    assert not (tmp_path / "b").exists() and not (tmp_path / "p").exists()
    planned = run("make", "-n", "install", f"PREFIX={tmp_path}/p", cwd=root, PATH=path_with(tmp_path))
    assert planned.returncode == 0 and "gcc" not in planned.stdout


def test_the_workflow_runs_the_check_and_keeps_the_packages(root):
    (job,) = yaml.safe_load((root / ".github/workflows/check.yml").read_text())["jobs"].values()
    steps = [step.get("run", step.get("uses")) for step in job["steps"]]
    assert steps.index("make check") < steps.index("make wheel wheel-aarch64 deb") and job["container"] == "debian:bookworm"
    assert "build/wheel/*.whl" in job["steps"][-1]["with"]["path"] and "build/aarch64/wheel/*.whl" in job["steps"][-1]["with"]["path"] and "build/deb/*.deb" in job["steps"][-1]["with"]["path"]


# ---- The Debian package: `make deb` ----

@pytest.fixture(scope="session")
def package(build):
    (found,) = (build / "deb").glob("custream_*.deb")
    return found


def test_debian_package(package, build, tmp_path):
    """Its files, what it needs by dpkg-shlibdeps, and that the loader is told."""
    run("dpkg-deb", "-R", package, tmp_path / "all", cwd=tmp_path)
    control = (tmp_path / "all/DEBIAN/control").read_text()
    depends = re.search(r"^Depends: (.*)", control, re.M)[1].split(", ")
    assert depends[0] == "libc6 (>= 2.28)" and {d.split()[0] for d in depends} >= {"libc6", "libcjson1", "zlib1g"}
    assert re.search(r"^Recommends: (.*)", control, re.M)[1].startswith("libmicrohttpd12")
    assert (tmp_path / "all/DEBIAN/triggers").read_text() == "activate-noawait ldconfig\n"
    usr = tmp_path / "all/usr"
    files = {str(p.relative_to(usr)) for p in usr.rglob("*") if not p.is_dir() and "share/doc" not in str(p) and "share/lintian" not in str(p)}
    assert files == {f + ".gz" if "/man/" in f else f for f in INSTALLED}
    listed = run("dpkg-deb", "-c", package, cwd=tmp_path).stdout
    assert all(" root/root " in line for line in listed.splitlines())
    assert run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=tmp_path / "all").returncode == 0


def test_debian_package_serves_by_the_library_s_name(package, build, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path, cwd=tmp_path)
    env = {"LD_PRELOAD": "libcustream_shim.so", "LD_LIBRARY_PATH": f"{tmp_path}/usr/lib:{build}/fakecuda", "CUSTREAM_TRACE": "t.json"}
    done = subprocess.run([build / "tests/demo"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    checked = run(tmp_path / "usr/bin/custream", "check", "t.json", cwd=tmp_path)
    assert checked.stdout.startswith("t.json: ok: "), checked.stderr
    assert run(tmp_path / "usr/bin/custream", "run", "env", cwd=tmp_path).stdout.count(f"{tmp_path}/usr/lib/libcustream_shim.so") == 1


def test_debian_package_needs_its_tools_in_one_line(root, tmp_path, script):
    for tool in ("bash", "dirname", "cat", "git"):
        (tmp_path / "bin" / tool).symlink_to(subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip())
    done = run("tools/deb/deb.sh", "build", tmp_path / "deb", cwd=root, PATH=tmp_path / "bin")
    assert (done.returncode, done.stderr) == (1, "custream: make deb needs dpkg-deb, of Debian's package dpkg-dev\n") and not (tmp_path / "deb").exists()
