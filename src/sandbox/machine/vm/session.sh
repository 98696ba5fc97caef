#!/bin/sh
# systemctl and systemd-run of the gpuprov sandbox: nothing of the real system is asked or changed. What is called is written down.
me=$(basename "$0")
root=${GPUPROV_ROOT:?}
box=$root/.sandbox/k8s
unit=$root/etc/systemd/system
printf '%s %s\n' "$me" "$*" >>"$root/.sandbox/calls"

# A fault is a file beside the machines with how often it is played.
fault() {
  left=$(cat "$root/../.k8s-faults/$1" 2>/dev/null) || return 1
  [ "$left" -gt 0 ] || return 1
  echo $((left - 1)) >"$root/../.k8s-faults/$1"
}

runs() {
  pid=$(cat "$box/$1.pid" 2>/dev/null) || return 1
  kind=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || return 1
  case $kind in '' | Z* | X*) return 1 ;; esac
}

bus() {
  echo "Failed to connect to bus: No such file or directory" >&2
  exit 1
}

if [ "$me" = systemd-run ]; then
  fault bus && bus
  name=
  while [ $# -gt 0 ]; do
    case $1 in
      --unit=*) name=${1#--unit=} ;;
      --quiet | --collect | --description=* | --property=*) ;;
      -*) echo "systemd-run (gpuprov sandbox): unknown option $1" >&2; exit 1 ;;
      *) break ;;
    esac
    shift
  done
  if runs "$name"; then
    echo "Failed to start transient service unit: Unit $name.service already exists." >&2
    exit 1
  fi
  PATH=$root/.sandbox/unit:$PATH setsid "$@" >/dev/null 2>&1 </dev/null &
  echo $! >"$box/$name.pid"
  exit 0
fi

firewall_holds() {
  [ ! -e "$unit/k3s.service.d/10-gpuprov.conf" ] || [ -s "$box/nft" ]
}

start_k3s() {
  [ -f "$unit/k3s.service" ] || { echo "Failed to restart k3s.service: Unit k3s.service not found." >&2; exit 5; }
  firewall_holds || { echo "A dependency job for k3s.service failed." >&2; exit 1; }
  rm -f "$box"/polls.* "$box/crashes" "$box/allocatable"
  # Keys that k3s does not know end it, again and again.
  if grep -v '^#' "$root/etc/rancher/k3s/config.yaml" |
    grep -vqE '^(node-name|tls-san|flannel-backend|disable|write-kubeconfig-mode|agent-token-file|node-label|default-runtime): '; then
    touch "$box/crashes"
  fi
  containerd=$root/var/lib/rancher/k3s/agent/etc/containerd
  mkdir -p "$containerd"
  echo 'version = 3' >"$containerd/config.toml"
  if PATH=$root/.sandbox/unit:$PATH command -v nvidia-container-runtime >/dev/null && ! fault runtime; then
    echo 'BinaryName = "/usr/bin/nvidia-container-runtime"' >>"$containerd/config.toml"
  fi
  cp "$box/k3s.yaml" "$root/etc/rancher/k3s/k3s.yaml"
  touch "$box/k3s"
}

case $1 in
  is-active)
    shift
    [ "$1" != --quiet ] || { quiet=1; shift; }
    word=inactive
    case $1 in
      gpuprov-k3s) ! runs gpuprov-k3s || word=active ;;
      k3s) [ ! -e "$box/k3s" ] || word=active ;;
    esac
    [ -n "${quiet:-}" ] || echo $word
    [ $word = active ] || exit 3
    ;;
  show)
    if [ -e "$box/crashes" ] || fault crashes; then
      printf 'ActiveState=activating\nSubState=auto-restart\nNRestarts=5\n'
    elif [ ! -e "$box/k3s" ] || fault hangs; then
      printf 'ActiveState=activating\nSubState=start\nNRestarts=0\n'
    else
      printf 'ActiveState=active\nSubState=running\nNRestarts=0\n'
    fi
    ;;
  restart | start)
    shift
    while case ${1:-} in -*) true ;; *) false ;; esac; do shift; done
    case $1 in
      k3s) start_k3s ;;
      gpuprov-firewall.service) PATH=$root/.sandbox/unit:$PATH nft -f "$root/etc/gpuprov/firewall.nft" ;;
    esac
    ;;
  stop) case ${2:-} in k3s) rm -f "$box/k3s" ;; esac ;;
  enable)
    [ -e "$unit/$2" ] || { echo "Failed to enable unit: Unit file $2 does not exist." >&2; exit 1; }
    ;;
  try-reload-or-restart)
    if grep -qs 'AllowTcpForwarding yes' "$root/etc/ssh/sshd_config.d/10-gpuprov.conf"; then
      touch "$box/forwarding"
    fi
    ;;
  daemon-reload | disable) ;;
  *) echo "systemctl (gpuprov sandbox): unknown verb $1" >&2; exit 1 ;;
esac
