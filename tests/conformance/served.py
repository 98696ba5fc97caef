"""What the official clients' runs have in common: the sandbox that they talk to, counted checks, a login, the end."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

home = tempfile.mkdtemp(prefix="gpuprov-conformance-")
checks = 0


def check(value, what):
    global checks
    if not value:
        raise AssertionError(what)
    checks += 1


class Served:
    """`gpuprov sandbox serve` with the variables that it prints, and `client`: what it says for the official client in the first
    group of `pattern`."""

    def __init__(self, gpuprov, pattern):
        variables = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}
        self.child = subprocess.Popen([gpuprov, "sandbox", "serve"], env=variables, stdout=subprocess.PIPE, text=True)
        self.variables, self.client, self.control = {}, None, None
        for line in self.child.stdout:
            if found := re.match(r"export (\w+)='(.*)'$", line):
                self.variables[found[1]] = found[2]
            elif found := re.match(pattern, line):
                self.client = found[1]
            elif found := re.match(r"# control path: (\S+)$", line):
                self.control = found[1]
                return
        raise AssertionError(f"the sandbox ended with {self.child.wait()}")

    def ask(self, path, method="GET", body=None):
        request = urllib.request.Request(f"{self.control}/{path}", method=method)
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=10) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def ssh_port(self, cloud):
        with open(self.variables["GPUPROV_CONFIG"], encoding="utf-8") as file:
            return int(re.search(rf"\[{cloud}\]\nssh_port = (\d+)", file.read())[1])

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()


def key_pair():
    """A new key: its file, and its public half as text."""
    file = os.path.join(home, "id_ed25519")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    with open(f"{file}.pub", encoding="utf-8") as public:
        return file, public.read().strip()


def ssh(key, user, host, port, command, known=None):
    """Logs in, again while nothing answers. With a file of known hosts the machine must be the `dev` of that file."""
    options = ["BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "ConnectTimeout=5"]
    if known is None:
        options += ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"]
    else:
        options += ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "HostKeyAlias=dev"]
    words = ["ssh", "-F", "/dev/null", "-i", key, "-p", str(port)]
    for option in options:
        words += ["-o", option]
    for _ in range(40):
        done = subprocess.run(
            [*words, f"{user}@{host}", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
        if done.returncode != 255:
            return done
        time.sleep(0.25)
    return done


def main(cloud, served, run, limit):
    """Runs it for `limit` seconds at most, and says how it ended. The sandbox is stopped in any case."""

    def end(code):
        served.stop()
        shutil.rmtree(home, ignore_errors=True)
        # Also from the timer's thread, whatever the other one waits for.
        os._exit(code)

    def failed(why):
        print(f"conformance: {cloud}: FAILED: {why}", file=sys.stderr, flush=True)
        end(1)

    threading.Timer(limit, failed, ["too long"]).start()
    try:
        run(served)
    except Exception as error:
        failed(f"{type(error).__name__}: {error}")
    print(f"conformance: {cloud}: {checks} checks passed", flush=True)
    end(0)
