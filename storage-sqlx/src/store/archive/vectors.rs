//! Vectors of an embedding model, one row for a transcript.
//!
//! No response reads them, and they can be computed again: no other statement reads their table, and
//! verification leaves them out.

use transcript_core::{
    Result,
    archive::{VectorsKey, check_vectors},
};

use crate::{
    error::DbResult,
    sql::{Database, Session, Statement, WriteTx, sql, values},
};

/// The vectors of a transcript that is not withdrawn.
const FIND: Statement = sql! {
    sqlite: "SELECT v.bytes FROM transcripts t JOIN vectors v ON v.transcript = t.id
        WHERE t.video = $1 AND t.content_sha256 = $2 AND v.texts_sha256 = $3
            AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
        LIMIT 1",
    postgres: "SELECT v.bytes FROM transcripts t JOIN vectors v ON v.video = t.video AND v.transcript = t.id
        WHERE t.video = $1 AND t.content_sha256 = $2 AND v.texts_sha256 = $3
            AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
        LIMIT 1",
};

/// Adds the vectors to the transcript of a selector, if one has this content.
const PUT: Statement = sql! {
    sqlite: "INSERT INTO vectors (transcript, texts_sha256, bytes)
        SELECT t.id, $3, $4 FROM transcripts t
        WHERE t.video = $1 AND t.content_sha256 = $2
            AND t.id IN (SELECT transcript FROM wishes WHERE video = $1)
            AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
        ORDER BY t.id DESC LIMIT 1
        ON CONFLICT (transcript) DO UPDATE SET texts_sha256 = excluded.texts_sha256, bytes = excluded.bytes",
    postgres: "INSERT INTO vectors (video, transcript, texts_sha256, bytes)
        SELECT t.video, t.id, $3::BYTEA, $4::BYTEA FROM transcripts t
        WHERE t.video = $1 AND t.content_sha256 = $2
            AND t.id IN (SELECT transcript FROM wishes WHERE video = $1)
            AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1)
        ORDER BY t.id DESC LIMIT 1
        ON CONFLICT (video, transcript) DO UPDATE SET texts_sha256 = excluded.texts_sha256,
            bytes = excluded.bytes",
};

/// Deletes the vectors of transcripts that no selector has.
pub(super) const DELETE_UNUSED: Statement = sql! {
    sqlite: "DELETE FROM vectors WHERE transcript IN (SELECT id FROM transcripts
        WHERE video = $1 AND id NOT IN (SELECT transcript FROM wishes WHERE video = $1))",
    postgres: "DELETE FROM vectors
        WHERE video = $1 AND transcript NOT IN (SELECT transcript FROM wishes WHERE video = $1)",
};

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 3] = [FIND.sqlite, PUT.sqlite, DELETE_UNUSED.sqlite];

/// Reads vectors; see [`transcript_core::archive::Archive::vectors`].
pub(super) async fn find<D: Database>(database: &D, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
    let keys = values![key.video.to_string(), &key.content_sha256, &key.texts_sha256[..]];
    database.find_first(FIND, &keys, |row| row.take(0)).await
}

/// Stores vectors; see [`transcript_core::archive::Archive::put_vectors`].
pub(super) async fn put<D: Database>(database: &D, key: &VectorsKey, vectors: Vec<u8>) -> Result<()> {
    check_vectors(&vectors)?;
    database.run(PutVectorsTx { key: key.clone(), vectors }).await
}

/// Adds vectors, in a transaction: with the snapshot of a transaction, PostgreSQL reports a conflict if the transcript
/// is deleted at the same time, and the repetition finds none. A statement alone would violate the foreign key.
struct PutVectorsTx {
    key: VectorsKey,
    vectors: Vec<u8>,
}

impl WriteTx for PutVectorsTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let VectorsKey { video, content_sha256, texts_sha256 } = &self.key;
        let row = values![video.to_string(), content_sha256, &texts_sha256[..], &self.vectors];
        db.execute(PUT, &row).await?;
        Ok(())
    }
}
