#!/usr/bin/env python3
"""Writes the dependencies of the two programs as CycloneDX 1.5 (JSON), and their licence texts.

dependencies.py VERSION SBOM LICENCES. The source is `cargo metadata` for this machine's target: what is compiled into
the programs, and what only build scripts use (scope "excluded"). Licence texts are those in the packages themselves.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

version, sbom_file, licence_file = sys.argv[1:4]
host = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.M)[1]
metadata = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host], text=True))
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = metadata["resolve"]["root"]
checksums = {
    (name, number): checksum for name, number, checksum in re.findall(
        r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"',
        Path("Cargo.lock").read_text(encoding="utf-8"))}


def reach(starts, kinds):
    """The packages that these ones depend on, by dependencies of these kinds, and they themselves."""
    found, waiting = set(), list(starts)
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        found.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] in kinds for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return found


compiled = reach([root], {None})
everything = reach([root], {None, "build"})


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def is_foreign(package_id):
    return packages[package_id]["source"] is not None


def component(package_id):
    package = packages[package_id]
    entry = {"type": "library", "bom-ref": reference(package), "name": package["name"], "version": package["version"],
             "scope": "required" if package_id in compiled else "excluded", "purl": reference(package)}
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        # An older way to write OR.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


foreign = sorted(filter(is_foreign, everything), key=lambda it: (packages[it]["name"], packages[it]["version"]))
program = f"pkg:generic/agentd@{version}"


def foreign_dependencies(package_id):
    """The nearest dependencies that are not members of this workspace."""
    found = set()
    for dependency in nodes[package_id]["deps"]:
        if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
            found |= {dependency["pkg"]} if is_foreign(dependency["pkg"]) else foreign_dependencies(dependency["pkg"])
    return found


def edges(ref, package_id):
    return {"ref": ref, "dependsOn": sorted(reference(packages[it]) for it in foreign_dependencies(package_id))}


components = [component(it) for it in foreign]
sbom = {
    "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
    # Equal contents have an equal number.
    "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components) + version)}",
    "metadata": {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))),
        "component": {"type": "application", "bom-ref": program, "name": "agentd", "version": version,
                      "licenses": [{"expression": "MIT OR Apache-2.0"}]},
    },
    "components": components,
    "dependencies": [edges(program, root)] + [edges(reference(packages[it]), it) for it in foreign],
}
Path(sbom_file).write_text(json.dumps(sbom, indent=1) + "\n", encoding="utf-8")

texts = {}
for package_id in sorted(filter(is_foreign, compiled), key=lambda it: (packages[it]["name"], packages[it]["version"])):
    package = packages[package_id]
    folder = Path(package["manifest_path"]).parent
    names = [it for it in sorted(folder.iterdir())
             if it.is_file() and re.match(r"(?i)(un)?licen[cs]e|copying|copyright|notice", it.name)
             and it.suffix not in (".rs", ".html")]
    label = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
    if package["license_file"] and folder / package["license_file"] not in names:
        names.append(folder / package["license_file"])
    for name in names:
        text = name.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()
        texts.setdefault(hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest(), (text, []))[1].append(label)
    if not names:
        # The text of these licences is that of other packages below.
        texts.setdefault("", ("These packages carry no text of their own; their licence is the one that is named.", []))[1].append(label)
with open(licence_file, "w", encoding="utf-8") as out:
    out.write("Licences of the libraries in agentd and agentctl. agentd's own is in LICENSE.\n")
    for text, labels in texts.values():
        out.write(f"\n{'=' * 100}\n" + "\n".join(sorted(set(labels))) + f"\n{'-' * 100}\n{text}\n")
