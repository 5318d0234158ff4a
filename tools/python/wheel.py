#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs the package of a build folder as a wheel:

    python3 tools/python/wheel.py build/release/python/memsim FOLDER

The same files give the same bytes.  The wheel says which C library it needs
(manylinux_2_X): the newest version of it that program and library name.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: memsim
Version: {version}
Summary: Memory and time of training steps, before a GPU hour is spent
License: GPL-3.0-or-later
Requires-Python: >=3.8
Description-Content-Type: text/plain

{description}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: memsim
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY = "[console_scripts]\nmemsim = memsim.__main__:main\n"


def binary(path):
    """The bytes of a program or library without names for debuggers."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", copy, path], check=True)
        with open(copy, "rb") as file:
            return file.read()


def needs(path):
    """The libraries, and the minor version of the C library, it needs."""
    said = subprocess.run(["readelf", "-dVW", path], check=True, text=True,
                          env={**os.environ, "LC_ALL": "C"},
                          capture_output=True).stdout
    minors = re.findall(r"\bGLIBC_2\.(\d+)", said)
    return (set(re.findall(r"\(NEEDED\).*\[(.*)\]", said)),
            max(map(int, minors), default=0))


def contents(package):
    """Name in the wheel -> (mode, bytes); the C library's minor version."""
    files, newest = {}, 0
    for name in sorted(os.listdir(package)):
        path = os.path.realpath(os.path.join(package, name))
        if name in ("memsim", "libmemsim.so.1"):
            libraries, minor = needs(path)
            newest = max(newest, minor)
            foreign = [library for library in libraries
                       if not re.match(r"(libc|libm|ld-linux)[.-]", library)]
            if foreign:
                sys.exit(f"wheel.py: {path} needs {', '.join(foreign)}: "
                         "build it with the archives of igraph and zlib")
            files[f"memsim/{name}"] = (0o755, binary(path))
        elif name.endswith(".py"):
            with open(path, "rb") as file:
                files[f"memsim/{name}"] = (0o644, file.read())
    return files, newest


def docstring(package):
    with open(os.path.join(package, "__init__.py"), encoding="utf-8") as file:
        return file.read().split('"""')[1]


def write(path, files):
    """A ZIP without times and users."""
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (mode, data) in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    os.replace(path + ".new", path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    package, folder = sys.argv[1:]
    program = os.path.join(package, "memsim")
    version = subprocess.run([program, "--version"], check=True, text=True,
                             capture_output=True).stdout.split()[1]
    files, minor = contents(package)
    machine = os.uname().machine
    tag = f"py3-none-manylinux_2_{minor}_{machine}"
    here = os.path.dirname(os.path.abspath(__file__))
    texts = {
        "METADATA": METADATA.format(version=version,
                                    description=docstring(package)),
        "WHEEL": WHEEL.format(tag=tag),
        "entry_points.txt": ENTRY,
    }
    info = f"memsim-{version}.dist-info"
    for name, text in texts.items():
        files[f"{info}/{name}"] = (0o644, text.encode())
    for name, path in (("COPYING", "../../COPYING"),
                       ("copyright", "../debian/copyright")):
        with open(os.path.join(here, path), "rb") as file:
            files[f"{info}/{name}"] = (0o644, file.read())
    rows = []
    for name, (_, data) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        rows.append(f"{name},sha256={digest.decode().rstrip('=')},"
                    f"{len(data)}\n")
    record = f"{info}/RECORD"
    files[record] = (0o644, "".join([*rows, f"{record},,\n"]).encode())
    path = os.path.join(folder, f"memsim-{version}-{tag}.whl")
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()
