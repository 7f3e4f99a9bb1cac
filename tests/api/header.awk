# What a preprocessed custream.h (cc -E -P) declares, one a line: want=functions, or want=layout, as FIELD(structure, field) and NUMBER(enumerator).
# Comments and macros are gone by then: functions are what stands before a parenthesis, but in a typedef or before (*, and each CUSTREAM_ word is an
# enumerator.
{ text = text " " $0 }

function print_functions(    seen, name) {
    gsub(/typedef [^;{}]*;/, "", text)
    while (match(text, /custream_[a-z0-9_]+ *\([^*]/)) {
        name = substr(text, RSTART, RLENGTH)
        sub(/ *\(./, "", name)
        if (!seen[name]++) print name
        text = substr(text, RSTART + RLENGTH)
    }
}

# "int a, b" and "int (*f)(void *)" and "char c[4]": each declarator's last word.
function print_fields(type, body,    i, k, n, m, declarations, names, name) {
    print "TYPE(" type ")"
    n = split(body, declarations, ";")
    for (i = 1; i <= n; i++) {
        if (declarations[i] ~ /\(\*/) sub(/\).*/, "", declarations[i])
        m = split(declarations[i], names, ",")
        for (k = 1; k <= m; k++) {
            name = names[k]
            sub(/\[.*/, "", name)
            gsub(/ +$/, "", name)
            sub(/.*[^A-Za-z0-9_]/, "", name)
            if (name != "") print "FIELD(" type ", " name ")"
        }
    }
}

function print_layout(    rest, body, type, seen, name) {
    rest = text
    while (match(rest, /typedef struct custream_[a-z0-9_]+ *\{[^}]*\} *custream_[a-z0-9_]+ *;/)) {
        body = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        type = body
        sub(/.*\} */, "", type)
        sub(/ *;$/, "", type)
        sub(/^[^{]*\{/, "", body)
        sub(/\}.*/, "", body)
        print_fields(type, body)
    }
    while (match(text, /CUSTREAM_[A-Z0-9_]+/)) {
        name = substr(text, RSTART, RLENGTH)
        if (!seen[name]++) print "NUMBER(" name ")"
        text = substr(text, RSTART + RLENGTH)
    }
}

END {
    if (want == "functions") print_functions()
    else print_layout()
}
