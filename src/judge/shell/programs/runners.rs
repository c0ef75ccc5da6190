//! Programs that run a command given by their arguments, by name.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::shell::programs::lookup::stem;

/// Programs that run a command: options with a value, and the number of words between the options and
/// the command.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("sudo", "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot", 0),
    ("doas", "-u -C", 0),
    ("env", "-u -C -S --unset --chdir", 0),
    ("nice", "-n --adjustment", 0),
    ("choom", "-n -p --adjust --pid", 0),
    ("ld.so", "--library-path --preload --audit --argv0", 0),
    ("ionice", "-c -n -p --class --classdata", 0),
    ("timeout", "-s -k --signal --kill-after", 1),
    ("time", "-f -o --format --output", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "-i -o -e --input --output --error", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "-a", 0),
    ("xargs", XARGS_VALUES, 0),
    ("strace", "-e -o -p -s -u -a -b -E -I -O -P -S -X", 0),
    ("ltrace", "-e -o -p -s -u -a -l -n", 0),
    ("valgrind", "", 0),
    ("chroot", "", 1),
    ("unshare", "-R -w -S -G", 0),
    ("nsenter", "-t -S -G", 0),
    ("chrt", "-T -P -D -p", 1),
    ("taskset", "-p", 1),
    ("numactl", "-N -m -i -C", 0),
    ("setarch", "", 1),
    ("linux32", "", 0),
    ("linux64", "", 0),
    ("prlimit", "-p", 0),
    ("systemd-run", "-u -p -E --unit --property --setenv --uid --gid", 0),
    ("systemd-inhibit", "", 0),
    ("firejail", "", 0),
    ("unbuffer", "", 0),
    ("runuser", "-u -g -G -c -s", 0),
    ("setpriv", "", 0),
    ("capsh", "", 0),
    ("pkexec", "--user", 0),
    ("gosu", "", 1),
    ("su-exec", "", 1),
    ("dumb-init", "", 0),
    ("tini", "-p -e", 0),
    ("catchsegv", "", 0),
    ("caffeinate", "-t -w", 0),
    ("fakeroot", "-l -s -i -f", 0),
    ("proot", "-r -b -w", 0),
    ("eatmydata", "", 0),
    ("proxychains", "-f", 0),
    ("torsocks", "", 0),
    ("dbus-run-session", "", 0),
    ("xvfb-run", "-n -s -e -f -p -w", 0),
    ("chronic", "", 0),
    ("ifne", "", 0),
    ("errno", "", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("ssh-agent", "-a -t", 0),
    ("cross-env", "", 0),
    ("cross-env-shell", "", 0),
    (
        "nyc",
        "-r -x -n -e --reporter --report-dir --temp-dir -t --require --include --exclude --extension --cwd",
        0,
    ),
    ("c8", "-r -x -n -o --reporter --reports-dir --temp-directory --include --exclude --config --src", 0),
    ("dotenv", "-e -f -c", 0),
    ("aws-vault", "", 2),
    ("perf", "-e -o -p -F", 1),
    ("gdb", "-x -ex -p -iex -ix", 0),
    ("lldb", "-o -s -S -O", 0),
    ("rr", "", 1),
    ("entr", "", 0),
    ("watchexec", "-w -e -i -f", 0),
    ("cpulimit", "-l -e -p", 0),
    ("softlimit", "", 0),
    ("chpst", "-u -U -/ -n -m -d", 0),
    ("setuidgid", "", 1),
    ("envdir", "", 1),
    ("start-stop-daemon", "-p -n -u -c", 0),
    ("npx", "-p --package", 0),
    ("bunx", "", 0),
    ("uvx", "--from --with -p", 0),
    ("pnpx", "", 0),
    ("xcrun", "--sdk", 0),
    // On macOS; elsewhere it only prints the machine type.
    ("arch", "-arch -e -d", 0),
];

const XARGS_VALUES: &str = "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args \
    --max-procs --max-chars --process-slot-var";

/// Programs that always run something else, recognised by their name alone; their arguments are only
/// searched for texts.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash"];

/// Runners of which only the name is known.
const OTHERS: &str = "\
    abuild authbind cmd dzdo es flatpak-spawn gparallel gsudo i3-msg intercept-build lxc-execute nocache \
    please rargs rc rdo runlim setlock spawn-fcgi sudo-rs swaymsg tcpserver vglrun viddy xe xpra \
    annotate-output apply asciinema awsume bashcov berglas bsub cage catatonit checkinstall clush \
    compute-sanitizer condor_run cowbuilder cuda-memcheck dbus-launch detach dockerize dsh dtruss \
    envuidgid fakeroot-ng forkrun gamescope gita gksudo gomplate graftcp incus jexec kdesu ktrace \
    mangohud memusage mprocs mr multitime nsys nvprof okteto operf optirun parallel-ssh pbuilder pexec \
    plink ppss prime-run primusrun pssh pytest-watch ptw qsub ray remsh rerun retry rexec runsv \
    s6-setuidgid salloc saml2aws sbatch sbuild scl sotruss spack startx summon supervisord telepresence \
    termtosvg trace-cmd truss turbostat wait-on watchmedo xinit xjobs xtrace rust-gdb rust-lldb watchman \
    dtrace parallel msgexec msgfilter corepack envconsul consul-template rtcwake sem watch ssh mosh \
    autossh sshpass su script flock eval source . trap expect tmux screen at batch bwrap nix-shell \
    hyperfine reflex nodemon concurrently run-parts socat ncat osascript adb distrobox toolbox lxc \
    machinectl ansible ansible-playbook pdsh fabric fab invoke mux coproc direnv mise asdf op doppler \
    chamber act ccache sccache distcc icecc bear scan-build mpirun mpiexec srun proxychains4 \
    proxychains-ng tsocks torify trickle faketime rlwrap cgexec execlineb foreground logsave pee mispipe \
    lckdo zrun daemon daemonize nq tsp gtime gtimeout gnice gxargs genv gnohup gstdbuf gchroot schroot \
    arch-chroot systemd-nspawn systemd-cat systemd-socket-activate run0 pidproxy dtach abduco zellij \
    cset aa-exec runcon sg sandbox-exec minijail0 nsjail bubblewrap fakechroot pseudo kcov gdbserver \
    uftrace heaptrack bpftrace samply flamegraph wine box64 i386 x86_64 uname26 linux coreutils \
    when-changed onchange chokidar dotenvx dotenv-cli dotenv-flow dotenv-run with-env wait-for-it \
    wait-for start-server-and-test ts-node-dev tsnd supervisor istanbul py-spy scalene memray viztracer \
    kernprof mprof austin foreman honcho overmind hivemind goreman process-compose gow modd pkgx devbox \
    rtx steam-run rust-parallel env-cmd envchain with-contenv teller infisical multipass limactl colima \
    orb wsl lxc-attach yash posh osh oksh bash-static pwsh nu elvish xonsh";

/// For these programs: options that take the next word, and the number of words before the command.
const KNOWN: &[(&str, &str, usize)] = &[
    ("flock", "-w -E --wait --timeout --conflict-exit-code", 1),
    ("watch", "-n --interval", 0),
    ("ssh", "-p -l -i -o -F -J -L -R -D -b -c -e -m -O -Q -S -W -w -B -E -I", 1),
    ("parallel", "-j --jobs -N -n -L -S -a -I --colsep --joblog --timeout --delay", 0),
    ("sem", "-j --jobs --id", 0),
    ("nodemon", "-w -e -i --watch --ext --ignore", 0),
    ("su", "-s -g -G --shell", 1),
    ("gtimeout", "-s -k", 1),
    ("gnice", "-n", 0),
    ("genv", "-u -C", 0),
    ("mpirun", "-n -np -c --hostfile --host", 0),
    ("srun", "-n -N -c -p", 0),
    ("systemd-cat", "-t -p", 0),
    ("sg", "", 1),
    ("runcon", "-t -u -r -l", 0),
    ("bear", "--output", 0),
    ("sshpass", "-p -f -d -e", 0),
    ("kcov", "", 1),
    ("gdbserver", "", 1),
    ("arch-chroot", "-u", 1),
    ("faketime", "", 1),
    ("logsave", "", 1),
    ("lckdo", "", 1),
];

/// Builtins that take names of commands and do not run them.
const BUILTINS: &str = "\
    cd set shopt export declare typeset local readonly unset alias unalias enable hash bind pushd popd \
    umask ulimit getopts read mapfile readarray let shift history fc complete compopt compgen return \
    break continue dirs times caller exit help type wait disown fg bg jobs [[ ((";

/// Verbs that run a command: `npm exec`, `docker run`.
const VERBS: &[(&str, &[&str])] = &[
    ("npm", &["exec", "x", "explore"]),
    ("pnpm", &["exec", "dlx", "x"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("pipx", &["run"]),
    ("foreman", &["run"]),
    ("honcho", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("bundle", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("nodenv", &["exec"]),
    ("volta", &["run"]),
    ("fnm", &["exec"]),
    ("rustup", &["run"]),
    ("opam", &["exec"]),
    ("stack", &["exec", "runghc", "runhaskell"]),
    ("cabal", &["exec"]),
    ("dune", &["exec"]),
    ("composer", &["exec"]),
    ("lerna", &["exec"]),
    ("rush", &["exec"]),
    ("docker", &["run", "exec"]),
    ("podman", &["run", "exec"]),
    ("nerdctl", &["run", "exec"]),
    ("docker-compose", &["run", "exec"]),
    ("kubectl", &["exec", "run", "debug"]),
    ("oc", &["exec", "rsh", "run", "debug"]),
    ("vagrant", &["ssh"]),
    ("heroku", &["run"]),
    ("flyctl", &["ssh"]),
    ("fly", &["ssh"]),
    ("nix", &["run", "shell", "develop"]),
    ("guix", &["shell", "environment"]),
    ("repo", &["forall"]),
    ("mix", &["cmd"]),
    ("gcloud", &["ssh"]),
    ("mvn", &["exec:exec"]),
    ("apptainer", &["exec", "run", "shell", "instance"]),
    ("singularity", &["exec", "run", "shell", "instance"]),
    ("buildah", &["run"]),
    ("podman-compose", &["run", "exec"]),
    ("ddev", &["exec", "ssh"]),
    ("lando", &["exec", "ssh"]),
    ("jenv", &["exec"]),
    ("yarnpkg", &["exec", "dlx"]),
];

/// The table entries of a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runner {
    /// Options that take the next word, and the number of words before the command, for programs of
    /// which more than the name is known.
    pub(crate) known: Option<(&'static str, usize)>,
    /// Whether the program only runs another command.
    pub(crate) runs: bool,
    /// A shell.
    pub(crate) shell: bool,
    /// It runs something; only the name is known.
    pub(crate) other: bool,
    /// A builtin that takes names of commands and does not run them.
    pub(crate) builtin: bool,
    /// Verbs with which it runs a command.
    pub(crate) verbs: &'static [&'static str],
}

fn entry(name: &str) -> Option<Runner> {
    static INDEX: OnceLock<FxHashMap<&'static str, Runner>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: FxHashMap<&'static str, Runner> = FxHashMap::default();
        for (name, values, skips) in KNOWN {
            index.entry(name).or_default().known = Some((values, *skips));
        }
        for (name, values, skips) in RUNNERS {
            let runner = index.entry(name).or_default();
            runner.known = Some((values, *skips));
            runner.runs = true;
        }
        for name in SHELLS {
            index.entry(name).or_default().shell = true;
        }
        for name in OTHERS.split_whitespace() {
            index.entry(name).or_default().other = true;
        }
        for name in BUILTINS.split_whitespace() {
            index.entry(name).or_default().builtin = true;
        }
        for (name, verbs) in VERBS {
            index.entry(name).or_default().verbs = verbs;
        }
        index
    });
    index.get(name).copied()
}

/// Finds a program by its name without folders. If only the name counts, a version at its end is
/// ignored: `bash5` is a shell.
pub(crate) fn runner(name: &str) -> Runner {
    let mut found = entry(name).unwrap_or_default();
    let plain = stem(name);
    if let Some(plain) = entry(plain).filter(|_| plain != name) {
        found.shell = plain.shell;
        found.other |= plain.other;
        if found.verbs.is_empty() {
            found.verbs = plain.verbs;
        }
    }
    found.other |= ["s6-", "qemu-", "ld-linux", "ld-musl"].iter().any(|begin| name.starts_with(begin));
    found
}
