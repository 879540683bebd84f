//! Stores transcripts in a key-value store of the program: a sorted map, saved as one file.
//!
//! ```sh
//! cargo run -p verbatim-transcripts --example own_archive
//! ```
//!
//! An embedded database takes the place of `FileStore` with the same three functions.

use std::{collections::BTreeMap, error::Error, fs::File, io::Write as _, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use tokio::sync::Mutex;
use verbatim::{
    ErrorCause, ImportRequest, Options, Verbatim,
    transcript_core::{
        self,
        archive::{KeyValueArchive, KeyValueChange, KeyValueStore},
    },
};

/// A sorted map. Each write replaces its file.
#[derive(Debug)]
struct FileStore {
    path: PathBuf,
    map: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl FileStore {
    fn open(path: PathBuf) -> Result<Self, Box<dyn Error>> {
        let map = match std::fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path, map: Mutex::new(map) })
    }

    fn save(&self, map: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(map)?)?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)
    }
}

#[async_trait]
impl KeyValueStore for FileStore {
    async fn get(&self, key: &str) -> transcript_core::Result<Option<Vec<u8>>> {
        Ok(self.map.lock().await.get(key).cloned())
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> transcript_core::Result<()> {
        let mut map = self.map.lock().await;
        let mut changed = map.clone();
        for KeyValueChange { key, value } in changes {
            match value {
                Some(value) => changed.insert(key, value),
                None => changed.remove(&key),
            };
        }
        self.save(&changed).map_err(|error| {
            verbatim::Error::unavailable("the file of the archive cannot be written")
                .with_cause(Some(ErrorCause::new(error)))
        })?;
        *map = changed;
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> transcript_core::Result<Vec<(String, Vec<u8>)>> {
        let map = self.map.lock().await;
        let keys = map.range(after.to_owned()..).filter(|(key, _)| key.as_str() > after);
        let keys = keys.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(keys.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

#[expect(clippy::print_stdout, reason = "its purpose is to print")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let open = async || {
        let store = FileStore::open(folder.path().join("archive.json"))?;
        let archive = Arc::new(KeyValueArchive::new(Arc::new(store)));
        let options = Options::default().without_suppliers().with_archive(archive);
        Ok::<_, Box<dyn Error>>(Verbatim::open(options).await?)
    };
    let verbatim = open().await?;
    let import = ImportRequest {
        link: "https://youtu.be/dQw4w9WgXcQ".to_owned(),
        captions: b"1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n".to_vec(),
        language: Some("en".to_owned()),
        ..ImportRequest::default()
    };
    verbatim.tools().import(import).await?;
    verbatim.close().await;

    // The file has everything: another start finds it.
    let verbatim = open().await?;
    let transcript = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.into_transcript()?;
    assert_eq!(transcript.to_text(), "It is so quiet here.\n");
    println!("{transcript}");
    verbatim.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn example_runs() {
        super::main().unwrap();
    }
}
