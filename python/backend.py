"""Builds the wheel of ptowsp.py (PEP 517). Nothing but Python is needed, so `pip install .` works offline.

A libptowsp.so beside ptowsp.py goes into the wheel, which then is for this machine alone.
"""

import base64
import hashlib
import os
import re
import sysconfig
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "libptowsp.so"


def _project():
    """The fields of [project] that are strings."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        return dict(re.findall(r'^([a-z-]+) = "(.*)"$', file.read(), re.M))


def _metadata(project):
    return (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        f"Summary: {project['description']}\nLicense: MIT\nRequires-Python: {project['requires-python']}\n"
        "Requires-Dist: numpy\n"
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project, names = _project(), ["ptowsp.py"]
    tag = "py3-none-any"
    if os.path.exists(os.path.join(HERE, LIBRARY)):
        names.append(LIBRARY)
        tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    stem = f"{project['name']}-{project['version']}"
    files = {}
    for name in names:
        with open(os.path.join(HERE, name), "rb") as file:
            files[name] = file.read()
    pure = "false" if LIBRARY in files else "true"
    files[f"{stem}.dist-info/METADATA"] = _metadata(project).encode()
    files[
        f"{stem}.dist-info/WHEEL"
    ] = f"Wheel-Version: 1.0\nGenerator: ptowsp\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    record = f"{stem}.dist-info/RECORD"
    rows = [f"{record},,"]
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    files[record] = ("\n".join(rows) + "\n").encode()
    wheel = f"{stem}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel
