//! The guard of the mode `bypass`.

use super::tests::{bash, check, edit};
use super::*;
use VerdictKind::{Allow, Ask, Deny};

use crate::policy::BypassGuard;
use crate::rules::Rules;

const CAUGHT_COMMANDS: &[&str] = &[
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
    "cd && rm -rf .",
    "cd; rm -rf *",
    "set -e; cd; rm -rf ./*",
    "cd -- && rm -rf *",
    "rm -rf ${HOME:?}/*",
    "rm -rf \"${HOME%/}\"",
    "rm -rf $HOME/$X",
    "rm -rf ~/$X",
    "rm -rf \"/$X\"",
    "rm -rf /h*/u",
    "find ~ ! -name keep -delete",
    "find ~ -newermt 1970-01-01 -delete",
    "find -- ~ -delete",
    "find -O3 ~ -delete",
    "find ~ -exec sh -c 'rm -rf \"$1\"' _ {} ;",
    "rsync -a /tmp/empty/ ~/ --delete",
    "tar -C ~/.ssh -xf a",
    "unzip a.zip -d ~/.ssh",
    "git clone x ~/.ssh",
    "perl -pi -e s/a/b/ ~/.ssh/config",
    "vim -es ~/.ssh/config",
    "openssl genrsa -out ~/.ssh/id",
    "echo x > ~/.s*/authorized_keys",
    "cp k ~/.ss?/id",
];

const PASSING_COMMANDS: &[&str] = &[
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
    "ssh-keygen -lf ~/.ssh/id.pub",
    "ssh-keygen -y -f ~/.ssh/id",
    "curl --key ~/.ssh/x https://example.org",
    "dd if=/home/u/.ssh/id of=x",
    "rsync -a --delete ./ host:~/",
    "rm -rf $BUILD/out",
    "cd src && rm -rf out",
];

#[test]
fn bypass_guard_asks_before_destructive_commands() {
    let mut missed = Vec::new();
    for command in CAUGHT_COMMANDS {
        for rules in [&[][..], &["+Bash"]] {
            let parsed: Vec<&str> = rules.iter().filter_map(|rule| rule.strip_prefix('+')).collect();
            let parsed = Rules::parse(&parsed, &[], &[]).unwrap();
            let policy = Policy { mode: Mode::Bypass, ..Policy::for_tests(&parsed) };
            let judgement = judge(&policy, "Bash", &bash(command));
            if judgement.verdict != Ask || !judgement.reason.contains("bypass") {
                missed.push(format!("{command} {rules:?}: {}", judgement.reason));
            }
        }
    }
    for command in PASSING_COMMANDS {
        let rules = Rules::default();
        let passed =
            judge(&Policy { mode: Mode::Bypass, ..Policy::for_tests(&rules) }, "Bash", &bash(command));
        if passed.verdict != Allow {
            missed.push(format!("{command} should pass: {}", passed.reason));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
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
    let judgement = check(Mode::Bypass, &[], "Bash", &bash(command), Ask);
    assert!(judgement.suggestions.is_empty(), "one key should not allow it for ever: {judgement:?}");
    check(Mode::Bypass, &["+Bash(rm -rf ~)"], "Bash", &bash("rm -rf ~"), Allow);
    // A rule for this text cannot be written any more; one that was stored earlier still counts.
    let stored = Rules { allow: vec![Rule::stored("Bash(rm -rf ~/*)").unwrap()], ..Rules::default() };
    let policy = Policy { mode: Mode::Bypass, ..Policy::for_tests(&stored) };
    assert_eq!(judge(&policy, "Bash", &bash(command)).verdict, Allow);
    check(Mode::Bypass, &["+Bash(rm:*)"], "Bash", &bash(command), Ask);
    check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash(command), Deny);
    let config = edit("/home/u/.ssh/config", PathSensitivity::Secret);
    check(Mode::Bypass, &["+Edit(~/.ssh/config)"], "Edit", &config, Allow);
    check(Mode::Bypass, &["+Edit(~/.ssh/**)"], "Edit", &config, Ask);
}

#[test]
fn path_of_other_tilde_is_not_known() {
    // The home folder of a user need not have the user's name, and `~-` is any earlier folder.
    for command in
        ["rm -rf ~u", "rm -rf ~alice", "rm -rf ~alice/", "rm -rf ~-", "rm -rf ~1", "rm -rf ~alice/*"]
    {
        check(Mode::Bypass, &[], "Bash", &bash(command), Ask);
    }
    for command in ["echo k >> ~alice/.ssh/authorized_keys", "tee ~+1/.ssh/config", "cp k {~alice,x}/.ssh/id"]
    {
        check(Mode::Bypass, &[], "Bash", &bash(command), Ask);
    }
    check(Mode::Bypass, &[], "Bash", &bash("rm -rf ~alice/tmp"), Allow);
    // A rule for files may concern it, in a word, a redirection, an assignment or braces.
    for command in [
        "cat ~root/x",
        "cat ~+/x",
        "cat ~-/x",
        "cat ~1",
        "cat < ~root/x",
        "dd if=~root/x",
        "export a=~root/x",
        "cat {~root/x,y}",
        "dd if={~root/x,y}",
        "sh -c 'cat ~root/x'",
        "cd ~root && cat x",
    ] {
        check(Mode::Bypass, &["-Read(/root/**)"], "Bash", &bash(command), Ask);
        check(Mode::Bypass, &["?Read(/root/**)"], "Bash", &bash(command), Ask);
        check(Mode::Default, &["-Read(/root/**)", "+Bash"], "Bash", &bash(command), Ask);
        check(Mode::DontAsk, &["-Read(/root/**)", "+Bash"], "Bash", &bash(command), Deny);
    }
    check(Mode::Bypass, &["-Edit(/root/**)"], "Bash", &bash("echo x > ~root/x"), Ask);
    check(Mode::Bypass, &["-Read(/root/**)"], "Bash", &bash("cat '~root/x' HEAD~1 a~b"), Allow);
    // No grant for a command covers it.
    for command in
        ["cat ~root/x", "cat {~root/x,y}", "cat x ~-", "dd of=~root/x", "dd of={~root/x,y}", "cat <~1"]
    {
        check(Mode::Default, &["+Bash(cat:*)", "+Bash(dd:*)"], "Bash", &bash(command), Ask);
    }
}

#[test]
fn bypass_guard_setting_asks_denies_or_allows() {
    let rules = Rules::default();
    for (guard, expected) in [(BypassGuard::Ask, Ask), (BypassGuard::Deny, Deny), (BypassGuard::Off, Allow)] {
        let policy = Policy { mode: Mode::Bypass, bypass_guard: guard, ..Policy::for_tests(&rules) };
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
            let judged = judge(&Policy::for_tests(&rules), "Bash", &bash(command));
            assert_eq!(judged.read_only, expected, "{command} {rules:?}: {judged:?}");
        }
    }
}
