//! Damaged and locked files, panics.

use super::*;

/// Whether this process has the file open.
fn is_open(path: &Path) -> bool {
    let path = path.canonicalize().unwrap();
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    files.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|open| open == path)
}

/// Waits until the threads of the last handle have closed the file, then writes the log into the file. The
/// threads usually do so themselves. If both close at the same time, each sees the other one as a user of the
/// log, and the log stays.
async fn wait_until_closed(path: &Path) {
    crate::index::testing::wait_until(|| !is_open(path)).await;
    let last = Connection::open(path).unwrap();
    last.query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0)).unwrap();
    last.close().unwrap();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    assert!(!Path::new(&log).exists());
}

#[tokio::test]
async fn damaged_file_is_set_aside_and_an_empty_index_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/index.db");
    drop(KnowledgeStore::open(&path).unwrap());
    for damage in [&b"this is no database at all, by far not"[..], &[0_u8; 4096]] {
        wait_until_closed(&path).await;
        std::fs::write(&path, damage).unwrap();
        let store = KnowledgeStore::open(&path).unwrap();
        let is_fresh_file = damage.iter().all(|byte| *byte == 0);
        assert!(store.was_rebuilt() || is_fresh_file);
    }
    let aside = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".damaged-"));
    assert!(aside.count() >= 1);
}

#[tokio::test]
async fn damage_below_the_first_pages_is_noticed_and_reopened_empty() {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let store = KnowledgeStore::open(&path).unwrap();
    store
        .write(|writer| {
            for n in 0..50 {
                let (text, path) = (format!("text {n}").repeat(200), format!("f{n}"));
                let (new, chunks) = document(&path, &[&text]);
                writer.store_document(
                    &new,
                    &DocumentContent { chunks, ..Default::default() },
                    IndexLevel::Lexical,
                    1,
                )?;
            }
            Ok(())
        })
        .await
        .unwrap();
    drop(store);
    wait_until_closed(&path).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xa5; usize::try_from(length).unwrap() / 2], length / 2).unwrap();
    drop(file);
    let store = KnowledgeStore::open(&path).unwrap();
    let read = store.read_rows(|reader| {
        for document in reader.documents(&DocumentFilter::default(), 1000)? {
            reader.document_chunks(document.id.as_str())?;
        }
        reader.counts()
    });
    assert_eq!(read.await.unwrap_err().kind, ErrorKind::Damaged);
    assert!(store.is_damaged());
    drop(store);
    let store = KnowledgeStore::reopen_empty(&path).unwrap();
    assert!(store.was_rebuilt());
    assert_eq!(store.read(|reader| reader.counts()).await.unwrap().documents, 0);
}

#[tokio::test]
async fn panic_on_the_index_thread_fails_one_call_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = KnowledgeStore::open(&folder.path().join("index.db")).unwrap();
    let broken = store.write(|_| -> Result<(), KnowledgeError> { panic!("as a test wants it") }).await;
    assert_eq!(broken.unwrap_err().kind, ErrorKind::Storage);
    assert_eq!(store.read(|reader| reader.generation()).await.unwrap(), 0);
}

#[test]
fn file_of_another_program_that_holds_the_lock_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let (mut writer, _reader) = open(&path);
    writer.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(writer.set_model("x").unwrap_err().kind, ErrorKind::Busy);
    other.execute_batch("rollback").unwrap();
    writer.set_model("x").unwrap();
}

/// An index file with a user's edits, a cached answer and an inserted document, and 50 chunks.
async fn edited_index(path: &Path) {
    let store = KnowledgeStore::open(path).unwrap();
    store
        .write(|writer| {
            for n in 0..50 {
                let (text, path) = (format!("text {n}").repeat(200), format!("f{n}"));
                let (new, chunks) = document(&path, &[&text]);
                let content = DocumentContent { chunks, ..Default::default() };
                writer.store_document(&new, &content, IndexLevel::Lexical, 1)?;
            }
            writer.create_entity("Mine", "concept", "my own words", 1)?;
            writer.create_entity("Other", "concept", "d", 1)?;
            writer.create_relation("Other", "Mine", "k", "my relation", 2.0, 1)?;
            let renamed = EntityEdit { name: Some("Theirs".into()), ..EntityEdit::default() };
            writer.update_entity("Other", &renamed, 1)?;
            let (kind, value) = (CacheKind::Extract, "an answer".to_owned());
            writer.put_answers(&[CachedAnswer { kind, key: "k".into(), value, chunk: None }], 1)?;
            let (new, _) = document("note", &["x"]);
            writer.accept_document(&NewDocument { source: DocumentSource::Inserted, ..new }, "x", 1).map(drop)
        })
        .await
        .unwrap();
    drop(store);
    wait_until_closed(path).await;
}

#[tokio::test]
async fn edits_and_answers_are_taken_over_from_a_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    edited_index(&path).await;
    let store = KnowledgeStore::reopen_empty(&path).unwrap();
    let salvage = |writer: &mut Writer| {
        let file = writer.damaged_file()?.expect("the old file");
        writer.salvage(&file, 9)
    };
    let salvaged = store.write(salvage).await.unwrap();
    assert!(salvaged.is_complete, "{salvaged:?}");
    assert_eq!((salvaged.answers, salvaged.inserted.len()), (1, 1));
    assert_eq!(store.write(|writer| writer.damaged_file()).await.unwrap(), None, "once");
    let names = ["Mine".to_owned(), "Theirs".to_owned()];
    let entities = store.read(move |reader| reader.entities(&names)).await.unwrap();
    assert_eq!(entities[0].description, "my own words");
    assert_eq!(entities[1].degree, 1);
    let found = store.read_rows(|reader| reader.find_entity("Other")).await.unwrap();
    assert_eq!(found.as_deref(), Some("Theirs"), "the old name still finds it");
    let answer = store.read(|reader| reader.cached(CacheKind::Extract, "k")).await.unwrap();
    assert_eq!(answer.as_deref(), Some("an answer"));
}

#[tokio::test]
async fn damage_at_any_place_of_the_file_loses_no_more_than_rows() {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    edited_index(&whole).await;
    let length = std::fs::metadata(&whole).unwrap().len();
    for tenth in 0..10 {
        let path = folder.path().join(format!("{tenth}.db"));
        std::fs::copy(&whole, &path).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xa5; 20_000], length * tenth / 10).unwrap();
        let store = KnowledgeStore::reopen_empty(&path).unwrap();
        let salvage = |writer: &mut Writer| {
            let file = writer.damaged_file()?.expect("the old file");
            writer.salvage(&file, 9)
        };
        let salvaged = store.write(salvage).await.unwrap();
        assert!(salvaged.edits <= 4, "{tenth}: {salvaged:?}");
        assert_eq!(store.read(|reader| reader.counts()).await.unwrap().documents, 0);
    }
}
