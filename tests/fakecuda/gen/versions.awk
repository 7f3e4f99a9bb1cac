# Which symbol a base name and a version mean, for cuGetProcAddress: from the two headers, by machine.
#
# Input: the preprocessed cuda.h (all versions declared), then cudaTypedefs.h. The first declares the symbols of a base name (cuX, cuX_v2, cuX_v3, and
# the same with _ptds or _ptsz), the second the versions (PFN_cuX_v4000, PFN_cuX_v7000_ptsz). In order, the one's symbols are the other's versions.
# Output, unsorted, a line a symbol: base version per_thread symbol

function split_name(name) { # sets base, number, sibling
    sibling = ""
    if (name ~ /_pt(sz|ds)$/) { sibling = substr(name, length(name) - 4); name = substr(name, 1, length(name) - 5) }
    number = 1
    if (match(name, /_v[0-9]+$/)) { number = substr(name, RSTART + 2) + 0; name = substr(name, 1, RSTART - 1) }
    base = name
}

function insert(list, key, value,    n, i) { # keeps list[key, 1..count[key]] ascending
    n = ++count_of[key]
    for (i = n; i > 1 && list[key, i - 1] > value; i--) list[key, i] = list[key, i - 1]
    list[key, i] = value
}

FNR == 1 { file++; for (k in count_of) declared[k] = count_of[k]; for (k in count_of) delete count_of[k] }

file == 1 {
    line = " " $0
    while (match(line, /[^A-Za-z0-9_*]cu[A-Z][A-Za-z0-9_]* *\(/)) {
        name = substr(line, RSTART + 1, RLENGTH - 2)
        sub(/ +$/, "", name)
        line = substr(line, RSTART + RLENGTH)
        if (name in seen) continue
        seen[name] = 1
        split_name(name)
        insert(symbols, base sibling, number)
        symbol[base sibling, number] = name
    }
}

file == 2 {
    line = $0
    while (match(line, /\*PFN_cu[A-Za-z0-9_]+\)/)) {
        name = substr(line, RSTART + 5, RLENGTH - 6)
        line = substr(line, RSTART + RLENGTH)
        split_name(name)
        insert(versions, base sibling, number)
        base_of[base sibling] = base
        sibling_of[base sibling] = sibling
    }
}

END {
    for (key in count_of) {
        if (declared[key] != count_of[key])
            print "versions.awk: " key ": " declared[key] " symbols, " count_of[key] " versions" > "/dev/stderr"
        # The newest symbol is the newest version, whatever is missing below.
        for (i = 0; i < count_of[key] && i < declared[key]; i++)
            print base_of[key], versions[key, count_of[key] - i], (sibling_of[key] != ""), symbol[key, symbols[key, declared[key] - i]]
    }
}
