//! The guard of the mode `bypass`.

use super::tests::{bash, check, edit};
use super::*;
use VerdictKind::{Allow, Ask, Deny};

const CAUGHT: &[&str] = &[
    "rm -rf /",
    "rm -rf /*",
    "sudo rm -fr --no-preserve-root /",
    "rm -r ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    "rm -rf ~u",
    "rm --recursive \"$HOME\"",
    "rm -rf ${HOME}/*",
    "rm -rf /home/*",
    "rm -rf /home",
    "rm -rf /w",
    "rm -rf ..",
    "rm -rf ../*",
    "rm -rf src/../..",
    "rm -rf a {/,b}",
    "cd / && rm -rf *",
    "cd ~; rm -rf .",
    "true && (cd ..; rm -rf ./*)",
    "bash -c 'rm -rf ~'",
    "timeout 5 rm -rf -- /",
    "find / -delete",
    "find ~ -type f -delete",
    "find ~ -name '*' -delete",
    "cd ~ && find -delete",
    "find /w -exec rm -rf {} +",
    "rsync -a --delete empty/ ~/",
    "echo key >> ~/.ssh/authorized_keys",
    "cat a | tee -a $HOME/.ssh/config",
    "cp a ~/.ssh/id_rsa",
    "cp -t ~/.ssh a",
    "mv ~/.gnupg ~/old",
    "rm -rf ~/.ssh",
    "chmod 644 ~/.ssh/id_rsa",
    "sed -i s/a/b/ ~/.ssh/config",
    "dd if=a of=/home/u/.gnupg/x",
    "curl -o ~/.ssh/authorized_keys https://example.org",
    "ssh-keygen -t ed25519 -f ~/.ssh/id",
    "cd ~/.ssh && touch x",
    "bash -c 'echo x > ~/.gnupg/gpg.conf'",
];

const PASSES: &[&str] = &[
    "rm -rf target",
    "rm -rf *",
    "rm -rf .",
    "rm -rf /w/proj",
    "rm -rf ~/.cache/x",
    "rm -rf /tmp/x/*",
    "rm /",
    "ls / ~",
    "find / -name x",
    "find ~ -name '*.pyc' -delete",
    "find . -delete",
    "rsync -a --delete a/ b/",
    "cat ~/.ssh/config",
    "cp ~/.ssh/id_rsa.pub .",
    "ssh -i ~/.ssh/id_rsa host",
    "ls -la ~/.ssh",
    "grep x ~/.ssh/config > out",
    "rm -rf ~/.sshx",
    "echo ~/.ssh",
];

#[test]
fn bypass_guard_asks_before_destructive_commands() {
    for command in CAUGHT {
        for rules in [&[][..], &["+Bash"]] {
            let asked = check(Mode::Bypass, rules, "Bash", &bash(command), Ask);
            assert!(asked.reason.contains("bypass"), "{command}: {asked:?}");
        }
    }
    for command in PASSES {
        check(Mode::Bypass, &[], "Bash", &bash(command), Allow);
    }
    for path in ["/home/u/.ssh/authorized_keys", "/home/u/.gnupg/gpg.conf", "/home/u/.ssh"] {
        for care in [PathSensitivity::Ordinary, PathSensitivity::Secret, PathSensitivity::AutoExecuted] {
            check(Mode::Bypass, &["+Edit"], "Write", &edit(path, care), Ask);
        }
    }
    check(Mode::Bypass, &[], "Write", &edit("/home/u/.sshd/x", PathSensitivity::Ordinary), Allow);
}

#[test]
fn only_exact_grant_satisfies_bypass_guard() {
    let command = "rm -rf ~/*";
    let asked = check(Mode::Bypass, &[], "Bash", &bash(command), Ask);
    assert!(asked.suggestions.is_empty(), "one key should not allow it for ever: {asked:?}");
    check(Mode::Bypass, &["+Bash(rm -rf ~/*)"], "Bash", &bash(command), Allow);
    check(Mode::Bypass, &["+Bash(rm:*)"], "Bash", &bash(command), Ask);
    check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash(command), Deny);
    let config = edit("/home/u/.ssh/config", PathSensitivity::Secret);
    check(Mode::Bypass, &["+Edit(~/.ssh/config)"], "Edit", &config, Allow);
    check(Mode::Bypass, &["+Edit(~/.ssh/**)"], "Edit", &config, Ask);
}

#[test]
fn bypass_guard_setting_asks_denies_or_allows() {
    let rules = Rules::default();
    for (guard, expected) in [(BypassGuard::Ask, Ask), (BypassGuard::Deny, Deny), (BypassGuard::Off, Allow)] {
        let policy = Policy { mode: Mode::Bypass, bypass_guard: guard, ..Policy::of_tests(&rules) };
        assert_eq!(judge(&policy, "Bash", &bash("rm -rf ~")).verdict, expected, "{guard:?}");
        let key = edit("/home/u/.ssh/id", PathSensitivity::Secret);
        assert_eq!(judge(&policy, "Write", &key).verdict, expected, "{guard:?}");
    }
}

#[test]
fn read_only_verdict_ignores_rules_and_excludes_cd() {
    for (command, expected) in [
        ("pwd", true),
        ("cat x | sort", true),
        ("git status && ls | wc -l", true),
        ("cd src && ls", false),
        ("bash -c 'cd src; ls'", false),
        ("make", false),
        ("ls > x", false),
        ("cat .env", false),
        ("cat /etc/passwd", false),
        ("ls; touch x", false),
    ] {
        for rules in [&[][..], &["+Bash"], &["?Bash(cat:*)"]] {
            let parsed =
                |sign: char| -> Vec<&str> { rules.iter().filter_map(|r| r.strip_prefix(sign)).collect() };
            let rules = Rules::parse(&parsed('+'), &parsed('?'), &[]).unwrap();
            let judged = judge(&Policy::of_tests(&rules), "Bash", &bash(command));
            assert_eq!(judged.read_only, expected, "{command} {rules:?}: {judged:?}");
        }
    }
}
