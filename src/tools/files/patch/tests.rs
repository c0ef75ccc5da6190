//! Tables of patches: their parsed form, and their result for a text.

use crate::files::patch::hunks::place_hunks;
use crate::files::patch::parse::{FilePatch, HunkLine, parse};

fn apply(file: &str, hunks: &str) -> Result<String, String> {
    let patch = format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch");
    let sections = parse(&patch).map_err(|refusal| refusal.text)?;
    let FilePatch::Update { hunks, .. } = &sections[0] else { panic!("{sections:?}") };
    let edits = place_hunks(file, hunks).map_err(|lost| format!("lost {:?}", lost.wanted))?;
    let mut new = file.to_owned();
    for (range, text) in edits.iter().rev() {
        new.replace_range(range.clone(), text);
    }
    Ok(new)
}

#[track_caller]
fn check(file: &str, hunks: &str, expected: &str) {
    assert_eq!(apply(file, hunks).as_deref(), Ok(expected), "{file:?} with {hunks:?}");
}

#[test]
fn patch_hunks_match_by_context_and_anchor() {
    check("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n");
    // No @@ before the first hunk.
    check("a\nb\nc\n", " a\n-b\n+B\n", "a\nB\nc\n");
    // The anchor selects one of two places; anchors may be nested.
    let twice = "fn a() {\n  x\n}\nfn b() {\n  x\n}\n";
    check(twice, "@@ fn b() {\n-  x\n+  y\n", "fn a() {\n  x\n}\nfn b() {\n  y\n}\n");
    check(
        "class A\n def f\n  x\nclass B\n def f\n  x\n",
        "@@ class B\n@@  def f\n-  x\n+  y\n",
        "class A\n def f\n  x\nclass B\n def f\n  y\n",
    );
    // Several hunks from top to bottom, and one that is out of order.
    check("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nb\nc\nD\n");
    check("a\nb\nc\nd\n", "@@\n-d\n+D\n@@\n-a\n+A\n", "A\nb\nc\nD\n");
    // The end of the file is preferred if the patch requests it.
    check("x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n");
    // Only added lines: below the anchor, or at the end.
    check("a\nb\n", "@@ a\n+1\n", "a\n1\nb\n");
    check("a\nb\n", "@@\n+1\n", "a\nb\n1\n");
    check("a\nb", "@@\n+1\n", "a\nb\n1");
    check("", "@@\n+1\n", "1\n");
    // A last line without an ending keeps having none.
    check("a\nb", "@@\n-b\n+c\n", "a\nc");
    check("a\nb", "@@\n a\n-b\n", "a\n");
    // Line numbers of other formats are ignored.
    check("a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\nb\n");
    // An empty line counts as an empty kept line.
    check("a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n");
}

#[test]
fn fuzzy_hunk_match_keeps_bytes_of_context() {
    check("a  \n\tb\nc\n", "@@\n a\n-\tb\n+\tB\n c\n", "a  \n\tB\nc\n");
    check("    a\n    b\n", "@@\n a\n-b\n+    B\n", "    a\n    B\n");
    check(
        "say \u{201c}hi\u{201d} \u{2013} x\nb\n",
        "@@\n say \"hi\" - x\n-b\n+B\n",
        "say \u{201c}hi\u{201d} \u{2013} x\nB\n",
    );
    // An exact match below is preferred to a similar one above.
    check(" a\nb\na\nb\n", "@@\n-a\n+A\n", " a\nb\nA\nb\n");
}

#[test]
fn unmatched_hunk_is_refused_with_lost_text() {
    for (file, hunks, expected_text) in [
        ("a\nb\n", "@@\n-c\n+d\n", "lost \"c\""),
        ("a\nb\n", "@@ zzz\n-a\n+d\n", "lost \"zzz\""),
        ("a\n", "@@\n-a\n-a\n+d\n", "lost \"a\\na\""),
        ("a\nb\n", "@@\n-a\n+A\n@@\n-a\n+B\n", "lost"),
    ] {
        let lost = apply(file, hunks).unwrap_err();
        assert!(lost.contains(expected_text), "{lost}");
    }
}

#[test]
fn patch_parser_accepts_unambiguous_variations() {
    let patch = "apply_patch <<'EOF'\n *** Begin Patch \n*** Add File: a b/c.txt \n+x\n+\n+ y\n\n*** Delete File: d\n\
                 *** Update File: e\n*** Move to: f\n@@\n-1\n+2\n\n*** Update File: g\n*** Move to: h\n*** End Patch\nEOF\n";
    let sections = parse(patch).unwrap();
    assert_eq!(sections[0], FilePatch::Add { path: "a b/c.txt", lines: vec!["x", "", " y"] });
    assert_eq!(sections[1], FilePatch::Delete { path: "d" });
    let FilePatch::Update { path: "e", move_to: Some("f"), hunks } = &sections[2] else {
        panic!("{sections:?}")
    };
    assert_eq!(hunks[0].lines, [HunkLine::Remove("1"), HunkLine::Add("2")]);
    assert!(matches!(&sections[3], FilePatch::Update { hunks, .. } if hunks.is_empty()));
    // Markers in the text of a file are ordinary text.
    let sections = parse(
        "*** Begin Patch\n*** Update File: e\n@@\n *** Delete File: x\n-*** End Patch\n+y\n*** End Patch",
    )
    .unwrap();
    assert_eq!(sections.len(), 1);
}

#[test]
fn invalid_patch_is_refused_with_line_number() {
    for (patch, line, expected_text) in [
        ("", 1, "must begin"),
        ("*** Update File: x", 1, "must begin"),
        ("hello\n*** Begin Patch\n*** End Patch", 1, "before"),
        ("*** Begin Patch\n*** Delete File: x", 2, "must end"),
        ("*** Begin Patch\n*** End Patch", 2, "changes no file"),
        ("*** Begin Patch\n*** Delete File: x\n*** End Patch\nand\nmore", 4, "after"),
        ("*** Begin Patch\n*** Add File:\n*** End Patch", 2, "path is missing"),
        ("*** Begin Patch\nfoo\n*** End Patch", 2, "expected"),
        ("*** Begin Patch\n*** Add File: x\nfoo\n*** End Patch", 3, "begins with +"),
        ("*** Begin Patch\n*** Add File: x\n+a\n\n+b\n*** End Patch", 4, "begins with +"),
        ("*** Begin Patch\n*** Delete File: x\nfoo\n*** End Patch", 3, "no lines"),
        ("*** Begin Patch\n*** Update File: x\nfoo\n*** End Patch", 3, "begins with a blank"),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch", 2, "no hunk"),
        ("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch", 3, "neither adds nor removes"),
        ("*** Begin Patch\n*** Update File: x\n*** End of File\n*** End Patch", 3, "below"),
    ] {
        let refusal = parse(patch).unwrap_err();
        assert_eq!((refusal.code, refusal.meta["line"].as_u64()), ("bad_patch", Some(line)), "{refusal:?}");
        assert!(refusal.text.contains(expected_text), "{}", refusal.text);
    }
}

#[test]
fn long_malformed_patch_is_parsed_quickly() {
    for line in ["\n", "@@\n", "+\n", "@@ x\n", " \n"] {
        let patch = format!(
            "*** Begin Patch\n*** Add File: x\n+a\n*** Update File: f\n{}*** End Patch",
            line.repeat(100_000)
        );
        let _ = parse(&patch);
        let patch = format!("*** Begin Patch\n*** Add File: x\n{}*** End Patch", line.repeat(100_000));
        let _ = parse(&patch);
    }
    let same = "a\n".repeat(20_000);
    let hunk = format!("@@\n{}-b\n+c\n", " a\n".repeat(10_000));
    assert!(apply(&same, &hunk).is_err());
}
