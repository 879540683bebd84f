//! A folder with a model as an [`Embedder`].

use std::{
    fmt,
    fs::File,
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use tokenizers::Tokenizer;
use tokio::runtime::Handle;
use transcript_core::{
    Error, Result,
    chat::{EMBED_TEXTS_MAX, EmbedPurpose, Embedder},
    hex,
};

use crate::table::TokenTable;

/// File of the tokenizer in the folder of a model.
pub const TOKENIZER_FILE: &str = "tokenizer.json";
/// File of the vectors in the folder of a model.
pub const MODEL_FILE: &str = "model.safetensors";

/// Maximum size of both files.
const TOKENIZER_BYTES_MAX: u64 = 128 << 20;
const MODEL_BYTES_MAX: u64 = 2 << 30;
/// Letters of a text that are embedded, and tokens of them: a passage is shorter, unless one segment is longer.
const TEXT_CHARS_MAX: usize = 4_096;
const TOKENS_MAX: usize = 1_024;
/// Texts of fewer bytes are embedded on the caller's thread.
const INLINE_BYTES: usize = 16 * 1024;
/// Bytes of a model's digest in its name.
const DIGEST_BYTES: usize = 8;

/// A static embedding model, computed within the process.
///
/// A question of a few words takes microseconds, two hours of speech some ten milliseconds on a blocking thread.
#[derive(Clone)]
pub struct StaticEmbedder {
    inner: Arc<StaticModel>,
}

struct StaticModel {
    name: String,
    tokenizer: Tokenizer,
    /// The token of unknown letters, which has no meaning.
    unknown: Option<u32>,
    table: TokenTable,
}

impl fmt::Debug for StaticEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StaticModel { name, table, .. } = self.inner.as_ref();
        formatter
            .debug_struct("StaticEmbedder")
            .field("name", name)
            .field("vectors", &table.rows())
            .field("dimensions", &table.dimensions())
            .finish()
    }
}

impl StaticEmbedder {
    /// Reads the model in a folder. Blocks while the files are read.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`]: a file is missing, too large or damaged, or the files are not of one
    /// model. The message names the file.
    pub fn open(folder: &Path) -> Result<Self> {
        let tokenizer_bytes = read(&folder.join(TOKENIZER_FILE), TOKENIZER_BYTES_MAX)?;
        let model_bytes = read(&folder.join(MODEL_FILE), MODEL_BYTES_MAX)?;
        let digest = Sha256::new().chain_update(&tokenizer_bytes).chain_update(&model_bytes).finalize();
        let digest = hex::encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
        let tokenizer = parse_tokenizer(&tokenizer_bytes)
            .map_err(|problem| invalid(&folder.join(TOKENIZER_FILE), &problem))?;
        let tokens = tokenizer.get_vocab(true).into_values().max().map_or(0, |last| last as usize + 1);
        let table = TokenTable::new(model_bytes, tokens)
            .map_err(|problem| invalid(&folder.join(MODEL_FILE), &problem))?;
        let unknown = ["[UNK]", "<unk>"].into_iter().find_map(|token| tokenizer.token_to_id(token));
        let name = format!("static:{digest}");
        Ok(Self { inner: Arc::new(StaticModel { name, tokenizer, unknown, table }) })
    }
}

/// Reads a file of at most this many bytes.
fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| invalid(path, &error.to_string()))?;
    let length = file.take(bytes_max + 1).read_to_end(&mut bytes);
    let length = length.map_err(|error| invalid(path, &error.to_string()))?;
    if length as u64 > bytes_max {
        return Err(invalid(path, &format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Parses a tokenizer, and tries it once.
fn parse_tokenizer(bytes: &[u8]) -> Result<Tokenizer, String> {
    // The library has assertions about the content of its files.
    let parsed = catch_unwind(|| {
        let mut tokenizer = Tokenizer::from_bytes(bytes)?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None)?;
        tokenizer.encode_fast("A test, 1 テスト.", false)?;
        Ok::<_, tokenizers::Error>(tokenizer)
    });
    match parsed {
        Ok(Ok(tokenizer)) => Ok(tokenizer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it is inconsistent".to_owned()),
    }
}

fn invalid(path: &Path, problem: &str) -> Error {
    let problem: String = problem.chars().take(300).collect();
    Error::invalid(format!(
        "cannot read the embedding model {}: {problem}: give a folder with {TOKENIZER_FILE} and {MODEL_FILE} in \
         model2vec format",
        path.display()
    ))
}

impl StaticModel {
    fn embed(&self, text: &str) -> Result<Vec<f32>> {
        let end = text.char_indices().nth(TEXT_CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or(text);
        // Assertions of the library must not end the server.
        let encoded = catch_unwind(AssertUnwindSafe(|| self.tokenizer.encode_fast(text, false)));
        let encoded = encoded.ok().and_then(Result::ok);
        let encoded =
            encoded.ok_or_else(|| Error::unexpected("the tokenizer of the embedding model failed"))?;
        let mut sum = vec![0.0; self.table.dimensions()];
        let known = encoded.get_ids().iter().filter(|token| Some(**token) != self.unknown);
        known.take(TOKENS_MAX).for_each(|token| self.table.add(*token, &mut sum));
        Ok(sum)
    }

    fn embed_all(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        texts.iter().map(|text| self.embed(text)).collect()
    }
}

#[async_trait]
impl Embedder for StaticEmbedder {
    fn model(&self) -> &str {
        &self.inner.name
    }

    fn is_contextual(&self) -> bool {
        false
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: Vec<String>, _: EmbedPurpose) -> Result<Vec<Vec<f32>>> {
        if texts.len() > EMBED_TEXTS_MAX {
            return Err(Error::invalid(format!("{} texts; allowed: {EMBED_TEXTS_MAX}", texts.len())));
        }
        let bytes: usize = texts.iter().map(String::len).sum();
        match Handle::try_current() {
            Ok(runtime) if bytes > INLINE_BYTES => {
                let model = Arc::clone(&self.inner);
                let working = runtime.spawn_blocking(move || model.embed_all(&texts));
                working.await.map_err(|_| Error::unavailable("the service is stopping"))?
            }
            _ => self.inner.embed_all(&texts),
        }
    }
}
