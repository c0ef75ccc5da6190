#!/usr/bin/env python3
"""Packs the two programs as a Python wheel (https://packaging.python.org/specifications/binary-distribution-format/).

wheel.py VERSION PLATFORM PREFIX OUT: PREFIX has bin/ and share/doc/agentd/. pip puts the programs into the folder of
scripts of its environment. All times are SOURCE_DATE_EPOCH, so that two runs give equal files.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

version, platform, prefix, out = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
stamp = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # zip knows no time before 1980
docs = prefix / "share/doc/agentd"
info = f"agentd-{version}.dist-info"
metadata = f"""Metadata-Version: 2.4
Name: agentd
Version: {version}
Summary: A headless coding-agent daemon and its client, agentctl
License-Expression: MIT OR Apache-2.0
License-File: LICENSE
License-File: THIRD-PARTY-LICENSES.txt
Description-Content-Type: text/markdown

{(docs / "README.md").read_text(encoding="utf-8")}"""
tag = f"py3-none-{platform}"
files = {
    f"agentd-{version}.data/scripts/{name}": ((prefix / "bin" / name).read_bytes(), 0o755)
    for name in ("agentctl", "agentd")
}
files |= {f"{info}/licenses/{name}": ((docs / name).read_bytes(), 0o644) for name in ("LICENSE", "THIRD-PARTY-LICENSES.txt")}
files[f"{info}/METADATA"] = (metadata.encode(), 0o644)
wheel = f"Wheel-Version: 1.0\nGenerator: agentd deploy/release\nRoot-Is-Purelib: false\nTag: {tag}\n"
files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in files.items())
files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
with zipfile.ZipFile(out / f"agentd-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, (content, mode) in files.items():
        entry = zipfile.ZipInfo(name, stamp)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3  # Unix, so that the mode counts
        entry.external_attr = (0o100000 | mode) << 16
        archive.writestr(entry, content)
