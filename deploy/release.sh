#!/usr/bin/env bash
# Builds the packages of a release: a tarball, a Debian package, a Python wheel, an npm package, checksums, a list of
# dependencies (CycloneDX) and their licences. Two runs for one commit give equal files.
#
#   deploy/release.sh [--version V] [--out DIR] [--binaries DIR]
#
#   --version V      stop if the programs have another version
#   --out DIR        where the files go; default target/packages. Files of an earlier run are replaced
#   --binaries DIR   pack the programs of this folder instead of building (for trials of the packages)
#
# Needs: cargo, a C compiler (for the build), git, python3, dpkg-deb, objdump, GNU tar, gzip. Publishes nothing.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

fail() { echo "release.sh: $*" >&2; exit 1; }

wanted='' out=target/packages binaries=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || fail "$1 needs a value; see the head of this file"
  case $1 in
    --version) wanted=$2 ;;
    --out) out=$2 ;;
    --binaries) binaries=$2 ;;
    *) fail "unknown option $1; see the head of this file" ;;
  esac
  shift 2
done
for tool in cargo git python3 dpkg-deb objdump tar gzip sha256sum; do
  command -v "$tool" >/dev/null || fail "$tool is not installed"
done

# The time of all files. It comes from the commit, so that a second run does not differ.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
mkdir -p "$out"
out=$(realpath "$out")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

build() {
  # Paths of this machine must not be in the programs: they differ between machines and name a user.
  local cargo_home=${CARGO_HOME:-$HOME/.cargo}
  local map="$PWD=/agentd" cargo_map="$cargo_home=/cargo"
  # A folder of its own: these flags would make other builds in `target` start again.
  AGENTD_PORTABLE=1 CARGO_TARGET_DIR=$PWD/target/release-build \
    RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$map --remap-path-prefix=$cargo_map" \
    CFLAGS="${CFLAGS:-} -ffile-prefix-map=$map -ffile-prefix-map=$cargo_map" \
    CXXFLAGS="${CXXFLAGS:-} -ffile-prefix-map=$map -ffile-prefix-map=$cargo_map" \
    cargo build --release --locked --bins
  binaries=target/release-build/release
}

# The oldest C library with which the programs run. DT_RELR is a feature of the loader and has no version of its own.
libc_version() {
  local needed
  needed=$(objdump -p "$binaries/agentd" "$binaries/agentctl" | grep -o 'GLIBC_[0-9A-Z._]*' | sed 's/^GLIBC_//')
  needed=${needed//ABI_DT_RELR/2.36}
  sort -V <<<"$needed" | tail -n 1
}

# Files with fixed owner, order and time, for a tarball on standard output.
packed() { tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$@" | gzip -n; }

[ -n "$binaries" ] || build
binaries=$(realpath "$binaries")
version=$("$binaries/agentctl" --version | cut -d' ' -f2)
[ "$("$binaries/agentd" --version)" = "agentd $version" ] || fail "agentd and agentctl are of different versions"
[ -z "$wanted" ] || [ "$wanted" = "$version" ] || fail "the programs have version $version, not $wanted"
machine=$(uname -m)
libc=$(libc_version)
rm -f "$out"/agentd[-_]* "$out/SHA256SUMS" "$out/THIRD-PARTY-LICENSES.txt"

# What all packages contain: one folder as below /usr or ~/.local.
prefix=$stage/prefix
share=$prefix/share
mkdir -p "$prefix/bin" "$share/doc/agentd" "$share/man/man1" "$share/bash-completion/completions" \
  "$share/zsh/site-functions" "$share/fish/vendor_completions.d" "$share/systemd/user"
install -m 755 "$binaries/agentd" "$binaries/agentctl" "$prefix/bin/"
"$binaries/agentctl" completions bash >"$share/bash-completion/completions/agentctl"
"$binaries/agentctl" completions zsh >"$share/zsh/site-functions/_agentctl"
"$binaries/agentctl" completions fish >"$share/fish/vendor_completions.d/agentctl.fish"
"$binaries/agentctl" man "$share/man/man1"
install -m 644 README.md CHANGELOG.md LICENSE config.example.toml "$share/doc/agentd/"
install -m 644 deploy/README.md "$share/doc/agentd/DEPLOYING.md"
install -m 644 deploy/systemd/user/agentd.service deploy/systemd/user/agentd.socket "$share/systemd/user/"
python3 deploy/release/dependencies.py "$version" "$out/agentd-$version.cdx.json" "$share/doc/agentd/THIRD-PARTY-LICENSES.txt"
cp "$share/doc/agentd/THIRD-PARTY-LICENSES.txt" "$out/"

tarball() {
  local name=agentd-$version-$machine-linux-gnu
  cp -r "$prefix" "$stage/$name"
  # Unpacked in ~/.local, the unit starts the program there.
  sed -i 's|^\(Exec[A-Za-z]*\)=/usr/bin/|\1=%h/.local/bin/|; /^# Without a package:/d' \
    "$stage/$name/share/systemd/user/agentd.service"
  packed -C "$stage" -c "$name" >"$out/$name.tar.gz"
}

# dpkg-deb and not cargo-deb: the tree is there already, and cargo-deb would have to be compiled first.
debian() {
  local root=$stage/debian architecture
  architecture=$(dpkg --print-architecture)
  mkdir -p "$root/DEBIAN" "$root/usr/lib/systemd/system" "$root/usr/lib/sysusers.d" "$root/usr/lib/tmpfiles.d"
  cp -r "$prefix"/. "$root/usr/"
  # Debian has other places for these.
  mkdir -p "$root/usr/lib/systemd/user" "$root/usr/share/zsh"
  mv "$root/usr/share/systemd/user"/* "$root/usr/lib/systemd/user/"
  rm -r "$root/usr/share/systemd"
  mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
  mv "$root/usr/share/doc/agentd/LICENSE" "$root/usr/share/doc/agentd/copyright"
  mv "$root/usr/share/doc/agentd/CHANGELOG.md" "$root/usr/share/doc/agentd/changelog"
  find "$root/usr/share/man" "$root/usr/share/doc/agentd/changelog" -type f -exec gzip -9n {} +
  install -m 644 deploy/systemd/system/agentd.service deploy/systemd/system/agentd.socket "$root/usr/lib/systemd/system/"
  install -m 644 deploy/systemd/system/sysusers.conf "$root/usr/lib/sysusers.d/agentd.conf"
  install -m 644 deploy/systemd/system/tmpfiles.conf "$root/usr/lib/tmpfiles.d/agentd.conf"
  install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
  sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@LIBC@/$libc/" \
    -e "s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" deploy/debian/control >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/agentd_${version}_$architecture.deb" >/dev/null
}

# A script of ours and not maturin, which compiles by itself and cannot take programs that are there already.
wheel() { python3 deploy/release/wheel.py "$version" "manylinux_${libc/./_}_$machine" "$prefix" "$out"; }

npm() {
  local root=$stage/npm/package cpu=$machine
  case $machine in x86_64) cpu=x64 ;; aarch64) cpu=arm64 ;; esac
  mkdir -p "$root"
  cp -r "$prefix/bin" "$root/bin"
  cp "$share/doc/agentd/LICENSE" "$share/doc/agentd/README.md" "$share/doc/agentd/THIRD-PARTY-LICENSES.txt" "$root/"
  sed "s/@VERSION@/$version/; s/@CPU@/$cpu/" deploy/release/package.json >"$root/package.json"
  packed -C "$stage/npm" -c package >"$out/agentd-$version.tgz"
}

tarball
debian
wheel
npm
cd "$out"
sha256sum -- agentd[-_]* THIRD-PARTY-LICENSES.txt >SHA256SUMS
echo "agentd $version for $machine, glibc $libc or newer, in $out:"
stat -c '%12s  %n' -- agentd[-_]* THIRD-PARTY-LICENSES.txt SHA256SUMS
