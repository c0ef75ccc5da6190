#!/usr/bin/env bash
# Installs the tarball, the wheel and the npm package of a folder of deploy/release.sh, each in a clean place with an empty
# home; runs the demo (a real daemon with recorded replies) and removes the package again.
#
#   deploy/tests/packages.sh DIR
#
# No network is used. Prints SKIPPED where pip or npm is missing. The Debian package is tried by systemd.sh.
set -euo pipefail
packages=$(realpath "${1:?the folder with the packages}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_RUNTIME_DIR=$work/run
unset XDG_DATA_HOME XDG_CONFIG_HOME XDG_STATE_HOME AGENTD_SOCKET AGENTD_DATA_DIR AGENTD_CONFIG
unset ANTHROPIC_API_KEY OPENAI_API_KEY OLLAMA_HOST
mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR"
cd "$work"
fail() { echo "FAILED: $*" >&2; exit 1; }

(cd "$packages" && sha256sum --quiet -c SHA256SUMS)

# try_programs WHAT FOLDER SECONDS: agentctl of the folder finds its agentd, and a session works.
try_programs() {
  local bin=$2 end
  "$bin/agentctl" --version
  end=$("$bin/agentctl" demo --yes </dev/null 2>&1 | tail -n 3) || fail "$1: the demo failed: $end"
  "$bin/agentctl" daemon start
  "$bin/agentctl" doctor --quick
  "$bin/agentctl" uninstall --purge --yes >/dev/null
  [ ! -e "$HOME/.local/share/agentd" ] || fail "$1: uninstall left data"
  echo "$1: installed in $3 s, $(du -shL "$bin" | cut -f1) for the folder of programs; demo and uninstall work"
}

SECONDS=0
mkdir tarball
tar -xzf "$packages"/agentd-*-linux-gnu.tar.gz --strip-components=1 -C tarball
try_programs tarball "$work/tarball/bin" "$SECONDS"

if command -v python3 >/dev/null && python3 -m venv venv; then
  SECONDS=0
  venv/bin/pip install --quiet --no-index --disable-pip-version-check "$packages"/agentd-*.whl
  try_programs wheel "$work/venv/bin" "$SECONDS"
  venv/bin/pip uninstall --quiet --yes --disable-pip-version-check agentd
  [ ! -e venv/bin/agentd ] || fail "wheel: the program is still there"
else
  echo "SKIPPED wheel: no venv of Python"
fi

if command -v npm >/dev/null; then
  SECONDS=0
  npm install --silent --offline --no-audit --no-fund --prefix npm --global "$packages"/agentd-?*.tgz
  try_programs npm "$work/npm/bin" "$SECONDS"
  npm uninstall --silent --prefix npm --global agentd
  [ ! -e npm/bin/agentd ] || fail "npm: the program is still there"
else
  echo "SKIPPED npm package: npm is not installed"
fi
echo "packages: all of it worked"
