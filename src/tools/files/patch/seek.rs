//! Finds the place of a hunk in a file: first exactly, then with less and less regard for blanks and for the
//! kinds of dashes and quotation marks.

/// Comparisons of two lines, strictest first.
const WAYS: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| a.trim().chars().map(plain).eq(b.trim().chars().map(plain)),
];

/// Maps typographic characters to ASCII.
fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// Maximal number of compared lines, because a hunk that almost matches everywhere would take too long.
const MOST_WORK: usize = 50_000_000;

/// The first index at or after `from` where `wanted` occurs in `lines`. With `at_end`, the end of the file is
/// tried first.
pub(in crate::tools) fn seek(lines: &[&str], wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    if wanted.is_empty() {
        return Some(from.min(lines.len()));
    }
    let mut work = MOST_WORK;
    for way in WAYS {
        let mut fits = |at: usize| {
            lines[at..].iter().zip(wanted).all(|(a, b)| {
                work = work.saturating_sub(1 + a.len() / 64);
                work > 0 && way(a, b)
            })
        };
        if at_end && last >= from && fits(last) {
            return Some(last);
        }
        if let Some(found) = (from..=last).find(|at| fits(*at)) {
            return Some(found);
        }
    }
    None
}
