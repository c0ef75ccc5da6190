//! SECURITY.md names the test for each claim. If a test is renamed or removed, its claim has no
//! evidence.

use std::fs;
use std::path::Path;

#[test]
fn security_document_names_existing_tests_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("SECURITY.md")).expect("a page");
    // Test names have many parts; other identifiers in code have fewer.
    let is_test = |word: &&str| {
        word.matches('_').count() >= 3 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 20, "{} tests are named", named.len());
    let mut source = String::new();
    read(&root.join("src"), &mut source);
    read(&root.join("tests"), &mut source);
    let missing: Vec<&&str> = named.iter().filter(|name| !source.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that are not there: {missing:?}");
}

fn read(folder: &Path, source: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, source);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            source.push_str(&fs::read_to_string(&path).expect("text"));
        }
    }
}
