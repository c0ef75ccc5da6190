//! Tests of Read, Write and Edit.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use types::blob::{AttachmentKind, Blob, PDF};
use types::tool::PathSensitivity;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"file_path": path, "old_string": old, "new_string": new})
}

#[tokio::test]
async fn read_returns_numbered_lines_and_records_read() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\ntwo\r\nthree");
    let outcome = fixture.run("Read", json!({"file_path": "a.txt", "offset": "1"})).await;
    assert_eq!(completed(&outcome), "     1\tone\n     2\ttwo\n     3\tthree\n(3 lines in total)");
    let record = &outcome.reads[0];
    assert_eq!((record.path.clone(), record.size, record.whole), (fixture.path("a.txt"), 14, true));
    assert_eq!(record.sha256.len(), 64);

    let part = fixture.run("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 1})).await;
    assert_eq!(completed(&part), "     2\ttwo\n(lines 2 to 2 of 3) Go on with offset 3.");
    assert!(part.reads[0].whole, "the same content was seen whole before");

    failed(&fixture.run("Read", json!({"file_path": "a.txt", "offset": 9})).await, "offset_past_end");
    fixture.write_file("empty", "");
    assert_eq!(completed(&fixture.run("Read", json!({"file_path": "empty"})).await), "(the file is empty)");
}

#[tokio::test]
async fn read_of_large_file_is_bounded_with_line_count() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("big.txt", "0123456789 and some more text in this line\n".repeat(100_000));
    let outcome = fixture.run("Read", json!({"file_path": "big.txt"})).await;
    let text = completed(&outcome);
    assert!(text.ends_with("(lines 1 to 2000 of 100000) Go on with offset 2001."), "{}", text.len());
    assert!(!outcome.reads[0].whole);
    let far = fixture.run("Read", json!({"file_path": "big.txt", "offset": 99_999})).await;
    assert!(completed(&far).contains("100000\t0123"));

    fixture.write_file("wide.txt", format!("{}\nnext\n", "x".repeat(3_000_000)));
    let wide = fixture.run("Read", json!({"file_path": "wide.txt"})).await;
    assert!(completed(&wide).contains("[line cut: 2998000 more characters, from column 2001]\n     2\tnext"));
    assert!(!wide.reads[0].whole, "a cut line was not seen");
    fixture.write_file("wide.txt", format!("{}middle{}\nnext\n", "x".repeat(5_000), "y".repeat(3_000)));
    let middle = fixture.run("Read", json!({"file_path": "wide.txt", "column": 5_001, "limit": 1})).await;
    let expected =
        format!("     1\tmiddle{} [line cut: 1006 more characters, from column 7001]\n", "y".repeat(1_994));
    assert!(completed(&middle).starts_with(&expected), "{middle:?}");
    let far = fixture.run("Read", json!({"file_path": "wide.txt", "column": 8_005})).await;
    assert!(completed(&far).starts_with("     1\tyy\n     2\t\n(2 lines"), "{far:?}");
    assert!(!far.reads[0].whole);
}

#[tokio::test]
async fn read_decodes_non_utf8_files() {
    let mut fixture = ToolFixture::new();
    let gbk = encoding_rs::GBK.encode("你好，世界。这是一个文件。\n").0.into_owned();
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain("héllo\r\nw\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (bytes, text, encoding) in [
        (gbk, "     1\t你好，世界。这是一个文件。\n", "GBK"),
        (utf16, "     1\théllo\n     2\tw\n", "UTF-16LE"),
        (b"\xEF\xBB\xBFx\n".to_vec(), "     1\tx\n", "UTF-8 with BOM"),
        (b"old\rmac\r".to_vec(), "     1\told\n     2\tmac\n(2 lines", "UTF-8"),
    ] {
        fixture.write_file("t", bytes);
        let outcome = fixture.run("Read", json!({"file_path": "t"})).await;
        assert!(completed(&outcome).starts_with(text), "{}", outcome.output);
        assert_eq!(outcome.detail.unwrap()["encoding"], encoding);
    }
}

#[tokio::test]
async fn read_refuses_non_text_files() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("src/main.rs", "x");
    fixture.write_file("b.bin", b"a\0b");
    fixture.write_file("i.png", b"\x89PNG\r\n\x1a\n");
    fixture.write_file("i.tiff", b"II\x2A\0\x08\0\0\0");
    fixture.write_file("n.ipynb", "{}");
    nix::unistd::mkfifo(&fixture.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, code, expected_text) in [
        ("b.bin", "binary_file", "binary data"),
        ("i.png", "not_convertible", "i.png could not be read: it cannot be decoded"),
        ("i.tiff", "binary_file", "binary data"),
        ("n.ipynb", "bad_notebook", "it has no cells"),
        ("pipe", "not_a_regular_file", "named pipe"),
        ("/dev/zero", "not_a_regular_file", "device"),
        ("src", "is_a_directory", "LS"),
        ("src/mian.rs", "file_not_found", "Did you mean src/main.rs?"),
        ("/proc/self/environ", "magic_path", "process"),
        ("src/main.rs/x", "not_a_directory", "not a folder"),
    ] {
        let outcome = fixture.run("Read", json!({"file_path": path})).await;
        failed(&outcome, code);
        assert!(outcome.output.contains(expected_text), "{}", outcome.output);
    }
}

#[tokio::test]
async fn read_detects_images_by_content() {
    let mut fixture = ToolFixture::new();
    for (format, kind) in crate::convert::FORMATS {
        let bytes = crate::convert::sample_image(format, 30, 20);
        fixture.write_file("picture.txt", &bytes);
        let outcome = fixture.run("Read", json!({"file_path": "picture.txt"})).await;
        let text = completed(&outcome);
        let has_size = text.contains("30×20 pixels") && text.contains(&format!("{} bytes", bytes.len()));
        assert!(has_size && text.starts_with("picture.txt: "), "{text}");
        assert_eq!(outcome.blobs, [Blob::new(kind, bytes)]);
        let [attachment] = outcome.attachments.as_slice() else { panic!("{:?}", outcome.attachments) };
        assert_eq!(
            (attachment.kind, attachment.blob.blob_id),
            (AttachmentKind::Image, outcome.blobs[0].blob_id)
        );
        assert!(outcome.reads[0].whole, "it is known as a whole");
    }
    let wide = crate::convert::sample_image(image::ImageFormat::Png, 2_050, 20);
    fixture.write_file("wide.png", wide);
    let outcome = fixture.run("Read", json!({"file_path": "wide.png"})).await;
    assert!(completed(&outcome).contains("2050×20 pixels") && outcome.output.ends_with("shown at 1568×15"));
    assert_eq!(outcome.detail.unwrap()["scaled"]["width"], 1_568);
    // A text that begins like a picture is a text.
    fixture.write_file("letters", "GIF89a is the name of a format\n");
    assert!(completed(&fixture.run("Read", json!({"file_path": "letters"})).await).contains("a format"));
}

#[tokio::test]
async fn read_returns_pdf_text_by_page() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.pdf", crate::convert::sample_pdf(&["Hello World", "", "Third"]));
    let outcome = fixture.run("Read", json!({"file_path": "a.pdf"})).await;
    let text = completed(&outcome);
    assert!(text.starts_with("<page number=1>\n") && text.contains("Hello World"), "{text}");
    assert!(
        text.contains("<page number=2>\n[no text on this page]") && text.ends_with("(pages 1 to 3 of 3)"),
        "{text}"
    );
    // The whole document is attached for models that accept it; a part is not.
    let [attachment] = outcome.attachments.as_slice() else { panic!("{:?}", outcome.attachments) };
    assert_eq!((attachment.kind, attachment.in_text), (AttachmentKind::Document, true));
    assert_eq!(outcome.blobs[0], Blob::new(PDF, fixture.bytes("a.pdf")));
    let part = fixture.run("Read", json!({"file_path": "a.pdf", "offset": 2, "limit": 1})).await;
    assert!(part.attachments.is_empty() && part.blobs.is_empty());
    assert!(completed(&part).ends_with("(pages 2 to 2 of 3) Go on with offset 3."), "{}", part.output);
    failed(&fixture.run("Read", json!({"file_path": "a.pdf", "offset": 4})).await, "offset_past_end");
    fixture.write_file("b.pdf", "%PDF-1.7\nnonsense");
    failed(&fixture.run("Read", json!({"file_path": "b.pdf"})).await, "not_convertible");
    // Tools that change text treat it as binary.
    failed(&fixture.run("Edit", edit("a.pdf", "Hello", "x")).await, "binary_file");
}

#[tokio::test]
async fn write_creates_file_with_parent_folders() {
    let mut fixture = ToolFixture::new();
    let input = json!({"file_path": "a/b/c.txt", "content": "x\ny\n"});
    let prepared = fixture.prepare("Write", input.clone()).await.unwrap();
    assert_eq!(prepared.summary, "Write a/b/c.txt (+2 −0)");
    assert!(prepared.diff.unwrap().contains("+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"));
    assert!(!fixture.path("a").exists(), "preparing writes nothing");
    let outcome = fixture.run("Write", input).await;
    assert_eq!(completed(&outcome), "Created a/b/c.txt (+2 −0 lines; UTF-8, LF).");
    assert_eq!(fixture.bytes("a/b/c.txt"), b"x\ny\n");
    assert_eq!((outcome.changes[0].added, outcome.changes[0].removed), (2, 0));
    // The model knows the content that it wrote.
    let again = fixture.run("Write", json!({"file_path": "a/b/c.txt", "content": "z\n"})).await;
    assert_eq!(completed(&again), "Overwrote a/b/c.txt (+1 −2 lines; UTF-8, LF).");
}

#[tokio::test]
async fn write_overwrites_only_fully_read_unchanged_file() {
    let mut fixture = ToolFixture::new();
    let path = fixture.write_file("a.txt", "1\n2\n3\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let write = json!({"file_path": "a.txt", "content": "new\n"});
    failed(&fixture.run("Write", write.clone()).await, "not_read");
    fixture.run("Read", json!({"file_path": "a.txt", "limit": 1})).await;
    failed(&fixture.run("Write", write.clone()).await, "not_read");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    fixture.write_file("a.txt", "changed by another program\n");
    failed(&fixture.run("Write", write.clone()).await, "file_changed");
    assert_eq!(fixture.bytes("a.txt"), b"changed by another program\n");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    completed(&fixture.run("Write", write).await);
    assert_eq!(fixture.bytes("a.txt"), b"new\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn write_through_symlink_changes_target_and_keeps_link() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("real.txt", "old\n");
    symlink("real.txt", fixture.path("link")).unwrap();
    fixture.run("Read", json!({"file_path": "link"})).await;
    completed(&fixture.run("Write", json!({"file_path": "link", "content": "new\n"})).await);
    assert!(fixture.path("link").is_symlink());
    assert_eq!(fixture.bytes("real.txt"), b"new\n");
}

#[tokio::test]
async fn write_keeps_encoding_and_line_endings() {
    let mut fixture = ToolFixture::new();
    for (before, content, after, format_name) in [
        (&b"a\r\nb\r\n"[..], "x\ny\n", &b"x\r\ny\r\n"[..], "UTF-8, CRLF"),
        (b"\xEF\xBB\xBFa\n", "x\n", b"\xEF\xBB\xBFx\n", "UTF-8 with BOM, LF"),
        (b"\xFF\xFEa\0\n\0", "x\n", b"\xFF\xFEx\0\n\0", "UTF-16LE, LF"),
        (b"caf\xe9 cr\xe8me\n", "th\u{e9}\n", b"th\xe9\n", "windows-1252, LF"),
        (b"caf\xe9 cr\xe8me\n", "\u{4f60}\n", "\u{4f60}\n".as_bytes(), "UTF-8, LF"),
    ] {
        fixture.write_file("f", before);
        fixture.run("Read", json!({"file_path": "f"})).await;
        let outcome = fixture.run("Write", json!({"file_path": "f", "content": content})).await;
        assert!(completed(&outcome).contains(format_name), "{}", outcome.output);
        assert_eq!(fixture.bytes("f"), after, "{content:?} over {before:?}");
    }
}

#[tokio::test]
async fn edit_checks_run_in_order_with_error_codes() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("src/a.txt", "alpha\nbeta\nbeta\ngamma delta epsilon\n");
    fixture.write_file("empty.txt", "");
    fixture.write_file("b.bin", b"a\0b");
    // GBK text with an invalid byte that encoding does not restore.
    fixture.write_file("odd.txt", b"\xEF\xBB\xBFbad \xFF byte");
    for (input, code, expected_text) in [
        (edit("nowhere", "a", "a"), "same_strings", "same"),
        (edit("nowhere", "a\r\n", "a\n"), "same_strings", "same"),
        (edit("src/a.txt", "", "x"), "file_exists", "not empty"),
        (edit("src/aa.txt", "a", "b"), "file_not_found", "Did you mean src/a.txt?"),
        (edit("b.bin", "a", "b"), "binary_file", "binary"),
        (edit("odd.txt", "bad", "b"), "encoding_not_safe", "byte for byte"),
        (
            edit("src/a.txt", "gamma  delta epsilon", "x"),
            "string_not_found",
            "line 4 (only whitespace differs)",
        ),
        (edit("src/a.txt", "beta", "x"), "multiple_matches", "2 times, at lines 2, 3"),
        (edit("src/a.txt", "alpha", "x"), "not_read", "read it before"),
    ] {
        let outcome = fixture.run("Edit", input.clone()).await;
        failed(&outcome, code);
        assert!(outcome.output.contains(expected_text), "{}", outcome.output);
        assert!(outcome.detail.unwrap()["meta"].is_object());
    }
    fixture.run("Read", json!({"file_path": "src/a.txt"})).await;
    fixture.write_file("src/a.txt", "alpha\nanother user\n");
    failed(&fixture.run("Edit", edit("src/a.txt", "alpha", "x")).await, "file_changed");
    assert_eq!(fixture.bytes("src/a.txt"), b"alpha\nanother user\n");
}

#[tokio::test]
async fn edit_replaces_text_and_reports_diff() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a.txt", "one\ntwo\nthree two\n");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    let outcome = fixture.run("Edit", edit("a.txt", "one\n", "1\n")).await;
    assert_eq!(completed(&outcome), "Edited a.txt (+1 −1 lines; UTF-8, LF).");
    let change = &outcome.changes[0];
    assert_eq!(change.diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n three two\n");
    let detail = outcome.detail.unwrap();
    assert_eq!(detail["sha256_after"], outcome.reads[0].sha256);
    assert_ne!(detail["sha256_before"], detail["sha256_after"]);
    // The session's own edit does not count as a change by another program.
    let mut all = edit("a.txt", "two", "2");
    all["replace_all"] = json!("true");
    let outcome = fixture.run("Edit", all).await;
    assert_eq!(completed(&outcome), "Edited a.txt in 2 places (+2 −2 lines; UTF-8, LF).");
    assert_eq!(fixture.bytes("a.txt"), b"1\n2\nthree 2\n");
    // The content is known completely, so the model may overwrite it.
    completed(&fixture.run("Write", json!({"file_path": "a.txt", "content": ""})).await);
}

#[tokio::test]
async fn edit_with_empty_old_string_creates_file() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("empty.txt", "");
    for path in ["new/file.txt", "empty.txt"] {
        completed(&fixture.run("Edit", edit(path, "", "x\n")).await);
        assert_eq!(fixture.bytes(path), b"x\n");
        completed(&fixture.run("Edit", edit(path, "x", "y")).await);
    }
}

#[tokio::test]
async fn edit_keeps_bytes_outside_replacement() {
    let mut fixture = ToolFixture::new();
    let gbk = |text: &str| encoding_rs::GBK.encode(text).0.into_owned();
    let utf16be = |text: &str| -> Vec<u8> {
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
    };
    for (before, old, new, after, format_name) in [
        (b"a\r\nb\nc\r\n".to_vec(), "a\nb", "A\nB", b"A\r\nB\nc\r\n".to_vec(), "UTF-8, mixed line endings"),
        (b"a\r\nb\r\n".to_vec(), "b\n", "b\nc\n", b"a\r\nb\r\nc\r\n".to_vec(), "UTF-8, CRLF"),
        (b"\xEF\xBB\xBFa\n".to_vec(), "a", "é", "\u{feff}é\n".as_bytes().to_vec(), "UTF-8 with BOM, LF"),
        (b"a\rb\rc\r".to_vec(), "a\nb", "A\nB\nx", b"A\rB\rx\rc\r".to_vec(), "UTF-8, CR)"),
        (
            gbk("你好，世界。这是测试。\r\n第二行\n"),
            "第二行",
            "第三行",
            gbk("你好，世界。这是测试。\r\n第三行\n"),
            "GBK, mixed",
        ),
        (utf16be("a\r\nb"), "b", "😀\n", utf16be("a\r\n😀\r\n"), "UTF-16BE, CRLF"),
    ] {
        fixture.write_file("f", &before);
        fixture.run("Read", json!({"file_path": "f"})).await;
        let outcome = fixture.run("Edit", edit("f", old, new)).await;
        assert!(completed(&outcome).contains(format_name), "{}", outcome.output);
        assert_eq!(fixture.bytes("f"), after, "{old:?} -> {new:?}");
    }
    fixture.write_file("f", gbk("你好，世界。这是测试。\n"));
    fixture.run("Read", json!({"file_path": "f"})).await;
    failed(&fixture.run("Edit", edit("f", "世界", "😀")).await, "cannot_encode");
}

#[tokio::test]
async fn write_refuses_target_changed_after_judging() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("out.txt", "theirs\n");
    std::fs::create_dir(fixture.path("d")).unwrap();
    let call = fixture.call("Write", json!({"file_path": "d/x.txt", "content": "mine\n"}));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    assert_eq!(edited_path(&prepared), fixture.path("d/x.txt"));
    symlink("../out.txt", fixture.path("d/x.txt")).unwrap();
    failed(&fixture.run_prepared(&call, &prepared).await, "not_read");
    assert_eq!(fixture.bytes("out.txt"), b"theirs\n");

    std::fs::remove_file(fixture.path("d/x.txt")).unwrap();
    symlink("new-name", fixture.path("d/x.txt")).unwrap();
    failed(&fixture.run_prepared(&call, &prepared).await, "target_changed");
    assert!(!fixture.path("d/new-name").exists());

    // The file is edited while the user looks at the diff.
    fixture.write_file("a.txt", "one\ntwo\n");
    fixture.run("Read", json!({"file_path": "a.txt"})).await;
    let call = fixture.call("Edit", edit("a.txt", "one", "1"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    fixture.write_file("a.txt", "one\nchanged\n");
    failed(&fixture.run_prepared(&call, &prepared).await, "file_changed");
    assert_eq!(fixture.bytes("a.txt"), b"one\nchanged\n");
}

#[tokio::test]
async fn large_file_changed_after_preparation_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    for ends in ["\n", "\r\n"] {
        let mut fixture = ToolFixture::new();
        let text = |word: &str| format!("{word}{ends}{}", format!("line{ends}").repeat(500_000));
        let (one, other) = (text("one"), text("one").replacen("line", "LINE", 1));
        fixture.write_file("a.txt", &one);
        fixture.run("Read", json!({"file_path": "a.txt"})).await;
        let call = fixture.call("Edit", edit("a.txt", "one", "two"));
        let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();

        // The new content has the same length, and the daemon does not know of the change.
        fixture.write_file("a.txt", &other);
        failed(&fixture.run_prepared(&call, &prepared).await, "file_changed");
        assert!(fixture.bytes("a.txt") == other.as_bytes());

        // The old content, but new permission bits, which are kept.
        fixture.write_file("a.txt", &one);
        let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
        std::fs::set_permissions(fixture.path("a.txt"), std::fs::Permissions::from_mode(0o640)).unwrap();
        // Another call on the same file is judged with the same content.
        let stranger = fixture.call("Edit", edit("a.txt", "one", "three"));
        let other_prepared = fixture.tools.prepare(&stranger, &fixture.session_context).await.unwrap();
        assert_ne!(other_prepared.diff, prepared.diff);
        completed(&fixture.run_prepared(&call, &prepared).await);
        assert!(fixture.bytes("a.txt") == text("two").as_bytes());
        let mode = std::fs::metadata(fixture.path("a.txt")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        failed(&fixture.run_prepared(&stranger, &other_prepared).await, "string_not_found");
        assert!(fixture.bytes("a.txt") == text("two").as_bytes());

        fixture.run("Read", json!({"file_path": "a.txt"})).await;
        completed(&fixture.run("Edit", edit("a.txt", "two", "one")).await);
        assert!(fixture.bytes("a.txt") == one.as_bytes());
    }
}

#[tokio::test]
async fn unguarded_edit_refuses_file_changed_after_request() {
    let mut fixture = ToolFixture::with_settings(|settings| settings.config.edit_requires_read = false);
    fixture.write_file("a.txt", "one\n");
    completed(&fixture.run("Edit", edit("a.txt", "one", "two")).await);
    fixture.write_file("b.txt", "one\nmore\n");
    let call = fixture.call("Edit", edit("b.txt", "one", "1"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    fixture.write_file("b.txt", "one\nother\n");
    failed(&fixture.run_prepared(&call, &prepared).await, "file_changed");
}

#[tokio::test]
async fn edit_errors_reveal_nothing_of_unreadable_files() {
    let mut fixture = ToolFixture::new();
    let secret = fixture.root.join("home/notes.txt");
    std::fs::write(&secret, "the password is hunter2 and nothing else\n").unwrap();
    let path = secret.to_str().unwrap();
    fixture.write_file(".env", "TOKEN=abcdef\n");
    for (path, old) in [(path, "the password is hunter3 and"), (path, "password"), (".env", "TOKEN=abcdeg")] {
        let outcome = fixture.prepare("Edit", edit(path, old, "x")).await.unwrap_err();
        failed(&outcome, "not_read");
        assert!(!outcome.output.contains("hunter2") && !format!("{outcome:?}").contains("abcdef"));
    }
}

#[tokio::test]
async fn unguarded_edit_reports_error_only_after_approval() {
    let mut fixture = ToolFixture::with_settings(|settings| settings.config.edit_requires_read = false);
    fixture.write_file(".env", "TOKEN=abcdef\n");
    let prepared = fixture.prepare("Edit", edit(".env", "TOKEN=abcdeg", "x")).await.unwrap();
    assert_eq!((prepared.diff, prepared.summary.as_str()), (None, "Edit .env"));
    // The run reports the error after the user has agreed.
    failed(&fixture.run("Edit", edit(".env", "TOKEN=abcdeg", "x")).await, "string_not_found");
}

#[tokio::test]
async fn protected_paths_are_judged_before_content_checks() {
    let mut fixture = ToolFixture::new();
    fixture.write_file(".git/config", "[core]\n");
    let data = fixture.root.join("data/x.db");
    for path in [".git/config", ".git/hooks/pre-commit", ".agentd/policy.toml", data.to_str().unwrap()] {
        let prepared = fixture.prepare("Write", json!({"file_path": path, "content": "x"})).await.unwrap();
        match prepared.subject {
            Subject::Edit { path } => assert_eq!(path.sensitivity, PathSensitivity::Protected, "{path:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn stopped_write_call_changes_no_file() {
    let mut fixture = ToolFixture::new();
    let call = fixture.call("Write", json!({"file_path": "a.txt", "content": "x"}));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let (progress, _ignored) = mpsc::channel(1);
    let outcome =
        within(fixture.tools.run(&call, &prepared, &fixture.session_context, progress, registrar(), stop))
            .await;
    assert_eq!(outcome.status, ToolStatus::Cancelled);
    assert!(!fixture.path("a.txt").exists());
}

#[tokio::test]
async fn large_file_edit_equals_small_file_edit() {
    let mut fixture = ToolFixture::new();
    let lines = |changed: &str| -> String {
        (0..90_000)
            .map(|n| if n == 45_000 { format!("{changed}\n") } else { format!("the line {n} of it\n") })
            .collect()
    };
    fixture.write_file("large", lines("old"));
    fixture.run("Read", json!({"file_path": "large"})).await;
    let outcome = fixture.run("Edit", edit("large", "old", "new")).await;
    completed(&outcome);
    assert_eq!(fixture.bytes("large"), lines("new").as_bytes());
    let sha256 = crate::file_identity::sha256(lines("new").as_bytes());
    assert_eq!(outcome.detail.unwrap()["sha256_after"], sha256.as_str());
    assert_eq!(outcome.reads[0].sha256, sha256, "it is known as it is now");

    // One character near the end differs, with the same length: the file is not the one that was read.
    let call = fixture.call("Edit", edit("large", "new", "newer"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    let mut other = lines("new").into_bytes();
    let last = other.len() - 2;
    other[last] = b'?';
    fixture.write_file("large", &other);
    failed(&fixture.run_prepared(&call, &prepared).await, "file_changed");
    assert!(fixture.bytes("large") == other, "it is left alone");
}

#[tokio::test]
async fn file_read_completely_in_parts_counts_as_read() {
    let mut fixture = ToolFixture::new();
    let text = format!("{}\n", "x".repeat(90)).repeat(3_000);
    fixture.write_file("large.txt", &text);
    let write = json!({"file_path": "large.txt", "content": "new"});
    for offset in [1, 1_201] {
        completed(
            &fixture.run("Read", json!({"file_path": "large.txt", "offset": offset, "limit": 1_200})).await,
        );
        failed(&fixture.run("Write", write.clone()).await, "not_read");
    }
    let last = fixture.run("Read", json!({"file_path": "large.txt", "offset": 2_401})).await;
    assert_eq!(last.detail.as_ref().unwrap()["whole"], true);
    completed(&fixture.run("Write", write).await);
}
