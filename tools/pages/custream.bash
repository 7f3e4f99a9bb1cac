# Completion of custream for bash; made by tools/pages/pages.
_custream() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} option= given= words= kind= place= i
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "run check report diff merge convert export fleet recover open inspect ps record trigger dump hang ctl options help version --help --version" -- "$cur")
        return
    fi
    # --name=value is one word or three, as COMP_WORDBREAKS has it.
    if [ "$cur" = "=" ]; then option=$prev cur= given=1
    elif [ "$prev" = "=" ]; then option=${COMP_WORDS[COMP_CWORD-2]} given=1
    else
        case $prev in -[a-z] | --*) option=$prev ;; esac
        case $cur in -*) option= ;; esac
    fi
    case $command in
        run)
            place=program
            for ((i = 2; i < COMP_CWORD; i++)); do case ${COMP_WORDS[i]} in -* | =) ;; *) [ "${COMP_WORDS[i-1]}" = -o ] || [ "${COMP_WORDS[i-1]}" = = ] || place=file ;; esac; done
            case $option in
                -o|--trace) kind=file ;;
                --force) [ -z "$given" ] || kind=words words="on off 1 0" ;;
                --full) kind=words words="drop block" ;;
                --buffer) kind=none ;;
                --keep) kind=file ;;
                --trace-max) kind=none ;;
                --default-stream) kind=words words="keep per-thread legacy audit" ;;
                --default-handles) kind=words words="zero all" ;;
                --priority) kind=none ;;
                --streams) kind=none ;;
                --jitter) kind=none ;;
                --policy) kind=file ;;
                --plugin) kind=file ;;
                --window) kind=none ;;
                --trigger) kind=file ;;
                --gpu) kind=words words="auto cupti events off" ;;
                --cupti) kind=file ;;
                --graph) kind=words words="graph node" ;;
                --counters) kind=words words="gpu streams off" ;;
                --nvtx) kind=words words="on all off" ;;
                --runtime) kind=words words="on cupti off" ;;
                --metrics) kind=none ;;
                --ctl) kind=words words="auto on off" ;;
                --quiet) [ -z "$given" ] || kind=words words="on off 1 0" ;;
                --log) kind=words words="error warn info debug" ;;
            esac
            case $cur in -*) place=words words="--trace= --force --full= --buffer= --keep= --trace-max= --default-stream= --default-handles= --priority= --streams= --jitter= --policy= --plugin= --window= --trigger= --gpu= --cupti= --graph= --counters= --nvtx= --runtime= --metrics= --ctl= --quiet --log= --report --help"; compopt -o nospace ;; esac
            ;;
        check)
            place=file
            ;;
        report)
            place=file
            case $option in
                --json) [ -z "$given" ] || kind=file ;;
                --csv) [ -z "$given" ] || kind=file ;;
                --html) kind=file ;;
                --section) kind=none ;;
                --fail-if) kind=none ;;
            esac
            case $cur in -*) place=words words="--json --csv --html= --section= --brief --fail-if= --no-color"; compopt -o nospace ;; esac
            ;;
        diff)
            place=file
            case $option in
                --json) [ -z "$given" ] || kind=file ;;
                --csv) [ -z "$given" ] || kind=file ;;
                --fail-if) kind=none ;;
            esac
            case $cur in -*) place=words words="--after --json --csv --fail-if= --no-color"; compopt -o nospace ;; esac
            ;;
        merge)
            place=file
            case $option in
                -o|--output) kind=file ;;
                --align) kind=words words="clock start" ;;
                --clocks) kind=file ;;
                --window) kind=none ;;
            esac
            case $cur in -*) place=words words="--output= --align= --clocks= --window="; compopt -o nospace ;; esac
            ;;
        convert)
            place=none
            case $option in
            esac
            case $cur in -*) place=words words="--whole --render-stages"; compopt -o nospace ;; esac
            ;;
        export)
            place=none
            case $option in
                --parquet) kind=none ;;
                --run) kind=none ;;
                --host) kind=none ;;
                --clocks) kind=file ;;
            esac
            case $cur in -*) place=words words="--parquet= --run= --host= --clocks= --batches --schema"; compopt -o nospace ;; esac
            ;;
        fleet)
            place=none
            [ "$COMP_CWORD" -gt 2 ] && place=words words="stragglers steps idle kernels collectives hidden clocks settings"
            [ "$COMP_CWORD" -gt 3 ] && place=file
            case $option in
                --run) kind=none ;;
                --html) kind=file ;;
                --clocks) kind=file ;;
                --against) kind=none ;;
                --engine) kind=words words="duckdb spark" ;;
                --master) kind=none ;;
            esac
            case $cur in -*) place=words words="--run= --json --html= --clocks= --against= --engine= --master="; compopt -o nospace ;; esac
            ;;
        recover)
            place=none
            case $option in
                -o|--output) kind=file ;;
            esac
            case $cur in -*) place=words words="--output= --in-place"; compopt -o nospace ;; esac
            ;;
        open)
            place=file
            case $option in
                --pin) kind=none ;;
                --offline) [ -z "$given" ] || kind=none ;;
                --port) kind=none ;;
            esac
            case $cur in -*) place=words words="--pin= --offline --no-browser --print-url --stay --port="; compopt -o nospace ;; esac
            ;;
        inspect)
            place=program
            case $option in
            esac
            case $cur in -*) place=words words="--json"; compopt -o nospace ;; esac
            ;;
        ps)
            place=none
            case $option in
            esac
            case $cur in -*) place=words words="--json"; compopt -o nospace ;; esac
            ;;
        record)
            place=none
            case $option in
                -p|--pid) kind=pid ;;
                --rank) kind=none ;;
                --program) kind=none ;;
                -d|--duration) kind=none ;;
                -o|--output) kind=file ;;
            esac
            case $cur in -*) place=words words="--pid= --all --rank= --program= --yes --duration= --output="; compopt -o nospace ;; esac
            ;;
        trigger)
            place=file
            case $option in
                --in) kind=none ;;
                -d|--duration) kind=none ;;
                --ranks) kind=none ;;
                --policy) kind=file ;;
            esac
            case $cur in -*) place=words words="--in= --duration= --ranks= --policy="; compopt -o nospace ;; esac
            ;;
        dump)
            place=none
            case $option in
                -p|--pid) kind=pid ;;
                --rank) kind=none ;;
                --program) kind=none ;;
                -l|--last) kind=none ;;
                -o|--output) kind=file ;;
            esac
            case $cur in -*) place=words words="--pid= --all --rank= --program= --yes --last= --output="; compopt -o nospace ;; esac
            ;;
        hang)
            place=none
            case $option in
                -p|--pid) kind=pid ;;
                --rank) kind=none ;;
                --program) kind=none ;;
            esac
            case $cur in -*) place=words words="--pid= --all --rank= --program= --yes --json --whole"; compopt -o nospace ;; esac
            ;;
        ctl)
            place=pid
            [ "$COMP_CWORD" -gt 2 ] && place=words words="on off flush status policy"
            [ "$COMP_CWORD" -gt 3 ] && place=file
            ;;
        options)
            place=none
            case $option in
            esac
            case $cur in -*) place=words words="--json"; compopt -o nospace ;; esac
            ;;
        help)
            place=words words="run check report diff merge convert export fleet recover open inspect ps record trigger dump hang ctl options help version"
            ;;
        version)
            place=none
            ;;
    esac
    case ${kind:-$place} in
        words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
        pid) mapfile -t COMPREPLY < <(compgen -W "$(custream ps 2>/dev/null | sed -nE 's/^ *([0-9]+) .*/\1/p')" -- "$cur") ;;
        file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames ;;
        program) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
    esac
}
complete -F _custream custream
