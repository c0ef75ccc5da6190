//! Parts of reference pages that a test prints. The page must show the observed values, or the test
//! fails.

use std::path::Path;

/// Asserts that the part of `proto-docs/PAGE` between its marks has exactly these lines.
/// `AGENTD_BLESS=1` rewrites the part.
pub fn check(page: &str, part: &str, lines: &[String]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto-docs").join(page);
    let text = std::fs::read_to_string(&file).expect("the page");
    let (begin, end) = (format!("<!-- {part}: printed by a test -->\n"), format!("<!-- end of {part} -->"));
    let (head, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has no part {part}"));
    let (written, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("{part} of {page} has no end"));
    let printed: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if std::env::var_os("AGENTD_BLESS").is_some() {
        std::fs::write(&file, [head, &begin, &printed, &end, tail].concat()).expect("written");
        return;
    }
    assert_eq!(
        written, printed,
        "{page}, {part}: run the tests once with AGENTD_BLESS=1 and commit the page"
    );
}
