//! Restores data after damage of the index file that a job cannot make again from the workspace.

use std::collections::HashSet;

use super::indexer::Indexer;
use super::inserts::inserted_document;
use crate::store::{InsertedDocuments, SalvageReport, Writer, kept_name};
use crate::types::KnowledgeError;

/// Copies edits and answers from the damaged file. Inserted documents that the index lacks are restored from
/// their second copy. Losses are recorded for [`crate::registry::IndexStatus`]. After a crash in
/// between, the next job repeats this.
pub(super) async fn restore(indexer: &Indexer) -> Result<(), KnowledgeError> {
    let (inserted_documents, now_ms) = (indexer.store.inserted_documents(), indexer.clock.now().0);
    let documents =
        indexer.store.write(move |writer| restore_documents(writer, &inserted_documents, now_ms)).await?;
    let salvaged = indexer.store.write(move |writer| {
        let Some(file) = writer.damaged_file()? else { return Ok(None) };
        let salvaged = writer.salvage(&file, now_ms)?;
        Ok(Some((file, salvaged)))
    });
    let salvaged = salvaged.await?;
    let lost = match &salvaged {
        Some((_, salvaged)) => {
            let all = indexer.store.write(|writer| writer.inserted_ids()).await?;
            let all: HashSet<&str> = all.iter().map(|id| id.as_str()).collect();
            salvaged.inserted.iter().filter(|id| !all.contains(id.as_str())).cloned().collect()
        }
        None => Vec::new(),
    };
    let file = salvaged.as_ref().map(|(file, _)| file.file_name().unwrap_or_default().to_string_lossy());
    let Some(notice) =
        restore_notice(file.as_deref(), salvaged.as_ref().map(|(_, it)| it), &documents, &lost)
    else {
        return Ok(());
    };
    tracing::warn!(notice, "an index was repaired");
    indexer.store.write(move |writer| writer.set_notice(&notice)).await
}

/// Ids of restored documents, and the number of those that could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
struct RestoredDocuments {
    restored: usize,
    unreadable: usize,
}

fn restore_documents(
    writer: &mut Writer,
    inserted_documents: &InsertedDocuments,
    now_ms: i64,
) -> Result<RestoredDocuments, KnowledgeError> {
    let known: HashSet<String> =
        writer.inserted_ids()?.into_iter().map(|id| kept_name(id.as_str())).collect();
    let mut found = RestoredDocuments::default();
    for name in inserted_documents.names().into_iter().filter(|name| !known.contains(name)) {
        let document = match inserted_documents.load(&name) {
            Ok(document) => document,
            Err(error) => {
                tracing::warn!(%error, "an inserted document is lost");
                found.unreadable += 1;
                continue;
            }
        };
        let holder = document.path.as_deref().map(|path| writer.find_document(path)).transpose()?.flatten();
        if holder.is_some_and(|holder| holder.path == document.path) {
            // Another document with the same path has replaced this one.
            inserted_documents.remove_document(&document.id)?;
            continue;
        }
        writer.accept_document(&inserted_document(&document), &document.text, now_ms)?;
        found.restored += 1;
    }
    Ok(found)
}

/// The notice for the user; `None` if nothing happened.
fn restore_notice(
    file: Option<&str>,
    salvaged: Option<&SalvageReport>,
    documents: &RestoredDocuments,
    lost: &[String],
) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(file) = file {
        parts.push(format!("The index file was damaged and set aside as {file}; the index was built again."));
    }
    if documents.restored > 0 {
        parts.push(format!(
            "Restored: {}.",
            count_text(documents.restored, "inserted document", "inserted documents")
        ));
    }
    if documents.unreadable > 0 {
        let lost = count_text(documents.unreadable, "inserted document", "inserted documents");
        parts.push(format!("Lost, because it could not be read: {lost}."));
    }
    if !lost.is_empty() {
        parts.push(format!("These inserted documents are lost: {}. Insert them again.", lost.join(", ")));
    }
    if let Some(salvaged) = salvaged {
        let edits = count_text(salvaged.edits as usize, "edit of the graph", "edits of the graph");
        let answers = count_text(salvaged.answers as usize, "answer of models", "answers of models");
        parts.push(format!("Taken over: {edits}, {answers}."));
        if !salvaged.is_complete {
            parts.push("Other edits and answers may be lost: a part of the file could not be read.".into());
        }
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn count_text(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_names_what_is_restored_and_what_is_lost() {
        let nothing = RestoredDocuments::default();
        assert_eq!(restore_notice(None, None, &nothing, &[]), None);
        let salvaged = SalvageReport { edits: 2, answers: 3, is_complete: false, ..SalvageReport::default() };
        let documents = RestoredDocuments { restored: 1, unreadable: 4 };
        let text = restore_notice(Some("x.damaged-1"), Some(&salvaged), &documents, &["note-1".into()])
            .expect("a text");
        for part in [
            "x.damaged-1",
            "Restored: 1 inserted document.",
            "could not be read: 4 inserted documents",
            "note-1",
            "2 edits",
            "may be lost",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
