//! Reports tests that cannot run on this machine, so that a user sees what was not tested.

use std::fmt;
use std::io::Write as _;

/// The variable with the file to which the reports are appended.
pub const FILE_VARIABLE: &str = "AGENTD_SKIPPED_TESTS";

/// Reports that the calling test does not run here; the arguments say why.
#[macro_export]
macro_rules! skip_test {
    ($($why:tt)*) => {
        $crate::test_skip::report(format_args!($($why)*))
    };
}

/// Writes `SKIPPED TEST: WHY` to stderr, and to the file that [`FILE_VARIABLE`] names. The harness of tests hides only
/// what the print macros write, so this line is visible although the test passes.
pub fn report(why: fmt::Arguments<'_>) {
    let thread = std::thread::current();
    // One write for the line, because several tests report at once.
    let line = format!("SKIPPED {}: {why}\n", thread.name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(file) = std::env::var_os(FILE_VARIABLE) else { return };
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    // A report that cannot be written must not fail the test.
    let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    #[ignore = "the test below runs it as a program of its own"]
    fn skipped_child() {
        crate::skip_test!("it has no {}", "reason");
    }

    #[test]
    fn skipped_test_is_visible_although_it_passes() {
        let file = std::env::temp_dir().join(format!("agentd-skipped-{}", std::process::id()));
        let name = "test_skip::tests::skipped_child";
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", name])
            .env(super::FILE_VARIABLE, &file)
            .output()
            .expect("started");
        let line = format!("SKIPPED {name}: it has no reason\n");
        let text = std::fs::read_to_string(&file).expect("the file");
        std::fs::remove_file(&file).expect("removed");
        assert!(output.status.success(), "{output:?}");
        assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), text), (line.as_str(), line.clone()));
    }
}
