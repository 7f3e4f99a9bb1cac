# Completion of custream for bash: `custream --complete` says what may stand here.
_custream() {
    local cur=${COMP_WORDS[COMP_CWORD]} line words=()
    [ "$cur" = "=" ] && cur=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            ":program $COMP_CWORD") mapfile -t COMPREPLY < <(compgen -c -- "$cur"); return ;;
            :*) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames; return ;;
            *) words+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$cur")
    case ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac
}
complete -F _custream custream
