//! Static vectors: a table with one vector per word piece, as model2vec writes it. A text is the mean of its pieces.
//!
//! The folder holds `model.safetensors`, `tokenizer.json` and optionally `config.json`.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::safetensors::{Tensor, read_tensor};
use super::word_piece::WordPiece;
use crate::traits::Embedder;
use crate::types::{ErrorKind, KnowledgeError, hash128};

/// Pieces of a text that count.
const MAX_TOKENS: usize = 512;
/// Maximum bytes of `tokenizer.json`.
const MAX_TOKENIZER_BYTES: u64 = 64 << 20;
/// Names of the table of vectors.
const TABLE_NAMES: [&str; 2] = ["embeddings", "embedding.weight"];

/// An embedder with static vectors. Cheap to clone.
#[derive(Clone)]
pub struct StaticEmbedder(Arc<StaticModel>);

struct StaticModel {
    id: String,
    tokenizer: WordPiece,
    dimension: usize,
    table: Vec<f32>,
    /// Weight of each piece, if the model has them.
    weights: Option<Vec<f32>>,
    /// Row of each piece, if pieces share rows.
    rows: Option<Vec<f32>>,
    is_normalizing: bool,
}

impl std::fmt::Debug for StaticEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StaticEmbedder({})", self.0.id)
    }
}

impl StaticEmbedder {
    /// Reads a folder. Blocks on the disk.
    ///
    /// # Errors
    /// A file is missing, damaged or of another kind.
    pub fn load(folder: &Path) -> Result<Self, KnowledgeError> {
        let fail = |why: String| {
            let text = format!(
                "could not load the static embedder {}: {why}; set [knowledge.embedder] path to a folder with \
                 model.safetensors and tokenizer.json",
                folder.display()
            );
            KnowledgeError::new(ErrorKind::Embedder, text)
        };
        let tokenizer_file = folder.join("tokenizer.json");
        let size = std::fs::metadata(&tokenizer_file)
            .map_err(|error| fail(format!("tokenizer.json: {error}")))?
            .len();
        if size > MAX_TOKENIZER_BYTES {
            return Err(fail("tokenizer.json is too large".into()));
        }
        let text =
            std::fs::read(&tokenizer_file).map_err(|error| fail(format!("tokenizer.json: {error}")))?;
        let tokenizer = WordPiece::from_json(&text).map_err(fail)?;
        let config = std::fs::read(folder.join("config.json")).unwrap_or_default();
        let config: Value = serde_json::from_slice(&config).unwrap_or_default();
        let file = folder.join("model.safetensors");
        let read =
            |name: &str| read_tensor(&file, name).map_err(|why| fail(format!("model.safetensors: {why}")));
        let mut table = None;
        for name in TABLE_NAMES {
            table = match table {
                None => read(name)?,
                found => found,
            };
        }
        let Some(Tensor { shape, values: table }) = table else {
            return Err(fail("model.safetensors has no table of embeddings".into()));
        };
        let &[rows, dimension] = shape.as_slice() else {
            return Err(fail("the table of embeddings does not have two dimensions".into()));
        };
        if rows == 0 || dimension == 0 || !table.iter().all(|value| value.is_finite()) {
            return Err(fail("the table of embeddings is empty or not finite".into()));
        }
        // Equal folders give equal ids, so that an index can be copied with its model.
        let sample: Vec<u8> =
            table.iter().step_by((table.len() / 4096).max(1)).flat_map(|it| it.to_le_bytes()).collect();
        let id = format!("static:{}", &hash128(&[&text, &sample, &table.len().to_le_bytes()])[..16]);
        Ok(Self(Arc::new(StaticModel {
            id,
            tokenizer,
            dimension,
            table,
            weights: read("weights")?.map(|tensor| tensor.values),
            rows: read("mapping")?.map(|tensor| tensor.values),
            is_normalizing: config["normalize"].as_bool().unwrap_or(true),
        })))
    }

    /// The vector of one text; zeros if no piece is known.
    #[must_use]
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let model = &self.0;
        let mut sum = vec![0.0_f32; model.dimension];
        let mut count = 0_usize;
        for token in model.tokenizer.tokens(text, MAX_TOKENS) {
            let token = token as usize;
            let row =
                model.rows.as_ref().map_or(Some(token), |rows| rows.get(token).map(|row| *row as usize));
            let Some(row) = row else { continue };
            let start = row.saturating_mul(model.dimension);
            let Some(vector) = model.table.get(start..start + model.dimension) else { continue };
            let weight =
                model.weights.as_ref().and_then(|weights| weights.get(token)).copied().unwrap_or(1.0);
            for (sum, value) in sum.iter_mut().zip(vector) {
                *sum += value * weight;
            }
            count += 1;
        }
        let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        let divisor = if model.is_normalizing { norm } else { count as f32 };
        if divisor > 0.0 {
            sum.iter_mut().for_each(|value| *value /= divisor);
        }
        sum
    }
}

impl Embedder for StaticEmbedder {
    fn model_id(&self) -> String {
        self.0.id.clone()
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.0.dimension)
    }

    fn batch_size(&self) -> usize {
        256
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, KnowledgeError>> {
        let embedder = self.clone();
        async move {
            let work = move || texts.iter().map(|text| embedder.vector(text)).collect();
            tokio::task::spawn_blocking(work).await.map_err(|_| {
                KnowledgeError::new(
                    ErrorKind::Embedder,
                    "could not embed: the static embedder failed; index again",
                )
            })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::safetensors::tests::file_with;
    use serde_json::json;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let tokenizer =
            json!({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "red": 1, "green": 2, "far": 3}}});
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).expect("written");
        let table: Vec<u8> =
            [9.0_f32, 9.0, 3.0, 4.0, 0.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let header = json!({"embeddings": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}});
        std::fs::write(folder.path().join("model.safetensors"), file_with(&header, &table)).expect("written");
        folder
    }

    #[tokio::test]
    async fn texts_become_normalised_means_of_their_pieces() {
        let folder = folder();
        let embedder = StaticEmbedder::load(folder.path()).expect("an embedder");
        assert_eq!(embedder.dimension(), Some(2));
        assert!(embedder.model_id().starts_with("static:"));
        let texts = ["Red", "green red", "unknown", "far"].map(str::to_owned).to_vec();
        let vectors = embedder.embed(texts).await.expect("vectors");
        assert_eq!(vectors[0], [0.6, 0.8]);
        let expected = (3.0_f32 * 3.0 + 6.0 * 6.0).sqrt();
        assert_eq!(vectors[1], [3.0 / expected, 6.0 / expected]);
        assert_eq!(vectors[2], [0.0, 0.0], "no piece is known");
        assert_eq!(vectors[3], [0.0, 0.0], "the piece has no row");
    }

    #[test]
    fn damaged_folder_is_refused_with_advice() {
        let folder = folder();
        std::fs::write(folder.path().join("model.safetensors"), b"short").expect("written");
        let error = StaticEmbedder::load(folder.path()).expect_err("damaged");
        assert!(error.message.contains("[knowledge.embedder] path"), "{error}");
        let empty = tempfile::tempdir().expect("a folder");
        assert!(StaticEmbedder::load(empty.path()).is_err());
    }
}
