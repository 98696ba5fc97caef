#!/bin/sh
# Sets up a cluster of one machine: k3s, and where there are GPUs the NVIDIA runtime and device plugin.
# gpuprov runs it as the unit gpuprov-k3s. It can be run again at any time: what is done already is not done again.
set -eu

root=${GPUPROV_ROOT:-}
here=$root/usr/local/lib/gpuprov/k3s
kept=$root/var/lib/gpuprov/k3s
etc=$root/etc/rancher/k3s
unit=$root/etc/systemd/system
data=$root/var/lib/rancher/k3s
k3s=$root/usr/local/bin/k3s

# shellcheck source=/dev/null
. "$here/settings"
: "${NAME:?}" "${GPUS:?}" "${FIREWALL:?}" "${VERSION:?}" "${BINARY_AMD64:?}" "${INSTALLER:?}" "${DOWNLOADS:?}" "${SCRIPT_AT:?}"

# What a machine may say for itself in /etc/gpuprov/k3s.conf: seconds, and another place for the downloads.
POLL=2
WAIT_CLOUD_INIT=600
WAIT_DRIVER=300
WAIT_LOCK=300
WAIT_K3S=300
WAIT_NODE=180
WAIT_GPU=300
PAUSE=15
# shellcheck source=/dev/null
[ ! -r "$root/etc/gpuprov/k3s.conf" ] || . "$root/etc/gpuprov/k3s.conf"

# A unit has none, and kubectl keeps its cache there.
export HOME="${HOME:-/root}"

mkdir -p "$kept" "$root/var/log"
exec >>"$root/var/log/gpuprov-k3s.log" 2>&1
umask 022

steps='preflight quiet firewall toolkit download configure install start node gpu'
step=preflight
warned=
ended=

# Writes the status file whole: whoever reads it sees the old one or the new one.
status() {
  at=0
  of=0
  for one in $steps; do
    of=$((of + 1))
    [ "$one" != "$step" ] || at=$of
  done
  words=$(printf '%s' "$2" | tr -s '\r\n\t' '   ' | cut -c 1-600)
  {
    printf 'state=%s\nstep=%s\nat=%s\nof=%s\nversion=%s\n' "$1" "$step" "$at" "$of" "$VERSION"
    printf 'message=%s\nwarned=%s\n' "$words" "$warned"
  } >"$kept/status.new"
  mv -f "$kept/status.new" "$kept/status"
  printf '%s [%s] %s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$step" "$1" "$words"
}

# Every step that was begun stays told, also where the next one is quicker than whoever looks.
begin() {
  step=$1
  status installing "$2"
  printf 'step %s of %s (%s): %s\n' "$at" "$of" "$step" "$2" >>"$kept/steps"
}

warn() {
  warned="${warned:+$warned; }$1"
  printf 'warning: %s\n' "$1"
}

fail() {
  ended=1
  status failed "$1"
  exit 1
}

# Whatever ends the script without a word of its own is told too.
at_exit() {
  code=$?
  [ -n "$ended" ] || { ended=1; status failed "it ended in the middle with code $code"; }
}
trap at_exit EXIT
trap 'fail "it was stopped"' TERM INT HUP

# until_true SECONDS COMMAND...: tries the command until it works or the time is over.
until_true() {
  end=$(($(date +%s) + $1))
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep "$POLL"
  done
}

# Several tries: the lock on apt's lists, which another program holds for a moment, is not covered by the option.
apt() {
  tries=1
  until timeout 900 apt-get -q -o DPkg::Lock::Timeout="$WAIT_LOCK" -o Acquire::Retries=3 "$@"; do
    [ "$tries" -lt 5 ] || return 1
    tries=$((tries + 1))
    status installing "apt-get $1 did not work (is its lock held?); try $tries of 5"
    sleep "$PAUSE"
  done
}

# put FILE MODE: writes the standard input to a file. The old file or the new one is there, never half.
put() {
  mkdir -p "$(dirname "$1")"
  (umask 077 && cat >"$1.new")
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}

is_right() { # SHA256 FILE
  printf '%s  %s\n' "$1" "$2" | sha256sum -c - >/dev/null 2>&1
}

fetch() { # URL FILE SHA256
  if [ -f "$2" ] && is_right "$3" "$2"; then
    return 0
  fi
  mkdir -p "$(dirname "$2")"
  timeout 1200 curl -fsSL --retry 5 --retry-all-errors --connect-timeout 20 --max-time 600 -o "$2.part" "$1" ||
    fail "$1 could not be downloaded (curl ended with $?): does the machine reach GitHub?"
  if ! is_right "$3" "$2.part"; then
    rm -f "$2.part"
    fail "the checksum of $1 is not the expected one; it was thrown away"
  fi
  mv -f "$2.part" "$2"
}

kube() {
  timeout 20 "$k3s" kubectl --request-timeout=15s "$@"
}

preflight() {
  [ -d "$root/run/systemd/system" ] || fail "there is no systemd on this machine: k3s cannot run as a service"
  case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) fail "k3s is not made for a processor of the kind $(uname -m)" ;;
  esac
  [ -e "$root/sys/fs/cgroup/cgroup.controllers" ] || fail "the system has no cgroups v2: take an image with Ubuntu 22.04 or newer"
  memory=$(awk '/^MemTotal:/ { print int($2 / 1024) }' "$root/proc/meminfo")
  [ "${memory:-0}" -ge 1800 ] || fail "k3s needs 2 GB of memory, the machine has $memory MB"
  [ "$(nproc)" -ge 2 ] || fail "k3s needs 2 processor cores"
  free=$(df -Pk "$root/var/lib" | awk 'NR == 2 { print int($4 / 1048576) }')
  [ "${free:-0}" -ge 10 ] || fail "only ${free:-0} GB are free under /var/lib: take a larger --disk"
  [ "$free" -ge 20 ] || warn "only $free GB are free under /var/lib, where images are kept"
  [ -n "$(ip route show default; ip -6 route show default)" ] || fail "the machine has no default route, without which k3s does not start"
  if command -v cloud-init >/dev/null; then
    code=0
    timeout "$WAIT_CLOUD_INIT" cloud-init status --wait >/dev/null || code=$?
    case $code in 0 | 2) ;; *) warn "cloud-init did not end well (code $code)" ;; esac
  fi
  forwarding=$(sshd -T 2>/dev/null | awk 'tolower($1) == "allowtcpforwarding" { print tolower($2) }') || forwarding=
  case $forwarding in
    '' | yes | local) ;;
    *)
      printf 'AllowTcpForwarding yes\n' | put "$root/etc/ssh/sshd_config.d/10-gpuprov.conf" 644
      timeout 60 systemctl try-reload-or-restart ssh || warn "sshd could not be told to allow forwarding"
      ;;
  esac
  [ "$GPUS" = 0 ] || until_true "$WAIT_DRIVER" has_gpus ||
    fail "nvidia-smi shows $seen GPUs, $GPUS were rented${trouble:+: $trouble}"
}

has_gpus() {
  if ! listed=$(timeout 60 nvidia-smi -L 2>&1); then
    seen=0
    trouble=$(printf '%s' "$listed" | head -n 1)
    case $trouble in *mismatch*) trouble="$trouble (the driver was exchanged under the loaded module: restart the machine once)" ;; esac
    return 1
  fi
  seen=$(printf '%s\n' "$listed" | grep -c '^GPU ') || seen=0
  trouble=
  [ "$seen" = "$GPUS" ]
}

# Upgrades in the background hold apt's locks and may exchange the driver under the loaded module.
quiet() {
  for one in apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service; do
    timeout 60 systemctl disable "$one" || true
  done
  for one in apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service unattended-upgrades.service; do
    timeout 120 systemctl stop "$one" || true
  done
}

# Before k3s starts, so that no port of it is ever open. The unit loads the rules at every boot, and k3s does not start without it.
firewall() {
  if command -v ufw >/dev/null && timeout 30 ufw status | grep -q '^Status: active'; then
    for net in 10.42.0.0/16 10.43.0.0/16; do
      timeout 30 ufw allow from "$net" || warn "ufw does not let $net through"
    done
  fi
  [ "$FIREWALL" = 1 ] || return 0
  if ! command -v nft >/dev/null; then
    { apt update && apt install -y --no-install-recommends nftables; } || fail "nftables could not be installed, and without it the cluster's ports would be open to the world"
  fi
  old=$(rules)
  put "$root/etc/gpuprov/firewall.nft" 644 <"$here/firewall.nft"
  put "$unit/gpuprov-firewall.service" 644 <"$here/firewall.service"
  put "$unit/k3s.service.d/10-gpuprov.conf" 644 <"$here/needs-firewall.conf"
  if [ "$old" != "$(rules)" ] || ! timeout 30 nft list table inet gpuprov >/dev/null 2>&1; then
    timeout 60 systemctl daemon-reload || true
    { timeout 60 systemctl enable gpuprov-firewall.service && timeout 60 systemctl restart gpuprov-firewall.service; } ||
      fail "the firewall rules could not be loaded; k3s was not started"
  fi
  timeout 30 nft list table inet gpuprov | grep -q 6443 || fail "the firewall rules are not in force; k3s was not started"
}

rules() {
  cat "$root/etc/gpuprov/firewall.nft" "$unit/gpuprov-firewall.service" "$unit/k3s.service.d/10-gpuprov.conf" 2>/dev/null | cksum
}

# k3s looks for the runtime once, when it starts: so this comes before it.
toolkit() {
  if [ "$GPUS" = 0 ] || command -v nvidia-container-runtime >/dev/null; then
    return 0
  fi
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  # What a killed run left half installed is finished first.
  timeout 600 dpkg --configure -a || true
  lists=$root/etc/apt/sources.list.d
  # A second source with another key file would make apt refuse both.
  if ! grep -rqs libnvidia-container "$lists"; then
    key=$root/usr/share/keyrings/gpuprov-nvidia-container-toolkit.asc
    mkdir -p "$(dirname "$key")" "$lists"
    timeout 300 curl -fsSL --retry 5 --retry-all-errors --connect-timeout 20 -o "$key" https://nvidia.github.io/libnvidia-container/gpgkey ||
      fail "the key of NVIDIA's packages could not be downloaded (curl ended with $?)"
    printf 'deb [signed-by=%s] https://nvidia.github.io/libnvidia-container/stable/deb/%s /\n' "$key" "$arch" |
      put "$lists/gpuprov-nvidia-container-toolkit.list" 644
  fi
  { apt update && apt install -y --no-install-recommends nvidia-container-toolkit; } || fail "apt-get could not install nvidia-container-toolkit; the log says why"
  command -v nvidia-container-runtime >/dev/null || fail "nvidia-container-toolkit is installed, but there is no nvidia-container-runtime in PATH"
}

download() {
  if [ "$arch" = amd64 ]; then
    file=k3s
    sum=$BINARY_AMD64
  else
    # No checksum of this one is known to gpuprov: the release's own list is trusted.
    file='k3s-arm64'
    sums=$(timeout 300 curl -fsSL --retry 5 --retry-all-errors --connect-timeout 20 "$DOWNLOADS/sha256sum-arm64.txt") ||
      fail "$DOWNLOADS/sha256sum-arm64.txt could not be downloaded (curl ended with $?)"
    sum=$(printf '%s\n' "$sums" | awk '$2 == "k3s-arm64" { print $1 }')
    warn "the checksum of k3s-arm64 is the one that its release names"
  fi
  fetch "$SCRIPT_AT" "$here/install-k3s.sh" "$INSTALLER"
  if [ -f "$k3s" ] && is_right "$sum" "$k3s"; then
    return 0
  fi
  fetch "$DOWNLOADS/$file" "$kept/k3s-$VERSION" "$sum"
  mkdir -p "$(dirname "$k3s")"
  install -m 0755 "$kept/k3s-$VERSION" "$k3s.new"
  mv -f "$k3s.new" "$k3s"
  rm -f "$kept/k3s-$VERSION"
}

configure() {
  (umask 077 && mkdir -p "$etc")
  if [ ! -s "$etc/gpuprov-agent-token" ]; then
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | put "$etc/gpuprov-agent-token" 600
  fi
  # The backend of the pods' network must stay what it was.
  backend=$(sed -n 's/^flannel-backend: //p' "$etc/config.yaml" 2>/dev/null) || backend=
  if [ -z "$backend" ]; then
    backend=wireguard-native
    if ! timeout 30 modprobe wireguard; then
      backend=vxlan
      warn "the kernel has no WireGuard: the pods' network is VXLAN, which is not encrypted"
    fi
  fi
  {
    printf '# Written by gpuprov, which also rewrites it.\n'
    printf 'node-name: %s\ntls-san: [%s]\n' "$NAME" "$NAME"
    printf 'flannel-backend: %s\n' "$backend"
    printf 'disable: [traefik, servicelb]\n'
    printf 'write-kubeconfig-mode: "0600"\n'
    printf 'agent-token-file: /etc/rancher/k3s/gpuprov-agent-token\n'
    if [ "$GPUS" != 0 ]; then
      printf 'node-label: ["nvidia.com/gpu.present=true"]\n'
      printf 'default-runtime: nvidia\n'
    fi
  } | put "$etc/config.yaml" 600
  if [ "$GPUS" != 0 ]; then
    mkdir -p "$data/server/manifests"
    for one in gpuprov-runtime-class gpuprov-device-plugin; do
      put "$data/server/manifests/$one.yaml" 600 <"$here/$one.yaml"
    done
  fi
}

# The unit file is written by k3s's own installer. It is not started there: that start waits without an end.
install_unit() {
  made=$(cat "$kept/installed" 2>/dev/null) || made=
  if [ -f "$unit/k3s.service" ] && [ "$made" = "$VERSION" ]; then
    return 0
  fi
  timeout 300 env INSTALL_K3S_SKIP_DOWNLOAD=true INSTALL_K3S_SKIP_START=true INSTALL_K3S_EXEC=server sh "$here/install-k3s.sh" ||
    fail "the installer of k3s ended with $?; the log says why"
  [ -f "$unit/k3s.service" ] || fail "the installer of k3s wrote no unit"
  printf '%s\n' "$VERSION" | put "$kept/installed" 644
}

# What k3s reads once, at its start.
read_at_start() {
  cat "$etc/config.yaml" "$unit/k3s.service"
  printf '%s %s\n' "$VERSION" "$(command -v nvidia-container-runtime)"
}

start() {
  now=$(read_at_start | cksum)
  before=$(cat "$kept/started" 2>/dev/null) || before=
  if [ "$now" != "$before" ] || ! timeout 30 systemctl is-active --quiet k3s; then
    timeout 60 systemctl restart --no-block k3s || fail "systemd did not take the start of k3s"
  fi
  until_true "$WAIT_K3S" is_up ||
    fail "k3s did not answer within $WAIT_K3S s; its last words: $(journal)"
  if [ "$GPUS" != 0 ] && ! grep -qs nvidia-container-runtime "$data/agent/etc/containerd/config.toml"; then
    fail "k3s did not find the NVIDIA runtime, though nvidia-container-runtime is installed"
  fi
  printf '%s\n' "$now" | put "$kept/started" 644
}

is_up() {
  shown=$(timeout 30 systemctl show k3s -p ActiveState -p SubState -p NRestarts) || return 1
  if ! printf '%s\n' "$shown" | grep -q '^SubState=running$'; then
    restarts=$(printf '%s\n' "$shown" | sed -n 's/^NRestarts=//p')
    [ "${restarts:-0}" -lt 3 ] || fail "k3s starts again and again; its last words: $(journal)"
    return 1
  fi
  [ "$(kube get --raw=/readyz)" = ok ]
}

journal() {
  timeout 30 journalctl -u k3s -n 3 --no-pager -o cat || echo "(no journal)"
}

# A wait for all nodes would end at once while there is none: so the one is asked for by its name.
node() {
  until_true "$WAIT_NODE" is_node_ready ||
    fail "the node $NAME did not get ready within $WAIT_NODE s: $(kube get node "$NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}')"
  until_true "$WAIT_NODE" has_names ||
    fail "the cluster's name server did not start within $WAIT_NODE s: can images be pulled from docker.io?"
}

is_node_ready() {
  [ "$(kube get node "$NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

has_names() {
  count=$(kube -n kube-system get deployment coredns -o 'jsonpath={.status.availableReplicas}') || return 1
  [ "${count:-0}" -ge 1 ] && kube get serviceaccount default -o name
}

gpu() {
  [ "$GPUS" != 0 ] || return 0
  # The label of the configuration counts only when a node registers for the first time.
  kube label node "$NAME" nvidia.com/gpu.present=true --overwrite || true
  until_true "$WAIT_GPU" is_allocatable ||
    fail "Kubernetes has ${count:-0} of $GPUS GPUs after $WAIT_GPU s; the device plugin says: $(plugin_words)"
}

is_allocatable() {
  count=$(kube get node "$NAME" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}') || return 1
  [ "${count:-0}" = "$GPUS" ]
}

plugin_words() {
  kube -n kube-system logs daemonset/gpuprov-device-plugin --tail=2 2>&1 || true
}

exec 9>"$root/run/gpuprov-k3s.lock"
flock -w 600 9 || fail "another run of this set-up did not end"

: >"$kept/steps"
begin preflight "looking at the machine"
preflight
begin quiet "stopping upgrades in the background"
quiet
begin firewall "closing the cluster's ports to the world"
firewall
begin toolkit "installing the NVIDIA container toolkit"
toolkit
begin download "downloading k3s $VERSION"
download
begin configure "writing the configuration"
configure
begin install "installing k3s"
install_unit
begin start "starting k3s"
start
begin node "waiting for the node"
node
begin gpu "waiting for the GPUs to be schedulable"
gpu
ended=1
status ready "one node${warned:+; $warned}"
