# Stubs of a C library to link against, as one assembly file on stdout, from what `readelf -W --dyn-syms` says of glibc.
#
#   awk -v soname=libdl.so.2 -v floor=2.28 -v versions=FILE -f symbols.awk source=libc.so.6 LIST source=libdl.so.2 LIST
#
# floor: no version newer than this, where glibc has an older one. versions: where the stub's version script goes.
#
# glibc 2.34 moved the functions of libpthread and libdl into libc, and gave them a second, new version. An older glibc has
# them in the old library under the old version. `home` says where. A moved function without a row there keeps its new
# version, which tests/cases/test_product.py reports.
BEGIN {
    home["^dl"] = "libdl.so.2"
    home["^(pthread|sem|thrd|mtx|cnd|tss|call_once)"] = "libpthread.so.0"
    home["^__libc_start_main$"] = "libc.so.6"
    if (soname == "libm.so.6") home["."] = soname
}

function number(version,    part)
{
    split(version, part, ".")
    return part[1] * 1000000 + part[2] * 1000 + part[3]
}

function home_of(name,    pattern)
{
    for (pattern in home)
        if (name ~ pattern) return home[pattern]
    return ""
}

($5 == "GLOBAL" || $5 == "WEAK") && $7 ~ /^[0-9]+$/ && $8 ~ /@GLIBC_[0-9]/ {
    split($8, part, /@+GLIBC_/)
    name = part[1]
    version = part[2]
    if ($8 ~ /@@/) {
        newest[name] = version
        library[name] = source
        address[name] = source $2
        size[name] = $3
        type[name] = $4 == "OBJECT" ? "object" : "function"
    } else if (number(version) <= number(floor) && number(version) > number(older[name])) {
        older[name] = version
    }
}

END {
    for (name in newest) {
        if (number(newest[name]) > number(floor) && older[name] && home_of(name)) {
            newest[name] = older[name]
            library[name] = home_of(name)
        }
        if (library[name] != soname) continue
        # What has one address is one object, also where the linker copies it into a program.
        at = type[name] == "object" ? address[name] : "functions"
        place[at] = place[at] sprintf(".globl %s_\n.type %s_,\"%s\"\n.size %s_,%d\n%s_:\n.symver %s_,%s@@GLIBC_%s\n",
                                      name, name, type[name], name, size[name], name, name, name, newest[name])
        if (size[name] > most[at]) most[at] = size[name]
        used[newest[name]] = 1
    }
    print ".section .note.GNU-stack,\"\",%progbits"
    for (at in place) printf "%s\n.balign 64\n%s.zero %d\n", at == "functions" ? ".text" : ".data", place[at], most[at] + 1
    for (version in used) printf "GLIBC_%s { };\n", version > versions
    print "none { local: *; };" > versions
}
