
# The names that start so, of those that were locked lately; one that a shell would not take as it is, is quoted.
_redlock_complete_name() {
	local name
	timeout 2 "${words[0]}" "${addr[@]}" complete -- "$1" 2>/dev/null | while IFS= read -r name; do
		[[ $name == \"* ]] || printf '%q\n' "$name"
	done
}
# A row has four or five words, the fifth is an age. More are of a name with blanks, which is left out, as one that is shown escaped.
_redlock_complete_queue() {
	local name
	timeout 2 "${words[0]}" "${addr[@]}" queues -- "$1" 2>/dev/null |
		awk 'NR > 1 && $1 !~ /^"|\\/ && (NF == 4 || NF == 5 && $5 ~ /[a-z]$/) { print $1 }' |
		while IFS= read -r name; do
		printf '%q\n' "$name"
	done
}
_redlock_complete_pid() { compgen -W "$(ps -e -o pid= 2>/dev/null)" -- "$1"; }
_redlock_complete_file() { compgen -f -- "$1"; }
_redlock_complete_none() { :; }

_redlock() {
	local words=() addr=() cur word command='' operand='' literal='' line=${COMP_LINE:0:COMP_POINT} value='' i
	# bash splits words at colons too, which names are full of.
	read -ra words <<<"$line"
	[[ $line == *[[:blank:]] ]] && words+=('')
	cur=${words[-1]}
	COMPREPLY=()
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		if [[ $word == -- && -z $literal ]]; then
			literal=yes
		elif [[ $word == --*=* && -z $literal ]]; then
			[[ $word == --addr=* ]] && addr=("$word")
		elif [[ $word == -?* && -z $literal ]]; then
			value=$(_redlock_value "$word")
			[[ -n $value ]] || continue
			((++i == ${#words[@]} - 1)) && break
			[[ $word == --addr || $word == -a ]] && addr=(--addr "${words[i]}")
			value=
		elif [[ -z $command ]]; then
			command=$word
		elif [[ -z $operand ]]; then
			operand=$word
			_redlock_wraps "$command" && literal=
		elif _redlock_wraps "$command"; then
			break
		fi
	done
	if [[ -n $value ]]; then
		mapfile -t COMPREPLY < <("_redlock_complete_$value" "$cur")
	elif [[ -n $operand ]] && _redlock_wraps "$command" && [[ -n $literal || $cur != -* ]]; then
		compopt -o default
		if ((i >= ${#words[@]} - 1)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
	elif [[ $cur == -* && -z $literal ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_redlock_options "$command" | cut -d: -f1)" -- "$cur")
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_redlock_commands | cut -d: -f1)" -- "$cur")
	elif [[ -z $operand ]]; then
		value=$(_redlock_operand "$command")
		mapfile -t COMPREPLY < <("_redlock_complete_${value:-none}" "$cur")
	fi
	# What stands before the last colon is not part of the word that readline replaces.
	if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
	fi
}
complete -F _redlock redlock
