# Prints how far the set-up is, as soon as that is no longer what `seen` stands for, at the latest after `hold` looks.
: "${seen:=}" "${hold:=1}"
root=${GPUPROV_ROOT:-}
file=$root/var/lib/gpuprov/k3s/status
while :; do
  text=$(cat "$file" 2>/dev/null) || text=
  unit=$(timeout 20 systemctl is-active gpuprov-k3s 2>/dev/null) || true
  k3s=$(timeout 20 systemctl is-active k3s 2>/dev/null) || true
  # Between a last word and its reading the unit ends: the file is read again.
  [ "$unit" = active ] || text=$(cat "$file" 2>/dev/null) || text=
  mark=$(printf '%s\n%s\n%s\n' "$text" "$unit" "$k3s" | cksum | tr -d ' ')
  hold=$((hold - 1))
  [ "$mark" = "$seen" ] && [ "$hold" -gt 0 ] || break
  sleep 0.5
done
printf 'gpuprov:k8s:in\n'
printf '%s\n' "$text" | sed 's/^/gpuprov:k8s:/'
sed 's/^/gpuprov:k8s:begun=/' "$root/var/lib/gpuprov/k3s/steps" 2>/dev/null
printf 'gpuprov:k8s:unit=%s\ngpuprov:k8s:k3s=%s\ngpuprov:k8s:mark=%s\ngpuprov:k8s:done\n' "$unit" "$k3s" "$mark"
