# Completion of custream for fish: `custream --complete` says what may stand here.
function __custream_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] --complete $words[2..] 2>/dev/null)
        switch $line
            case ':program *'
                complete -C (string join ' ' -- $words[(math (string replace ':program ' '' $line) + 1)..])
            case :file
                set -l before (string match -r -- '^--[^=]*=' $words[-1])
                __fish_complete_path (string replace -- "$before" '' $words[-1]) | string replace -r '^' -- "$before"
            case '*'
                echo $line
        end
    end
end
complete -c custream -f -a '(__custream_complete)'
