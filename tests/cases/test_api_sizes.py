"""Programs compiled against another version of custream.h, with smaller or larger structures, and this library: linked, and with the preload library."""
import re
import subprocess

import pytest

PROGRAM = r"""
#include <custream.h>
#include <stdio.h>
#include <string.h>

static int wrong;
static void is(const char *what, long got, long wanted)
{
    if (got != wanted) wrong = 1, fprintf(stderr, "%s is %ld, not %ld\n", what, got, wanted);
}
#define IS(expression, wanted) is(#expression, (long)(expression), (long)(wanted))
/* A structure on the stack, and what lies behind it. */
#define GUARDED(type) struct { type it; unsigned char behind[64]; } guarded; memset(&guarded, 0xaa, sizeof guarded)
#define KEPT() for (size_t i = 0; i < sizeof guarded.behind; i++) IS(guarded.behind[i], 0xaa)
#ifdef NEWER
#define UNKNOWN(call) do { IS(guarded.it.later, 0); guarded.it.later = 1; IS(call, CUSTREAM_NOT_SUPPORTED); guarded.it.later = 0; } while (0)
#define ZERO_LATER()  IS(guarded.it.later, 0)
#else
#define UNKNOWN(call) ((void)0)
#define ZERO_LATER()  ((void)0)
#endif

static void options(custream_t *stream)
{
    GUARDED(custream_options_t);
    IS(custream_options_init(&guarded.it), 0);
    IS(guarded.it.size, sizeof guarded.it);
    IS(guarded.it.device, -1), IS(guarded.it.flags, CUSTREAM_NON_BLOCKING), IS(guarded.it.band_greatest, -1), IS(guarded.it.pooled, 0);
    UNKNOWN(custream_create(stream, &guarded.it));
    guarded.it.priority = -1;
    IS(custream_create(stream, &guarded.it), 0);
    int priority = 7;
    IS(custream_get_requested_priority(*stream, &priority), 0), IS(priority, -1);
    KEPT();
}

static void event_options(custream_t stream)
{
    custream_event_t event;
    GUARDED(custream_event_options_t);
    IS(custream_event_options_init(&guarded.it), 0);
    IS(guarded.it.size, sizeof guarded.it), IS(guarded.it.device, -1), IS(guarded.it.timing, 0), IS(guarded.it.lazy, 0);
    UNKNOWN(custream_event_create(&event, &guarded.it));
    UNKNOWN(custream_record_new(stream, &guarded.it, &event));
    guarded.it.timing = 1;
    IS(custream_event_create(&event, &guarded.it), 0), IS(custream_event_release(event), 0);
    IS(custream_record_new(stream, &guarded.it, &event), 0), IS(custream_event_release(event), 0);
    KEPT();
}

static void init_options(void)
{
    GUARDED(custream_init_options_t);
    IS(custream_init_options_init(&guarded.it), 0);
    IS(guarded.it.size, sizeof guarded.it), IS(guarded.it.driver, 0);
    UNKNOWN(custream_init(&guarded.it));
    IS(custream_init(&guarded.it), 0);
    KEPT();
}

static void filled(custream_t stream, int recorded)
{
    {
        GUARDED(custream_stats_t);
        guarded.it.size = sizeof guarded.it;
        IS(custream_stats(-1, &guarded.it), 0);
        IS(guarded.it.size, sizeof guarded.it), IS(guarded.it.streams, 1), IS(guarded.it.streams_wrapped, 0);
        ZERO_LATER();
        KEPT();
    }
    {
        GUARDED(custream_history_t);
        guarded.it.size = sizeof guarded.it;
        IS(custream_trace_flush(), recorded ? 0 : CUSTREAM_NOT_SUPPORTED);
        IS(custream_history(stream, &guarded.it), recorded ? 0 : CUSTREAM_NOT_SUPPORTED);
        IS(guarded.it.size, sizeof guarded.it);
        if (recorded) IS(strcmp(guarded.it.call, "cuStreamCreateWithPriority"), 0), IS(guarded.it.records, 1);
        if (recorded) ZERO_LATER();
        KEPT();
    }
}

int main(int argc, char **argv)
{
    custream_t stream;
    (void)argv;
    init_options();
    options(&stream);
    event_options(stream);
    filled(stream, argc > 1);
    IS(custream_release(stream), 0);
    puts("done");
    return wrong;
}
"""

# The structures that the caller gives, with their last fields.
STRUCTURES = {"init_options": "make_context", "options": "name", "event_options": "single_export", "history": "bytes_copied", "stats": "pooled"}


def header(text, version):
    """custream.h with one field less, or more, in each of these structures."""
    for name, last in STRUCTURES.items():
        before = re.search(rf"typedef struct custream_{name} {{.*?\n}}", text, re.S).group()
        line = before.splitlines()[-2]
        assert re.search(rf"\b{last};", line)
        after = before.replace(line + "\n", "" if version == "older" else line + "\n    uint64_t later;\n" if version == "newer" else line + "\n")
        text = text.replace(before, after)
    return text


def test_every_structure_with_a_size_is_here(root):
    """But for the two that the library gives to the program, which looks at their size."""
    text = (root / "include/custream.h").read_text()
    assert set(re.findall(r"typedef struct custream_(\w+) \{[^}]*size_t size;", text)) == {*STRUCTURES, "hook_info", "plugin_api"}


@pytest.mark.parametrize("preloaded", [False, True], ids=["linked", "preloaded"])
@pytest.mark.parametrize("version", ["older", "same", "newer"])
def test_another_header(run_app, root, build, tmp_path, version, preloaded):
    (tmp_path / "custream.h").write_text(header((root / "include/custream.h").read_text(), version))
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fno-stack-protector", *(["-DNEWER"] if version == "newer" else []), f"-I{tmp_path}",
                    tmp_path / "program.c", "-o", tmp_path / "program", f"-L{build}", "-lcustream", f"-Wl,-rpath,{build}"], check=True)
    run = run_app([tmp_path / "program", *(["recorded"] if preloaded else [])], shim=preloaded, env={"CUSTREAM_GPU": None}).check()
    assert (run.stdout, run.stderr) == ("done\n", "")
