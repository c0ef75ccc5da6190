//! Tests of MultiEdit, ApplyPatch and NotebookEdit.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use types::tool::{Inspection, PathSensitivity, PlannedChange};

fn multi_edit_input(path: &str, edits: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> =
        edits.iter().map(|(old, new)| json!({"old_string": old, "new_string": new})).collect();
    json!({"file_path": path, "edits": edits})
}

fn patch_input(body: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[tokio::test]
async fn multi_edit_applies_edits_in_order() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\r\ntwo\r\nthree\r\n");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    let input = multi_edit_input("a.txt", &[("one\ntwo", "1\n2"), ("1\n2\nthree", "1\n2\n3\n4")]);
    let prepared = fixture.prepare("MultiEdit", input.clone()).await.unwrap();
    assert_eq!(prepared.summary, "MultiEdit a.txt (+4 −3)");
    assert!(prepared.diff.unwrap().contains("-one\n-two\n-three\n+1\n+2\n+3\n+4\n"));
    let outcome = fixture.run("MultiEdit", input).await;
    assert_eq!(completed(&outcome), "Edited a.txt with 2 edits (+4 −3 lines; UTF-8, CRLF).");
    assert_eq!(fixture.bytes("a.txt"), b"1\r\n2\r\n3\r\n4\r\n");
    // If line endings change, the diff shows carriage returns.
    for (tool, input, expected) in [
        (
            "Edit",
            json!({"file_path": "sh", "old_string": "#!/bin/sh", "new_string": "#!/bin/sh\r"}),
            "-#!/bin/sh\n+#!/bin/sh\r\n a\n",
        ),
        ("Write", json!({"file_path": "new", "content": "a\r\nb\n"}), "+a\r\n+b\n"),
    ] {
        fixture.write_file("sh", "#!/bin/sh\na\n");
        fixture.run("Read", json!({"file_path": "sh"})).await;
        let diff = fixture.prepare(tool, input).await.unwrap().diff.unwrap();
        assert!(diff.ends_with(expected), "{diff:?}");
    }
    // The model knows the content that it wrote.
    completed(&fixture.run("MultiEdit", multi_edit_input("a.txt", &[("4", "5")])).await);
    // An empty first text creates the file.
    completed(&fixture.run("MultiEdit", multi_edit_input("new/b.txt", &[("", "x\ny\n"), ("y", "z")])).await);
    assert_eq!(fixture.bytes("new/b.txt"), b"x\nz\n");
}

#[tokio::test]
async fn failed_multi_edit_changes_nothing_and_names_edit() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\ntwo\ntwo\n");
    fixture.write_file("b.bin", b"a\0b");
    let unread = fixture.run("MultiEdit", multi_edit_input("a.txt", &[("one", "1")])).await;
    failed(&unread, "not_read");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    for (edits, code, expected_text) in [
        (&[("one", "1"), ("zwei", "2")][..], "string_not_found", "edit 2: "),
        (&[("one", "1"), ("two", "2")], "multiple_matches", "edit 2: "),
        (&[("one", "1"), ("x", "x")], "same_strings", "edit 2: "),
        (&[("one", "1"), ("", "x")], "invalid_input", "edit 2: "),
        (&[("one", "two2"), ("one", "1")], "string_not_found", "edit 2: "),
        (&[("", "x")], "file_exists", "not empty"),
        (&[], "invalid_input", "0 entries"),
    ] {
        let outcome = fixture.run("MultiEdit", multi_edit_input("a.txt", edits)).await;
        failed(&outcome, code);
        assert!(outcome.output.contains(expected_text), "{}", outcome.output);
        assert_eq!(fixture.bytes("a.txt"), b"one\ntwo\ntwo\n");
    }
    failed(&fixture.run("MultiEdit", multi_edit_input("b.bin", &[("a", "b")])).await, "binary_file");
    failed(&fixture.run("MultiEdit", multi_edit_input("a.tx", &[("a", "b")])).await, "file_not_found");
}

#[tokio::test]
async fn patch_changes_several_files_and_reports_each() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("src/a.rs", "fn a() {\r\n    1\r\n}\r\n");
    fixture.write_file("old.txt", "gone\n");
    let tool = fixture.write_file("tool.sh", "#!/bin/sh\necho 1\n");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    for path in ["src/a.rs", "tool.sh"] {
        fixture.run("Read", json!({"file_path": path})).await;
    }
    let input = patch_input(
        "*** Add File: new/n.txt\n+x\n+y\n*** Update File: src/a.rs\n@@ fn a() {\n-    1\n+    2\n }\n\
         *** Delete File: old.txt\n*** Update File: tool.sh\n*** Move to: bin/tool.sh\n@@\n-echo 1\n+echo 2\n",
    );
    let prepared = fixture.prepare("ApplyPatch", input.clone()).await.unwrap();
    assert_eq!(prepared.summary, "Patch new/n.txt, src/a.rs, old.txt, tool.sh, bin/tool.sh (+5 −4)");
    let diff = prepared.diff.as_deref().unwrap();
    for part in ["+++ b/new/n.txt", "-    1\n+    2\n", "--- a/old.txt\n+++ /dev/null\n", "+++ b/bin/tool.sh"]
    {
        assert!(diff.contains(part), "{part:?} in {diff}");
    }
    let Subject::Several { parts } = &prepared.subject else { panic!("{prepared:?}") };
    let kinds: Vec<bool> = parts.iter().map(|part| matches!(part, Subject::Delete { .. })).collect();
    assert_eq!(kinds, [false, false, true, true, false]);
    assert!(matches!(&prepared.change, Some(PlannedChange::Several { files }) if files.len() == 5));
    assert!(!fixture.path("new").exists(), "preparing writes nothing");

    let outcome = fixture.run("ApplyPatch", input).await;
    assert_eq!(
        completed(&outcome),
        "Created new/n.txt (+2 −0 lines; UTF-8, LF).\nEdited src/a.rs (+1 −1 lines; UTF-8, CRLF).\n\
         Removed old.txt (−1 lines).\nCreated bin/tool.sh (+2 −0 lines; UTF-8, LF).\nRemoved tool.sh (−2 lines)."
    );
    assert_eq!(fixture.bytes("src/a.rs"), b"fn a() {\r\n    2\r\n}\r\n");
    assert_eq!(fixture.bytes("bin/tool.sh"), b"#!/bin/sh\necho 2\n");
    let mode = std::fs::metadata(fixture.path("bin/tool.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "a file that moves keeps its bits");
    assert!(!fixture.path("old.txt").exists() && !tool.exists());
    assert_eq!(outcome.changes.len(), 5);
    // The model knows the content that it wrote.
    completed(
        &fixture.run("ApplyPatch", patch_input("*** Update File: bin/tool.sh\n@@\n-echo 2\n+echo 3\n")).await,
    );
}

#[tokio::test]
async fn inapplicable_patch_changes_no_file() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\ntwo\n");
    fixture.write_file("b.txt", "here\n");
    fixture.write_file("odd.txt", b"caf\xe9 cr\xe8me na\xefve\n");
    fixture.write_file("unread.txt", "x\n");
    for path in ["a.txt", "b.txt", "odd.txt"] {
        fixture.run("Read", json!({"file_path": path})).await;
    }
    let good = "*** Update File: a.txt\n@@\n-one\n+1\n";
    for (rest, code, expected_text) in [
        (
            "*** Update File: b.txt\n@@\n-there\n+x\n",
            "context_not_found",
            "nearest text begins at line 1:\nhere",
        ),
        ("*** Add File: b.txt\n+x\n", "file_exists", "b.txt"),
        ("*** Delete File: c.txt\n", "file_not_found", "c.txt"),
        ("*** Update File: unread.txt\n@@\n-x\n+y\n", "not_read", "unread.txt"),
        ("*** Update File: odd.txt\n@@\n café crème naïve\n+\u{4f60}\n", "cannot_encode", "U+4F60"),
        ("*** Update File: b.txt\n*** Move to: a.txt\n@@\n-here\n+x\n", "duplicate_file", "twice"),
        ("*** Update File: b.txt\n*** Move to: unread.txt\n@@\n-here\n+x\n", "file_exists", "unread.txt"),
        ("*** Delete File: ./a.txt\n", "duplicate_file", "twice"),
        ("*** Update File: a\0b\n@@\n-x\n+y\n", "bad_path", "U+0000"),
        ("foo\n", "bad_patch", "line 6"),
    ] {
        let outcome = fixture.run("ApplyPatch", patch_input(&format!("{good}{rest}"))).await;
        failed(&outcome, code);
        assert!(outcome.output.contains(expected_text), "{}", outcome.output);
        assert_eq!(fixture.bytes("a.txt"), b"one\ntwo\n", "{rest}");
    }
}

#[tokio::test]
async fn every_patch_path_is_judged_by_resolved_target() {
    let mut fixture = ToolFixture::new();
    std::fs::write(fixture.root.join("out.txt"), "theirs\n").unwrap();
    symlink("../out.txt", fixture.path("link")).unwrap();
    let input = patch_input(
        "*** Add File: ../up.txt\n+x\n*** Add File: /etc/agentd-test\n+x\n*** Delete File: link\n",
    );
    let prepared = fixture.prepare("ApplyPatch", input).await.unwrap();
    let Subject::Several { parts } = prepared.subject else { panic!() };
    for (part, path) in parts.iter().zip([
        fixture.root.join("up.txt"),
        "/etc/agentd-test".into(),
        fixture.root.join("out.txt"),
    ]) {
        let (Subject::Edit { path: found } | Subject::Delete { path: found }) = part else {
            panic!("{part:?}")
        };
        assert_eq!((&found.path, found.in_workspace), (&path, false));
    }
    let hooks = patch_input("*** Add File: a.txt\n+x\n*** Add File: .git/hooks/pre-commit\n+x\n");
    let prepared = fixture.prepare("ApplyPatch", hooks).await.unwrap();
    let Subject::Several { parts } = prepared.subject else { panic!() };
    assert!(matches!(&parts[1], Subject::Edit { path } if path.sensitivity == PathSensitivity::Protected));
    assert_eq!(prepared.diff, None, "protected files are judged before they are looked at");
}

#[tokio::test]
async fn partially_applied_patch_reports_completed_changes() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\n");
    fixture.write_file("z.txt", "x\n");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    // No file can be created in this folder, which shows only during the attempt.
    let input = patch_input(
        "*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: /proc/none/b.txt\n+x\n*** Delete File: z.txt\n",
    );
    let outcome = fixture.run("ApplyPatch", input).await;
    failed(&outcome, "partly_done");
    assert!(outcome.output.contains("Only 1 of 3"), "{}", outcome.output);
    assert!(outcome.output.contains("Not done: /proc/none/b.txt, z.txt."));
    assert_eq!((outcome.changes.len(), fixture.bytes("a.txt")), (1, b"1\n".to_vec()));
    assert!(fixture.path("z.txt").exists());
}

#[tokio::test]
async fn patch_progress_after_crash_is_found_from_files() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\n");
    fixture.write_file("b.txt", "two\n");
    fixture.write_file("c.txt", "three\n");
    for path in ["a.txt", "b.txt"] {
        fixture.run("Read", json!({"file_path": path})).await;
    }
    let call = fixture.call(
        "ApplyPatch",
        patch_input("*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: b.txt\n@@\n-two\n+2\n*** Delete File: c.txt\n*** Add File: d.txt\n+4\n"),
    );
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    let inspect = async |fixture: &ToolFixture| {
        fixture.tools.inspect(call.call_id, &prepared, &fixture.session_context).await
    };
    assert_eq!(inspect(&fixture).await, Inspection::NotDone);
    fixture.write_file("a.txt", "1\n");
    fixture.write_file(&format!(".agentd-tmp-{}", call.call_id), "half");
    match inspect(&fixture).await {
        Inspection::Partly { records, changes, text } => {
            assert_eq!(text, "Changed: a.txt. Not changed: b.txt, c.txt, d.txt.");
            assert_eq!((records.len(), changes.len()), (1, 1));
        }
        other => panic!("{other:?}"),
    }
    assert!(!fixture.path(&format!(".agentd-tmp-{}", call.call_id)).exists());
    fixture.write_file("b.txt", "2\n");
    std::fs::remove_file(fixture.path("c.txt")).unwrap();
    assert!(matches!(inspect(&fixture).await, Inspection::Partly { changes, .. } if changes.len() == 3));
    fixture.write_file("d.txt", "4\n");
    assert!(
        matches!(inspect(&fixture).await, Inspection::Done { records, changes } if (records.len(), changes.len()) == (3, 4))
    );
    fixture.write_file("b.txt", "another user\n");
    assert!(matches!(inspect(&fixture).await, Inspection::Conflict(why) if why.contains("b.txt")));
}

#[tokio::test]
async fn patch_is_not_applied_to_changed_targets() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\nmore\n");
    std::fs::write(fixture.root.join("out.txt"), "theirs\n").unwrap();
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    let call = fixture
        .call("ApplyPatch", patch_input("*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: d/n.txt\n+x\n"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    symlink(&fixture.root, fixture.path("d")).unwrap();
    failed(&fixture.run_prepared(&call, &prepared).await, "target_changed");
    assert_eq!(fixture.bytes("a.txt"), b"one\nmore\n");
    std::fs::remove_file(fixture.path("d")).unwrap();
    fixture.write_file("a.txt", "one\nother\n");
    failed(&fixture.run_prepared(&call, &prepared).await, "file_changed");
    assert_eq!(fixture.bytes("a.txt"), b"one\nother\n");
    assert!(!fixture.path("d").exists());
}

#[tokio::test]
async fn notebook_edit_changes_cells_by_number() {
    let mut fixture = ToolFixture::new();
    let notebook = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"id\": \"aa\",\n   \"source\": [\n    \"1\"\n   ]\n  }\n ],\n \"nbformat\": 4\n}\n";
    fixture.write_file("n.ipynb", notebook);
    fixture.write_file("a.txt", "x");
    let cell = |number: u64, source: &str| json!({"notebook_path": "n.ipynb", "cell_number": number, "new_source": source});
    failed(&fixture.run("NotebookEdit", cell(0, "2")).await, "not_read");
    let read = fixture.run("Read", json!({"file_path": "n.ipynb"})).await;
    assert_eq!(completed(&read), "<cell number=0 id=\"aa\" type=code>\n1\n</cell>\n(1 cells in total)");
    for (input, code) in [
        (cell(1, "2"), "cell_not_found"),
        (json!({"notebook_path": "n.ipynb", "cell_id": "zz", "new_source": "2"}), "cell_not_found"),
        (json!({"notebook_path": "n.ipynb", "new_source": "2"}), "invalid_input"),
        (json!({"notebook_path": "n.ipynb", "cell_number": 0, "edit_mode": "swap"}), "invalid_input"),
        (json!({"notebook_path": "a.txt", "cell_number": 0}), "not_a_notebook"),
        (json!({"notebook_path": "m.ipynb", "cell_number": 0}), "file_not_found"),
        (cell(0, "1"), "same_strings"),
    ] {
        failed(&fixture.run("NotebookEdit", input).await, code);
    }
    let prepared = fixture.prepare("NotebookEdit", cell(0, "2")).await.unwrap();
    assert_eq!(prepared.summary, "NotebookEdit n.ipynb (+1 −1)");
    assert!(prepared.diff.unwrap().contains("-    \"1\"\n+    \"2\"\n"));
    let outcome = fixture.run("NotebookEdit", cell(0, "2")).await;
    assert_eq!(completed(&outcome), "Replaced cell 0 of n.ipynb (+1 −1 lines; UTF-8, LF).");
    assert_eq!(fixture.bytes("n.ipynb"), notebook.replace("\"1\"", "\"2\"").as_bytes());
    let input = json!({"notebook_path": "n.ipynb", "cell_id": "aa", "new_source": "# x", "cell_type": "markdown", "edit_mode": "insert"});
    assert!(completed(&fixture.run("NotebookEdit", input).await).starts_with("Inserted cell 1 of n.ipynb"));
    let input = json!({"notebook_path": "n.ipynb", "cell_id": "cell-1", "edit_mode": "delete"});
    assert!(completed(&fixture.run("NotebookEdit", input).await).starts_with("Deleted cell 1"));
    assert_eq!(fixture.bytes("n.ipynb"), notebook.replace("\"1\"", "\"2\"").as_bytes());
    // A notebook cannot be changed by its text.
    let input = json!({"file_path": "n.ipynb", "old_string": "2", "new_string": "3"});
    failed(&fixture.run("Edit", input).await, "is_notebook");
}
