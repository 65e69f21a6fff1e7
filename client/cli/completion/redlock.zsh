
_redlock_complete_name() {
	local -a names
	names=(${(f)"$(timeout 2 $program $addr complete -- "${(Q)PREFIX}" 2>/dev/null)"})
	compadd -- ${names:#\"*}
}
# A row has four or five words, the fifth is an age. More are of a name with blanks, which is left out, as one that is shown escaped.
_redlock_complete_queue() {
	local -a names
	names=(${(f)"$(timeout 2 $program $addr queues -- "${(Q)PREFIX}" 2>/dev/null |
		awk 'NR > 1 && $1 !~ /^"|\\/ && (NF == 4 || NF == 5 && $5 ~ /[a-z]$/) { print $1 }')"})
	compadd -- $names
}
_redlock_complete_pid() { compadd -- ${(f)"$(ps -e -o pid= 2>/dev/null | tr -d ' ')"} }
_redlock_complete_file() { _files }
_redlock_complete_none() { _message 'a value' }

_redlock() {
	local program=$words[1] word command operand literal value
	local -a addr list
	local -i i
	for ((i = 2; i < CURRENT; i++)); do
		word=$words[i]
		if [[ $word == -- && -z $literal ]]; then
			literal=yes
		elif [[ $word == --*=* && -z $literal ]]; then
			[[ $word == --addr=* ]] && addr=($word)
		elif [[ $word == -?* && -z $literal ]]; then
			value=$(_redlock_value $word)
			[[ -n $value ]] || continue
			((++i == CURRENT)) && break
			[[ $word == --addr || $word == -a ]] && addr=(--addr $words[i])
			value=
		elif [[ -z $command ]]; then
			command=$word
		elif [[ -z $operand ]]; then
			operand=$word
			_redlock_wraps $command && literal=
		elif _redlock_wraps $command; then
			break
		fi
	done
	if [[ -n $value ]]; then
		_redlock_complete_$value
	elif [[ -n $operand ]] && _redlock_wraps $command && [[ -n $literal || $PREFIX != -* ]]; then
		shift $((i - 1)) words
		((CURRENT -= i - 1))
		_normal
	elif [[ $PREFIX == -* && -z $literal ]]; then
		list=(${(f)"$(_redlock_options $command)"})
		_describe -o option list
	elif [[ -z $command ]]; then
		list=(${(f)"$(_redlock_commands)"})
		_describe command list
	elif [[ -z $operand ]]; then
		value=$(_redlock_operand $command)
		_redlock_complete_${value:-none}
	fi
}
compdef _redlock redlock
