# shellcheck shell=bash
# For the `run` of a cloud whose official client is a Python package; sourced, with `here` set to the cloud's folder. Sets `cloud`,
# `target`, `gpuprov` and `place`, where its packages go.
set -euo pipefail

cloud=$(basename "$here")
target=${CARGO_TARGET_DIR:-$here/../../../target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
gpuprov=$(realpath "${1:-$target/debug/gpuprov}")
[ -x "$gpuprov" ] || { echo "error: no $gpuprov; run \`cargo build\` first" >&2; exit 1; }
place=$target/conformance/$cloud
# What the runs share is imported from the folder above; nothing is written beside it.
export PYTHONPATH=$here/.. PYTHONDONTWRITEBYTECODE=1

have_python() {
    command -v python3 >/dev/null &&
        python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

if ! have_python && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv || true
fi
if ! have_python; then
    echo "conformance: $cloud: SKIPPED, because python 3.10 or newer with venv cannot be had here"
    exit 0
fi

pip() {
    "$place/venv/bin/pip" "$1" --quiet --disable-pip-version-check --cache-dir "$target/conformance/pip" "${@:2}"
}

install() {
    pip install -r "$here/requirements.txt"
}

# Makes the environment anew when the versions change: by the function `install`, which a `run` may replace. The last step is the mark
# that it is whole.
prepare() {
    if ! cmp -s "$here/requirements.txt" "$place/whole"; then
        rm -rf "$place"
        mkdir -p "$place"
        python3 -m venv "$place/venv"
        install
        cp "$here/requirements.txt" "$place/whole"
    fi
}
