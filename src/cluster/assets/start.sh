# Starts the set-up as a unit of its own, which goes on when this login ends. Run as root; the files are written before.
root=${GPUPROV_ROOT:-}
here=$root/usr/local/lib/gpuprov/k3s
kept=$root/var/lib/gpuprov/k3s
if timeout 20 systemctl is-active --quiet gpuprov-k3s; then
  echo gpuprov:cluster:started
  exit 0
fi
mkdir -p "$kept"
printf 'state=installing\nstep=preflight\nat=0\nof=0\nmessage=starting\n' >"$kept/status.new" &&
  mv -f "$kept/status.new" "$kept/status"
# A transient unit needs no reload of systemd, which takes the GPUs from containers that run.
if words=$(timeout 30 systemd-run --quiet --collect --unit=gpuprov-k3s --description='Sets up k3s (gpuprov)' \
  --property=RuntimeMaxSec=3600 --property=TimeoutStopSec=30 /bin/sh "$here/setup.sh" 2>&1 </dev/null); then
  echo gpuprov:cluster:started
else
  words=$(printf '%s' "$words" | tr -s '\r\n\t' '   ' | cut -c 1-300)
  printf 'state=failed\nstep=preflight\nat=0\nof=0\nmessage=the unit could not be started: %s\n' "$words" >"$kept/status.new" &&
    mv -f "$kept/status.new" "$kept/status"
  printf 'gpuprov:cluster:failed:%s\n' "$words"
fi
