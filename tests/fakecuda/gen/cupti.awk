# The enumerators whose names begin with `prefix` as NAME(name without `cut`, number) lines, from one of CUPTI's headers.
$1 ~ "^" prefix && match($0, /= *[0-9]+ *,/) {
    name = $1
    number = substr($0, RSTART + 1, RLENGTH - 2)
    gsub(/ /, "", number)
    sub("^" cut, "", name)
    print "NAME(" name ", " number ")"
}
