//! The baselines: tantivy and SQLite's FTS5, each with its defaults.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, params};
use tantivy::{
    Index, IndexReader, TantivyDocument,
    collector::{Count, TopDocs},
    directory::RamDirectory,
    query::QueryParser,
    schema::{Field, INDEXED, STORED, Schema, TEXT, Value as _},
};

use super::talks::Talks;

/// Memory of tantivy's index writer.
const WRITER_BYTES: usize = 64_000_000;

/// A search engine of the comparison.
pub(super) trait PeerIndex {
    /// The numbers of the best talks for a query as it was typed.
    ///
    /// # Errors
    /// If the engine fails. A query that it rejects finds nothing.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<u64>>;

    /// Size of the index in bytes.
    fn bytes(&self) -> Result<u64>;
}

/// tantivy in memory: the default tokenizer, and a query parser that joins words with `OR`.
pub(super) struct TantivyIndex {
    reader: IndexReader,
    parser: QueryParser,
    number: Field,
    directory: RamDirectory,
}

impl TantivyIndex {
    /// Indexes all talks on one thread.
    pub(super) fn build(talks: &Talks) -> Result<Self> {
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TEXT);
        let number = schema.add_u64_field("number", INDEXED | STORED);
        let directory = RamDirectory::create();
        let index = Index::builder().schema(schema.build()).open_or_create(directory.clone())?;
        let mut writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
        for talk in 0..talks.count {
            let mut document = TantivyDocument::default();
            document.add_text(text, talks.lines(talk).join(" "));
            document.add_u64(number, talk);
            writer.add_document(document)?;
        }
        writer.commit()?;
        writer.wait_merging_threads()?;
        let parser = QueryParser::for_index(&index, vec![text]);
        Ok(Self { reader: index.reader()?, parser, number, directory })
    }
}

impl PeerIndex for TantivyIndex {
    fn search(&self, query: &str, limit: usize) -> Result<Vec<u64>> {
        let Ok(query) = self.parser.parse_query(query) else { return Ok(Vec::new()) };
        let searcher = self.reader.searcher();
        // The number of all hits too, as in the other engines.
        let collectors = (TopDocs::with_limit(limit).order_by_score(), Count);
        let (found, _) = searcher.search(&query, &collectors)?;
        let number = |address| {
            let document: TantivyDocument = searcher.doc(address)?;
            document
                .get_first(self.number)
                .and_then(|value| value.as_u64())
                .context("a document has no number")
        };
        found.into_iter().map(|(_, address)| number(address)).collect()
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.directory.total_mem_usage() as u64)
    }
}

/// FTS5 in a file: the tokenizer `unicode61`, all words required, ranked by `bm25`.
pub(super) struct Fts5Index {
    /// A connection belongs to one thread at a time.
    connection: Mutex<Connection>,
    file: PathBuf,
}

impl Fts5Index {
    /// Indexes all talks in one transaction.
    pub(super) fn build(talks: &Talks, file: &Path) -> Result<Self> {
        let mut connection = Connection::open(file)?;
        connection.execute_batch("CREATE VIRTUAL TABLE talks USING fts5(text)")?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO talks (rowid, text) VALUES (?1, ?2)")?;
            for talk in 0..talks.count {
                insert.execute(params![i64::try_from(talk)?, talks.lines(talk).join(" ")])?;
            }
        }
        transaction.commit()?;
        Ok(Self { connection: Mutex::new(connection), file: file.to_owned() })
    }
}

impl PeerIndex for Fts5Index {
    fn search(&self, query: &str, limit: usize) -> Result<Vec<u64>> {
        let statement = "SELECT rowid FROM talks WHERE talks MATCH ?1 ORDER BY rank LIMIT ?2";
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(statement)?;
        let rows = statement.query_map(params![query, i64::try_from(limit)?], |row| row.get::<_, i64>(0))?;
        Ok(rows.filter_map(|row| row.ok().and_then(|number| u64::try_from(number).ok())).collect())
    }

    fn bytes(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.file)?.len())
    }
}
