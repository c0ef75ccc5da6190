#!/usr/bin/env bash
# Tries the Debian package and its units under a booted systemd, in a container of systemd-nspawn.
#
#   deploy/tests/systemd.sh PACKAGE.deb
#
# Needs root, systemd-nspawn and, for the first run, debootstrap (4 minutes, 400 MB in target/systemd-tree). Where that is
# missing, it prints SKIPPED and the reason. A trial takes about 3 minutes. The container has no network.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "SKIPPED units under a booted systemd: $*"; exit 0; }
fail() { echo "FAILED: $*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

package=$(realpath "${1:?the Debian package}")
[ "$(id -u)" = 0 ] || skip "needs root"
command -v systemd-nspawn >/dev/null || skip "systemd-nspawn is not installed (apt install systemd-container)"
tree=${AGENTD_SYSTEMD_TREE:-$PWD/target/systemd-tree}
if [ ! -e "$tree/sbin/init" ]; then
  command -v debootstrap >/dev/null || skip "debootstrap is not installed"
  debootstrap --variant=minbase \
    --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,bubblewrap,git,ca-certificates,python3,sudo \
    stable "$tree" >/dev/null || skip "debootstrap could not make a system"
fi

work=$(mktemp -d)
mkdir "$work/upper" "$work/work" "$work/root"
boot_pid='' leader=''
clean_up() {
  # With process 1 of the container everything in it ends.
  [ -z "$boot_pid" ] || [ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null || true
  [ -z "$boot_pid" ] || kill -KILL "$boot_pid" 2>/dev/null || true
  while mountpoint -q "$work/root" && ! umount "$work/root"; do sleep 0.5; done
  rm -rf "$work"
}
trap clean_up EXIT
# Changes go to a layer above the tree, so that every trial begins with the same system.
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$work/upper,workdir=$work/work" "$work/root" ||
  skip "overlay file systems do not work here"
cp "$package" "$work/root/root/agentd.deb"
cp deploy/tests/model_server.py "$work/root/root/"

# wait_for SECONDS WHAT COMMAND…: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { "$@" || true; fail "$what did not come"; }
    sleep 0.2
  done
}

# Boots the container, and waits until the user's systemd has started too if the user lingers.
boot() {
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --quiet --directory="$work/root" --machine="agentd-trial-$$" \
    --register=no --keep-unit --private-network \
    --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" --console=pipe --boot \
    systemd.unified_cgroup_hierarchy=1 </dev/null >>"$work/console" 2>&1 &
  boot_pid=$!
  leader=''
  for _ in $(seq 100); do
    leader=$(pgrep -P "$boot_pid" | head -n 1) && break
    kill -0 "$boot_pid" 2>/dev/null || skip "systemd-nspawn does not work here: $(tail -n 3 "$work/console")"
    sleep 0.1
  done
  wait_for 60 "a booted systemd" is_booted
}
is_booted() {
  # The first child of systemd-nspawn is not the process 1 of the container yet.
  leader=$(pgrep -P "$boot_pid" | head -n 1) && inside systemctl is-active --quiet multi-user.target
}
inside() { nsenter --target "$leader" --all -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@"; }
power_off() {
  inside systemctl poweroff
  for _ in $(seq 300); do kill -0 "$boot_pid" 2>/dev/null || break; sleep 0.1; done
  wait "$boot_pid" || true
  boot_pid=''
}
daemon_runs() { inside sh -c 'cat /proc/[0-9]*/comm 2>/dev/null | grep -qx agentd'; }
user() { inside runuser -u worker -- env HOME=/home/worker XDG_RUNTIME_DIR=/run/user/1000 sh -c 'cd && "$@"' sh "$@"; }
value() { user systemctl --user show --value -p "$1" agentd.service; }
# For wait_for: a command line with the functions above.
retry() { bash -c "$(declare -f inside user value); leader=$leader; $1"; }
# The configuration of both daemons: the scripted model.
settings() {
  cat <<'TOML'
[models]
main = "anthropic/claude-sonnet-5-5"
[permissions]
allow = ["Bash"]
[providers.anthropic]
kind = "anthropic"
base_url = "http://127.0.0.1:18080"
TOML
}
serve_models() {
  inside systemd-run --quiet --unit=models python3 /root/model_server.py 18080 /tmp/calls.log
  wait_for 10 "the model server" inside python3 -c 'import socket; socket.create_connection(("127.0.0.1", 18080))'
}

say "boot, install the package"
boot
inside systemctl --version | head -n 1
inside hostname localhost
inside useradd --create-home --uid 1000 worker
SECONDS=0
inside dpkg -i /root/agentd.deb
echo "installed after ${SECONDS} s"
inside systemd-analyze --man=no verify /usr/lib/systemd/system/agentd.service /usr/lib/systemd/system/agentd.socket
inside loginctl enable-linger worker
wait_for 20 "the user's systemd" user systemctl --user is-system-running --wait
[ "$(user systemctl --user is-enabled agentd.socket || true)" = disabled ] || fail "the package enabled a unit"
user systemd-analyze --man=no --user verify /usr/lib/systemd/user/agentd.service /usr/lib/systemd/user/agentd.socket
! daemon_runs || fail "the package started a daemon"
serve_models
user mkdir -p .config/agentd
settings | user sh -c 'cat > .config/agentd/config.toml'

say "the first client starts the daemon"
user systemctl --user enable --now agentd.socket
! daemon_runs || fail "a daemon runs before the first client"
user agentctl run "hello" </dev/null
[ "$(value ActiveState)" = active ] || fail "the daemon is not the service"
pid=$(value MainPID)
user agentctl doctor | tee "$work/doctor"
grep -q 'unattended sessions: level [23]' "$work/doctor" || fail "the unit takes the sandbox away"

say "a command runs in a cgroup below the unit"
user agentctl run -a dont_ask "bash: cat /proc/self/cgroup" </dev/null
user agentctl logs . | tee "$work/logs"
grep -q 'agentd.service/agentd-[^/]*call_' "$work/logs" || echo "NOTE: not below the unit; see above"

say "the journal has the fields of the daemon"
inside journalctl --no-pager -o json _SYSTEMD_USER_UNIT=agentd.service |
  python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
own = [line for line in lines if line.get("TARGET", "").split("::")[0] in ("daemon", "agentd")]
assert own, lines[:3]
print(len(own), "entries; the fields of one:", {k: v for k, v in own[-1].items() if not k.startswith("_")})'

# in_a_turn COMMAND…: runs the command while a model's answer streams to an attached client. The client and the turn must go
# on in another process, and no event may be missing or twice.
in_a_turn() {
  local attached
  pid=$(value MainPID)
  user agentctl run "slow" </dev/null >"$work/attached" 2>&1 &
  attached=$!
  wait_for 20 "a streamed word" retry 'user agentctl events . --json | grep -q word3'
  SECONDS=0
  "$@"
  echo "done after ${SECONDS} s"
  [ "$(value MainPID)" != "$pid" ] || fail "the process is the same"
  wait "$attached" || fail "the attached client ended with $?: $(cat "$work/attached")"
  tail -n 1 "$work/attached"
  user agentctl events . --json | python3 -c '
import json, sys
events = [json.loads(line) for line in sys.stdin]
seqs = [event["seq"] for event in events]
kinds = [event["type"] for event in events]
assert seqs == sorted(set(seqs)), seqs
assert kinds.count("turn.completed") == 1 and "turn.parked" in kinds, kinds
print(len(seqs), "events in order, one turn.parked, one turn.completed")'
}
upgrade() {
  inside dpkg -i /root/agentd.deb
  user agentctl daemon restart
}

say "restart in the middle of a turn, with a client attached"
in_a_turn user systemctl --user restart agentd.service

say "upgrade of the package in the middle of a turn"
in_a_turn upgrade

say "reload"
user sh -c 'echo "no_such_key = 1" >> .config/agentd/config.toml'
! user systemctl --user reload agentd.service || fail "a wrong configuration was accepted"
wait_for 10 "the refused reload" retry 'user agentctl daemon status | grep "reload.*failed"'
user sed -i '/no_such_key/d' .config/agentd/config.toml
user systemctl --user reload agentd.service
wait_for 10 "the reload" retry '! user agentctl daemon status | grep "reload.*failed"'
user agentctl daemon status | grep reload

say "stop and restart by agentctl, where systemd keeps the socket"
SECONDS=0
user agentctl daemon stop
[ "$SECONDS" -lt 12 ] || fail "the stop took $SECONDS s"
[ "$(value ActiveState)" = inactive ] || fail "the service is $(value ActiveState)"
user agentctl daemon restart
[ "$(value ActiveState)" = active ] || fail "the daemon is not the service any more"
pid=$(value MainPID)
user agentctl daemon restart
[ "$(value MainPID)" != "$pid" ] || fail "it was not restarted"
[ "$(value ActiveState)" = active ] || fail "the daemon is not the service any more"

say "restart by agentctl without a socket unit"
user systemctl --user disable --now agentd.socket
user systemctl --user stop agentd.service
user systemctl --user enable --now agentd.service
pid=$(value MainPID)
user agentctl daemon restart
[ "$(value MainPID)" != "$pid" ] || fail "it was not restarted"
[ "$(value ActiveState)" = active ] || fail "the daemon is not the service any more"

say "the watchdog kills a daemon that does not answer"
user mkdir -p .config/systemd/user/agentd.service.d
user sh -c 'printf "[Service]\nWatchdogSec=4\n" > .config/systemd/user/agentd.service.d/trial.conf'
user systemctl --user daemon-reload
# On a fast machine the restarts above come close to the limit of systemd.
user systemctl --user reset-failed agentd.service
user systemctl --user restart agentd.service
pid=$(value MainPID)
sleep 10
[ "$(value MainPID)" = "$pid" ] || fail "a working daemon was killed"
echo "after 10 s with WatchdogSec=4: process $pid still runs"
inside sh -c "kill -STOP $pid"
SECONDS=0
# shellcheck disable=SC2016
wait_for 30 "another daemon" retry '[ "$(value MainPID)" != '"$pid"' ] && [ "$(value ActiveState)" = active ]'
echo "stopped by SIGSTOP; replaced after ${SECONDS} s; NRestarts=$(value NRestarts)"
user agentctl doctor --quick

say "a job that is due starts after a boot, without a login"
SECONDS=0
user agentctl jobs add -p "hello" --in 60s --title trial
power_off
echo "off after ${SECONDS} s"
[ "$SECONDS" -lt 60 ] || fail "the job was due before the machine was off"
boot
serve_models
wait_for 90 "the end of the job" retry 'user agentctl jobs --state succeeded | grep trial'
user agentctl jobs | sed 's/ *$//'

say "the system's daemon, with a key as a credential"
inside systemd-sysusers agentd.conf
inside systemd-tmpfiles --create agentd.conf
inside mkdir -p /etc/agentd /etc/systemd/system/agentd.service.d
inside sh -c 'umask 077; echo sk-credential > /etc/agentd/anthropic.key'
inside sh -c 'printf "[Service]\nLoadCredential=anthropic:/etc/agentd/anthropic.key\n" > /etc/systemd/system/agentd.service.d/key.conf'
{ settings; echo 'api_key_file = "credential:anthropic"'; } | inside sh -c 'cat > /etc/agentd/config.toml'
inside systemctl daemon-reload
inside systemctl enable --now agentd.socket
system() { inside sudo -H -u agentd sh -c 'cd && "$@"' sh "$@"; }
system agentctl run -a dont_ask "bash: id -un; grep NoNewPrivs /proc/self/status" </dev/null
system agentctl logs .
inside tail -n 1 /tmp/calls.log | grep -q sk-credential || fail "the key did not arrive"
[ "$(inside systemctl show --value -p ActiveState agentd.service)" = active ] || fail "the daemon is not the service"
system agentctl doctor | tee "$work/doctor"
grep -q 'unattended sessions: level [23]' "$work/doctor" || fail "the unit takes the sandbox away"
inside systemctl restart agentd.service
system agentctl doctor --quick
inside systemd-analyze security --no-pager agentd.service | tail -n 1
user systemd-analyze --user security --no-pager agentd.service | tail -n 1

say "remove, purge: what stays"
inside dpkg --remove agentd
inside dpkg --purge agentd
! inside test -e /usr/bin/agentd || fail "the program is still there"
inside ls -d /home/worker/.local/share/agentd /var/lib/agentd/.local/share/agentd /etc/agentd
power_off
say "all of it worked"
