#compdef gpuprov
# zsh completion for gpuprov; in ~/.zshrc, after compinit: source <(gpuprov completions zsh)
_gpuprov() {
    local -a answers shown values
    local answer
    answers=("${(@f)$(command gpuprov completions zsh -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)}")
    for answer in "${answers[@]}"; do
        [[ -n $answer ]] || continue
        values+=("${answer%%$'\t'*}")
        shown+=("${answer/$'\t'/  -- }")
    done
    if (( ${#values} )); then
        compadd -l -d shown -a values
    else
        _files
    fi
}
compdef _gpuprov gpuprov
