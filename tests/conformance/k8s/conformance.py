"""The real kubectl on a cluster of the sandbox: through a tunnel of its own, and through a file with `k8s tunnel` beside it.

usage: conformance.py GPUPROV
"""

import json
import os
import signal
import subprocess
import sys

import served
from served import check, home

LIMIT = 120
gpuprov = sys.argv[1]
env = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "GPUPROV_SANDBOX": "1"}


def run(*words, code=0, **more):
    done = subprocess.run([*words], env={**env, **more}, capture_output=True, text=True, timeout=LIMIT)
    check(done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


try:
    run(gpuprov, "provision", "--gpus", "H100:1", "--cloud", "verda", "--name", "dev", "--k8s")
    version = json.loads(run(gpuprov, "kubectl", "dev", "--", "version", "-o", "json"))
    check(version["serverVersion"]["gitVersion"] == "v1.36.4+k3s1", version)
    client = version["clientVersion"]["gitVersion"]
    table = run(gpuprov, "kubectl", "dev", "--", "get", "nodes")
    check(table.split()[:4] == ["NAME", "STATUS", "ROLES", "VERSION"] and "dev" in table, table)
    gpus = run(gpuprov, "kubectl", "dev", "get", "node", "dev", "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}")
    check(gpus == "1", gpus)
    run(gpuprov, "kubectl", "dev", "--", "get", "pods", "-A")
    run(gpuprov, "kubectl", "dev", "--", "get", "nodes", "nobody", code=1)
    check(run(gpuprov, "kubectl", "dev", "--", "get", "--raw=/readyz") == "ok", "readyz")

    file = run(gpuprov, "kubeconfig", "dev").strip()
    tunnel = subprocess.Popen([gpuprov, "k8s", "tunnel", "dev"], env=env, stdout=subprocess.PIPE, text=True)
    check(tunnel.stdout.readline().strip() == file, "the tunnel names the file")
    check("dev" in run("kubectl", "get", "nodes", "-o", "name", KUBECONFIG=file), "nodes through the file")
    check(run("kubectl", "config", "current-context", KUBECONFIG=file).strip() == "gpuprov-dev", "the context's name")
    # A kubectl that trusts another authority is not let through: the verification is on.
    run("kubectl", "get", "nodes", "--server", "https://localhost:1", code=1, KUBECONFIG=file)
    tunnel.send_signal(signal.SIGINT)
    check(tunnel.wait(timeout=LIMIT) == 0, "the tunnel ends with Ctrl-C")
    run("kubectl", "get", "nodes", "--request-timeout=5s", code=1, KUBECONFIG=file)
    run(gpuprov, "rm", "dev", "--yes")
    check(not os.path.exists(file), "the file goes with its machine")
finally:
    subprocess.run([gpuprov, "sandbox", "stop"], env=env, capture_output=True, timeout=LIMIT)
print(f"conformance: k8s: kubectl {client} is content, {served.checks} checks")
