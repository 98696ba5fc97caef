# fish completion for gpuprov: gpuprov completions fish > ~/.config/fish/completions/gpuprov.fish
complete --command gpuprov --no-files --arguments '(command gpuprov completions fish -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null)'
