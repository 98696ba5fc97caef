# Prints the cluster's own kubeconfig, which only root can read.
file=${GPUPROV_ROOT:-}/etc/rancher/k3s/k3s.yaml
as_root=
[ "$(id -u)" = 0 ] || as_root='sudo -n'
$as_root cat "$file"
