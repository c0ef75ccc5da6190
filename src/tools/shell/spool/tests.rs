use std::os::unix::fs::PermissionsExt as _;

use super::*;
use types::ids::{Mint, Seed};

async fn spooled(place: &Spools, number: u128, pieces: impl Iterator<Item = String>) -> Option<SpoolResult> {
    let mut spool = Spool::new(Some(place.clone()), Mint::new(0, Seed(number)).call());
    for piece in pieces {
        spool.settle().await;
        spool.push(&piece);
        assert!(spool.piece.len() <= PIECE_BYTES + 8192 && spool.tail.len() <= 2 * TAIL_BYTES + 8192);
    }
    spool.finish(false).await
}

fn lines(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("{n:07}é").repeat(800))
}

fn file(folder: &Path, done: &SpoolResult) -> Vec<u8> {
    let blob = done.blob.as_ref().expect("a blob");
    let path = folder.join(blob.blob_id.to_string());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.len() as u64, blob.len());
    bytes
}

#[tokio::test]
async fn spool_file_contains_all_output() {
    let folder = tempfile::tempdir().unwrap();
    let place = Spools::new(&folder.path().join("blobs"), 1 << 30, 1 << 30);
    for count in [1, 20, 200] {
        let done = spooled(&place, count.into(), lines(count)).await.expect("a spool");
        let whole: String = lines(count).collect();
        assert!(file(&folder.path().join("blobs"), &done) == whole.as_bytes());
        assert!(done.note.contains("whole output") && done.note.contains("blob_"), "{}", done.note);
    }
}

#[tokio::test]
async fn spool_over_quota_omits_middle_with_note() {
    for (call, total) in [(1_000_001, 1 << 30), (1 << 30, 1_000_001)] {
        let folder = tempfile::tempdir().unwrap();
        let place = Spools::new(folder.path(), call, total);
        let done = spooled(&place, 1, lines(1_000)).await.expect("a spool");
        let text = String::from_utf8(file(folder.path(), &done)).expect("whole characters");
        let whole: String = lines(1_000).collect();
        let (head, rest) = text.split_once("\n[… ").expect("a note");
        let (note, tail) = rest.split_once(" …]\n").expect("its end");
        assert!(whole.starts_with(head) && whole.ends_with(tail) && head.len() >= 999_990, "{note}");
        assert!(tail.len() >= TAIL_BYTES && text.len() < 1_000_001 + 3 * TAIL_BYTES);
        assert!(note.contains("left out") && done.note.contains("from the middle are not"), "{}", done.note);
    }
}

#[tokio::test]
async fn unwritable_spool_folder_is_reported_without_failure() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("blobs"), "a file in the way").unwrap();
    let place = Spools::new(&folder.path().join("blobs"), 1 << 30, 1 << 30);
    let done = spooled(&place, 1, lines(100)).await.expect("a word");
    assert!(done.blob.is_none() && done.note.contains("could not be kept"), "{}", done.note);
}

#[tokio::test]
async fn dropped_or_fully_shown_output_leaves_no_spool() {
    let folder = tempfile::tempdir().unwrap();
    let place = Spools::new(folder.path(), 1 << 30, 1 << 30);
    for is_finished in [false, true] {
        let mut spool = Spool::new(Some(place.clone()), Mint::new(0, Seed(7)).call());
        for piece in lines(100) {
            spool.settle().await;
            spool.push(&piece);
        }
        spool.wait_for_write().await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        if is_finished {
            assert!(spool.finish(true).await.is_none());
        } else {
            drop(spool);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
