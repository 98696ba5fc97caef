# bash completion for gpuprov; source it in ~/.bashrc: source <(gpuprov completions bash)
_gpuprov() {
    # Bash breaks words at `:` and `=`; gpuprov wants them whole.
    local line=${COMP_LINE:0:COMP_POINT} words word breaks='' skip='' candidate
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[${#words[@]} - 1]}
    # What stands before the last break stays on the line and must not be put there again.
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    [[ -n $breaks ]] && skip=${word%"${word##*[$breaks]}"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("${candidate#"$skip"}")
    done < <(command gpuprov completions bash -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _gpuprov gpuprov
