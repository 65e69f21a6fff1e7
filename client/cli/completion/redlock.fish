
# Reads the words before the cursor, and prints the command, the first word behind it, and where a command of its own begins (0: nowhere).
function __redlock_parse
    set -l words (commandline -opc)
    set -l command ''
    set -l operand ''
    set -l literal 0
    set -l i 2
    while test $i -le (count $words)
        set -l word $words[$i]
        if test "$word" = -- -a $literal = 0
            set literal 1
        else if string match -q -- '-?*' $word; and test $literal = 0
            if contains -- $word $__redlock_valued
                set i (math $i + 1)
            end
        else if test -z "$command"
            set command $word
        else if test -z "$operand"
            set operand $word
            contains -- $command $__redlock_wraps; and set literal 0
        else if contains -- $command $__redlock_wraps
            break
        end
        set i (math $i + 1)
    end
    printf '%s\n' "$command" "$operand" $literal $i
end
function __redlock_has_no_command
    set -l at (__redlock_parse)
    test -z "$at[1]"
end
# The next word is the first behind the command $argv.
function __redlock_begins
    set -l at (__redlock_parse)
    test "$at[1]" = $argv[1] -a -z "$at[2]"
end
function __redlock_runs
    set -l at (__redlock_parse)
    contains -- "$at[1]" $__redlock_wraps; and test -n "$at[2]"
end
# Options are redlock's own up to the command that it runs.
function __redlock_options
    set -l at (__redlock_parse)
    test $at[3] = 0 -a $at[4] -gt (count (commandline -opc))
end
function __redlock_is_of
    set -l at (__redlock_parse)
    contains -- "$at[1]" $argv; and __redlock_options
end
function __redlock_addr
    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        if string match -q -- '--addr=*' $words[$i]
            printf '%s\n' $words[$i]
        else if contains -- $words[$i] --addr -a; and test $i -lt (count $words)
            printf '%s\n' --addr $words[(math $i + 1)]
        end
    end
end
function __redlock_name
    set -l words (commandline -opc)
    timeout 2 $words[1] (__redlock_addr) complete -- (commandline -ct) 2>/dev/null | string match -v -- '"*'
end
# A row has four or five words, the fifth is an age. More are of a name with blanks, which is left out, as one that is shown escaped.
function __redlock_queue
    set -l words (commandline -opc)
    timeout 2 $words[1] (__redlock_addr) queues -- (commandline -ct) 2>/dev/null |
        awk 'NR > 1 && $1 !~ /^"|\\\\/ && (NF == 4 || NF == 5 && $5 ~ /[a-z]$/) { print $1 }'
end
function __redlock_pid
    ps -e -o pid= | string trim
end
function __redlock_command
    set -l at (__redlock_parse)
    set -l words (commandline -opc) (commandline -ct)
    set -l rest $words[$at[4]..-1]
    complete -C (string join ' ' -- (string escape -- $rest[1..-2]) $rest[-1])
end
complete -c redlock -n __redlock_runs -f -a '(__redlock_command)'
