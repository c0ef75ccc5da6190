//! Compares screens with the files in `tests/fixtures/screens`. `AGENTD_BLESS=1` writes them again.

use std::path::PathBuf;

use crate::terminal::style::{StyledLine, width};

/// The sizes of terminals that the files show.
pub(crate) const SIZES: [(usize, usize); 2] = [(80, 24), (120, 40)];

/// Compares a screen at both sizes with its files.
pub(crate) fn check_screen(name: &str, screen: impl Fn((usize, usize)) -> Vec<StyledLine>) {
    for size in SIZES {
        let lines: Vec<String> = screen(size).iter().map(StyledLine::plain).collect();
        check_lines(name, size, &lines);
    }
}

/// Compares lines with the file for this size.
pub(crate) fn check_lines(name: &str, (columns, rows): (usize, usize), lines: &[String]) {
    assert!(lines.len() <= rows, "{name} has {} rows of {rows}", lines.len());
    for line in lines {
        assert!(width(line) <= columns, "{name} at {columns}: {line:?}");
    }
    let screen: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/screens");
    let file = folder.join(format!("{name}-{columns}x{rows}.txt"));
    if std::env::var_os("AGENTD_BLESS").is_some() {
        std::fs::write(&file, &screen).expect("written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(screen, expected, "{} differs; AGENTD_BLESS=1 accepts it", file.display());
}
