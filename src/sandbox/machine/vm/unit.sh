#!/bin/sh
# The programs that a set-up of k3s calls, as the gpuprov sandbox plays them. They change nothing outside the machine's own folder
# and download nothing. What is called is written down.
me=$(basename "$0")
root=${GPUPROV_ROOT:?}
box=$root/.sandbox/k8s
printf '%s %s\n' "$me" "$*" >>"$root/.sandbox/calls"

fault() {
  left=$(cat "$root/../.k8s-faults/$1" 2>/dev/null) || return 1
  [ "$left" -gt 0 ] || return 1
  echo $((left - 1)) >"$root/../.k8s-faults/$1"
}

# Whether something was asked for so many times.
polled() {
  count=$(($(cat "$box/polls.$1" 2>/dev/null || echo 0) + 1))
  echo "$count" >"$box/polls.$1"
  [ "$count" -gt "$2" ]
}

say() {
  printf '%s\n' "$2" >&2
  exit "$1"
}

gpus() {
  PATH=$root/.sandbox/bin:/usr/bin:/bin nvidia-smi -L | grep -c '^GPU '
}

k3s_kubectl() {
  [ -e "$box/k3s" ] || say 1 "The connection to the server 127.0.0.1:6443 was refused"
  node=$(sed -n 's/^node-name: //p' "$root/etc/rancher/k3s/config.yaml")
  words=
  for word; do
    case $word in --request-timeout=*) ;; *) words="$words $word" ;; esac
  done
  case $words in
    ' get --raw=/readyz')
      polled readyz 1 || say 1 "Error from server (InternalError): etcd failed"
      printf ok
      ;;
    " get node $node -o jsonpath={.status.conditions"*.status*)
      polled node 1 || say 1 "Error from server (NotFound): nodes \"$node\" not found"
      if ! polled node 3 || fault node; then printf False; else printf True; fi
      ;;
    " get node $node -o jsonpath={.status.conditions"*.message*) printf 'container runtime network not ready' ;;
    ' -n kube-system get deployment coredns'*) fault coredns || printf 1 ;;
    ' get serviceaccount default -o name') echo serviceaccount/default ;;
    " label node $node nvidia.com/gpu.present=true --overwrite") touch "$box/labelled" ;;
    " get node $node -o jsonpath={.status.allocatable.nvidia"*)
      manifests=$root/var/lib/rancher/k3s/server/manifests
      plugin=$manifests/gpuprov-device-plugin.yaml
      class=$(sed -n 's/^ *runtimeClassName: //p' "$plugin" 2>/dev/null)
      if grep -qs "name: ${class:-none}\$" "$manifests/gpuprov-runtime-class.yaml" &&
        grep -qs nvidia-container-runtime "$root/var/lib/rancher/k3s/agent/etc/containerd/config.toml" &&
        polled gpu 1 && ! fault gpu-none; then
        count=$(gpus)
        ! fault gpu-fewer || count=$((count - 1))
        echo "$count" >"$box/allocatable"
        printf %s "$count"
      fi
      ;;
    ' -n kube-system logs daemonset/gpuprov-device-plugin'*)
      echo 'could not load NVML library: libnvidia-ml.so.1: cannot open shared object file'
      ;;
    ' get nodes'*) printf 'NAME   STATUS   VERSION\n%s   Ready   v1.36.4+k3s1\n' "$node" ;;
    *) say 1 "kubectl (gpuprov sandbox): not played:$words" ;;
  esac
}

case $me in
  k3s)
    [ "${1:-}" = kubectl ] || say 1 "k3s (gpuprov sandbox): only kubectl is played"
    shift
    k3s_kubectl "$@"
    ;;
  k3s-installer)
    env | grep '^INSTALL_K3S_' | sort | sed 's/^/  /' >>"$root/.sandbox/calls"
    ! fault installer || say 1 "[ERROR]  Failed to install"
    [ "${INSTALL_K3S_SKIP_DOWNLOAD:-}" = true ] && [ "${INSTALL_K3S_SKIP_START:-}" = true ] ||
      say 1 "install.sh (gpuprov sandbox): this would download, or wait without an end"
    [ -x "$root/usr/local/bin/k3s" ] || say 1 "[ERROR]  Executable k3s binary not found"
    mkdir -p "$root/etc/systemd/system"
    printf '[Service]\nType=notify\nTimeoutStartSec=0\nExecStart=/usr/local/bin/k3s %s\n' "$INSTALL_K3S_EXEC" \
      >"$root/etc/systemd/system/k3s.service"
    ;;
  curl)
    to=
    while [ $# -gt 1 ]; do
      case $1 in -o) to=$2; shift ;; esac
      shift
    done
    ! fault download || say 22 "curl: (22) The requested URL returned error: 503"
    case $1 in
      https://nvidia.github.io/libnvidia-container/gpgkey) text='a key of the sandbox' ;;
      https://raw.githubusercontent.com/k3s-io/k3s/v1.36.4%2Bk3s1/install.sh) like=k3s-installer ;;
      https://github.com/k3s-io/k3s/releases/download/v1.36.4%2Bk3s1/k3s) like=k3s ;;
      *) say 6 "curl: (6) Could not resolve host (the sandbox has no network)" ;;
    esac
    if [ -n "${like:-}" ]; then
      # shellcheck disable=SC2016
      text=$(printf '#!/bin/sh\n# gpuprov sandbox: %s of v1.36.4+k3s1\nexec "$GPUPROV_ROOT/.sandbox/unit/%s" "$@"' "$like" "$like")
      ! fault tampered || text="$text # tampered with"
    fi
    printf '%s\n' "$text" >"$to"
    ;;
  sha256sum)
    [ "$*" = '-c -' ] || exec /usr/bin/sha256sum "$@"
    read -r sum file
    case $(cat "$file") in
      *tampered*) real=none ;;
      *'sandbox: k3s of v1.36.4+k3s1'*) real=835873f37245fc615f547a2fe2af9402a347875f13fa64a1f136de644955ea3f ;;
      *'sandbox: k3s-installer of v1.36.4+k3s1'*) real=46177d4c99440b4c0311b67233823a8e8a2fc09693f6c89af1a7161e152fbfad ;;
      *) real=none ;;
    esac
    [ "$sum" = "$real" ] || say 1 "$file: FAILED"
    ;;
  apt-get)
    ! fault apt || say 100 "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (unattended-upgr)"
    case "$*" in
      *' update') ;;
      *' install '*' nvidia-container-toolkit')
        [ "${DEBIAN_FRONTEND:-}" = noninteractive ] || say 100 "E: a question nobody answers"
        grep -rqs libnvidia-container "$root/etc/apt/sources.list.d" ||
          say 100 "E: Unable to locate package nvidia-container-toolkit"
        fault toolkit || cp "$root/.sandbox/unit/true" "$root/.sandbox/unit/nvidia-container-runtime"
        ;;
      *) say 100 "E: not in the sandbox: $*" ;;
    esac
    ;;
  nft)
    case "$*" in
      "-f $root/etc/gpuprov/firewall.nft")
        ! fault nft || say 1 "Error: Could not process rule: Operation not supported"
        cp "$root/etc/gpuprov/firewall.nft" "$box/nft"
        ;;
      'list table inet gpuprov') cat "$box/nft" ;;
      *) say 1 "nft (gpuprov sandbox): not played: $*" ;;
    esac
    ;;
  nvidia-smi)
    ! fault driver || say 18 "Failed to initialize NVML: Driver/library version mismatch"
    exec "$root/.sandbox/bin/nvidia-smi" "$@"
    ;;
  cloud-init)
    # As long as it is to last.
    while fault slow; do sleep 0.05; done
    ! fault cloud-init || exit 1
    ;;
  sshd) if [ -e "$box/forwarding" ]; then echo 'allowtcpforwarding yes'; else echo 'allowtcpforwarding no'; fi ;;
  ip) [ "${1:-}" = -6 ] || fault route || echo 'default via 10.0.0.1 dev eth0' ;;
  df)
    free=100000000
    ! fault disk || free=5000000
    printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda1 1 1 %s 1%% /\n' $free
    ;;
  ufw) case "$*" in status) if fault ufw; then echo 'Status: active'; else echo 'Status: inactive'; fi ;; esac ;;
  uname) echo x86_64 ;;
  nproc) echo 8 ;;
  modprobe) ! fault wireguard || exit 1 ;;
  journalctl) echo 'level=fatal msg="starting kubernetes: no default routes found"' ;;
  dpkg | true) ;;
  *) say 127 "$me (gpuprov sandbox): not played" ;;
esac
