//! Verification: decodes every stored transcript and checks the selectors of its video; on request, deletes damaged
//! transcripts and sets damaged selectors again.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use transcript_core::{
    Error, ErrorKind, Result,
    archive::{DamagedTranscript, TrackSelector, VerifyArchiveOutcome, VerifyArchiveRequest},
    transcript::LanguageTag,
    video::VideoId,
};

#[cfg(feature = "postgres")]
use super::details::postgres_details;
#[cfg(feature = "sqlite")]
use super::details::sqlite_details;
use super::{
    details::{EncodedDetails, STORED_TRACKS},
    find::{CheckedBody, decode_body},
    record_changes,
    scan::{TranscriptKey, concurrency, next_cursor},
    selectors::{self, RestoreSelectorsTx, SelectorDamage},
    stats_part,
    tracks::{decode_info, read_cursor},
};
use crate::{
    body::{EncodedBody, damaged, misplaced},
    body_v1::BodyV1,
    cold,
    error::DbResult,
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

/// The next transcripts, with the languages of their tracks.
const NEXT_TRANSCRIPTS: Statement = sql! {
    sqlite: "SELECT t.video, t.id, t.revision, k.language
        FROM transcripts t LEFT JOIN tracks k ON k.id = t.track
        WHERE t.id > $2 ORDER BY t.id LIMIT $3",
    postgres: "SELECT t.video, t.id, t.revision, k.language
        FROM transcripts t LEFT JOIN tracks k ON k.video = t.video AND k.id = t.track
        WHERE (t.video, t.id) > ($1, $2) ORDER BY t.video, t.id LIMIT $3",
};

/// A transcript in each form that it may have, then what is known of its video.
const READ_FORMS: Statement = sql! {
    sqlite: concat!(
        "SELECT b.content_sha256, b.length, b.checksum, b.source, b.about, b.segments,
            t.content_sha256, t.body_length, t.body,
            unhex((SELECT group_concat(hex(p.bytes), '' ORDER BY p.id) FROM cold p
                WHERE b.transcript IS NULL AND p.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535)), o.bytes, ",
        sqlite_details!(),
        " FROM transcripts t LEFT JOIN bodies b ON b.transcript = t.id LEFT JOIN words o ON o.transcript = t.id
        LEFT JOIN details m ON m.video = $1
        WHERE t.video = $1 AND t.id = $2 AND t.revision = $3"
    ),
    postgres: concat!(
        "SELECT b.content_sha256, b.length, b.checksum, b.source, b.about, b.segments,
            t.content_sha256, b.length, NULL::BYTEA, p.body, o.bytes, ",
        postgres_details!(),
        " FROM transcripts t
        LEFT JOIN bodies b ON b.video = t.video AND b.transcript = t.id
        LEFT JOIN words o ON o.video = t.video AND o.transcript = t.id
        LEFT JOIN cold p ON p.video = t.video AND p.transcript = t.id AND b.video IS NULL
        WHERE t.video = $1 AND t.id = $2 AND t.revision = $3"
    ),
};
/// The first column of the details in [`READ_FORMS`].
const DETAILS_COLUMN: usize = 11;

const SELECTORS: &str =
    "SELECT wish FROM wishes WHERE video = $1 AND transcript = $2 ORDER BY wish <> 'default', wish";
const DELETE_SELECTORS: &str = "DELETE FROM wishes WHERE video = $1 AND transcript = $2";
/// Deletes a transcript without selectors, with its forms.
const DELETE_TRANSCRIPT: &str = "DELETE FROM transcripts WHERE video = $1 AND id = $2";
/// Subtracts a transcript from the statistics of PostgreSQL.
const SUBTRACT_TRANSCRIPT: &str = "UPDATE figures SET videos = figures.videos - o.videos,
        transcripts = figures.transcripts - 1, bytes = figures.bytes - o.bytes,
        compact = figures.compact - o.compact
    FROM (SELECT t.body_bytes AS bytes,
            (SELECT count(*) FROM cold WHERE video = $1 AND transcript = $2) AS compact,
            CASE WHEN EXISTS (SELECT 1 FROM transcripts WHERE video = $1 AND id <> $2) THEN 0 ELSE 1 END AS videos
        FROM transcripts t WHERE t.video = $1 AND t.id = $2) o
    WHERE part = $3";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 9] = [
    NEXT_TRANSCRIPTS.sqlite,
    READ_FORMS.sqlite,
    SELECTORS,
    DELETE_SELECTORS,
    DELETE_TRANSCRIPT,
    selectors::INDEXED_STATEMENTS[0],
    selectors::INDEXED_STATEMENTS[1],
    selectors::INDEXED_STATEMENTS[2],
    selectors::INDEXED_STATEMENTS[3],
];

/// The form of a stored transcript, with the digest in its row.
enum StoredForm {
    /// With a valid checksum.
    Body {
        body: EncodedBody,
        content_sha256: Vec<u8>,
    },
    Cold {
        compact: Vec<u8>,
        words: Option<Vec<u8>>,
        content_sha256: Vec<u8>,
    },
    V1(BodyV1),
}

impl StoredForm {
    /// Decodes a row of [`READ_FORMS`].
    fn decode(video: &VideoId, row: &mut Row) -> DbResult<Self> {
        let (content_sha256, words) = (row.take(6)?, row.take(10)?);
        if let Some(CheckedBody { body, .. }) = decode_body(video, row, 0)? {
            return Ok(Self::Body { body: EncodedBody { words, ..body }, content_sha256 });
        }
        if let Some(compact) = row.take(9)? {
            return Ok(Self::Cold { compact, words, content_sha256 });
        }
        let bytes = row.take::<Option<Vec<u8>>>(8)?.ok_or_else(damaged)?;
        Ok(Self::V1(BodyV1 { content_sha256, length: row.take(7)?, bytes }))
    }

    /// Checks that it decodes to what was stored for this video.
    fn check(&self, video: &VideoId) -> Result<()> {
        let transcript = match self {
            Self::Body { body, content_sha256 } if body.content_sha256 != *content_sha256 => {
                return Err(damaged());
            }
            Self::Body { body, .. } => body.unpack()?,
            Self::Cold { compact, words, content_sha256 } => {
                cold::unpack(compact, words.as_deref(), content_sha256)?
            }
            Self::V1(body) => body.unpack()?,
        };
        if transcript.video == *video { Ok(()) } else { Err(misplaced()) }
    }
}

/// What is damaged of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DamagedPart {
    /// It cannot be read.
    Corrupt,
    /// A newer version of the store may be able to read it.
    Unsupported,
    /// Some selectors of its video.
    Selectors,
    /// Its video has no selector.
    NoSelector,
}

/// Damage that was found, and its report.
struct FoundDamage {
    key: TranscriptKey,
    part: DamagedPart,
    report: DamagedTranscript,
}

impl FoundDamage {
    fn new(
        key: &TranscriptKey,
        language: Option<LanguageTag>,
        part: DamagedPart,
        selectors: Vec<TrackSelector>,
        reason: String,
    ) -> Self {
        let report = DamagedTranscript {
            video: key.video.clone(),
            language,
            revision: u32::try_from(key.revision).unwrap_or_default(),
            selectors,
            reason,
            is_deleted: false,
            is_restored: false,
            is_unselected: part == DamagedPart::NoSelector,
        };
        Self { key: key.clone(), part, report }
    }

    /// Repairs it: deletes the transcript, or sets the selectors again.
    async fn repair<D: Database>(&mut self, database: &D) {
        let key = self.key.clone();
        let (repaired, effect, failure) = match self.part {
            // The newest of the remaining transcripts may be one that was replaced.
            DamagedPart::Unsupported | DamagedPart::NoSelector => return,
            DamagedPart::Corrupt => {
                (database.run(DeleteDamagedTx(key)).await, &mut self.report.is_deleted, "deleted")
            }
            DamagedPart::Selectors => {
                let restore = RestoreSelectorsTx { video: key.video, restores_all: false };
                (database.run(restore).await, &mut self.report.is_restored, "set again")
            }
        };
        match repaired {
            Ok(is_repaired) => *effect = is_repaired,
            Err(error) => self.report.reason.push_str(&format!("; it cannot be {failure}: {error}")),
        }
    }
}

/// Deletes a transcript if it is still damaged. The outcome is whether it was.
struct DeleteDamagedTx(TranscriptKey);

impl WriteTx for DeleteDamagedTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let TranscriptKey { video, transcript, revision } = &self.0;
        let name = video.to_string();
        let Some(mut row) = db.row(READ_FORMS, &values![&name, *transcript, *revision]).await? else {
            return Ok(false);
        };
        let is_damaged = match StoredForm::decode(video, &mut row) {
            Ok(form) => form.check(video).is_err_and(|error| error.kind() == ErrorKind::Corrupt),
            Err(_) => true,
        };
        // Another process may have repaired it by now.
        if !is_damaged {
            return Ok(false);
        }
        if S::IS_REMOTE {
            db.execute(SUBTRACT_TRANSCRIPT, &values![&name, *transcript, stats_part()]).await?;
        }
        let changed = db.execute(DELETE_SELECTORS, &values![&name, *transcript]).await?;
        db.execute(DELETE_TRANSCRIPT, &values![&name, *transcript]).await?;
        record_changes(db, &name, changed).await?;
        Ok(true)
    }
}

/// Verifies some transcripts; see [`transcript_core::archive::Archive::verify`].
///
/// # Errors
/// A database error while the page is read; nothing is deleted then.
pub(super) async fn verify_page<D: Database>(
    database: &D,
    request: &VerifyArchiveRequest,
) -> Result<VerifyArchiveOutcome> {
    let (video, transcript) = read_cursor(request.page.after.as_ref())?;
    let limit = i64::try_from(request.page.size()).unwrap_or(i64::MAX);
    let bounds = values![video, transcript, limit];
    let found = database.find(NEXT_TRANSCRIPTS, &bounds, |row| {
        // Of a damaged track it may be no text.
        let language: Option<String> = row.take(3).unwrap_or_default();
        Ok((TranscriptKey::decode(row)?, language.map(LanguageTag::from_canonical)))
    });
    let found = found.await?;
    let scanned = found.len();
    let last = found.last().map(|(key, _)| (&key.video, key.transcript));
    let next = next_cursor(last, scanned, &request.page);
    let mut results = stream::iter(found)
        .map(|(key, language)| verify_one(database, key, language))
        .buffered(concurrency());
    let mut found: Vec<FoundDamage> = Vec::new();
    while let Some(damage) = results.try_next().await? {
        found.extend(damage);
    }
    // Only once all are read: the outcome then reports every repair, also if another one fails. A selector must not be
    // set to a transcript that is deleted afterwards.
    if request.delete_damaged {
        found.sort_by_key(|damage| damage.part == DamagedPart::Selectors);
        for damage in &mut found {
            damage.repair(database).await;
        }
    }
    let damaged = found.into_iter().map(|damage| damage.report).collect();
    Ok(VerifyArchiveOutcome { scanned: scanned as u64, damaged, next })
}

/// The damage of a transcript, and of the selectors of its video if it is the newest one.
async fn verify_one<D: Database>(
    database: &D,
    key: TranscriptKey,
    language: Option<LanguageTag>,
) -> Result<Vec<FoundDamage>> {
    let mut found = Vec::new();
    match check(database, &key).await {
        Err(error) if error.is_unreadable() => {
            let keys = values![key.video.to_string(), key.transcript];
            let selectors = database.find(SELECTORS, &keys, |row| Ok(TrackSelector::from_name(row.get(0)?)));
            let is_corrupt = error.kind() == ErrorKind::Corrupt;
            let part = if is_corrupt { DamagedPart::Corrupt } else { DamagedPart::Unsupported };
            let selectors = selectors.await?;
            found.push(FoundDamage::new(&key, language.clone(), part, selectors, error.to_string()));
        }
        checked => checked?,
    }
    if let Some(damage) = selectors::check(database, &key).await? {
        let SelectorDamage { selectors, reason, is_unselected } = damage;
        let part = if is_unselected { DamagedPart::NoSelector } else { DamagedPart::Selectors };
        found.push(FoundDamage::new(&key, language, part, selectors, reason.to_owned()));
    }
    Ok(found)
}

/// Reads a transcript and decodes it, on a blocking thread because some are long; then what is known of its video.
async fn check<D: Database>(database: &D, key: &TranscriptKey) -> Result<()> {
    let keys = values![key.video.to_string(), key.transcript, key.revision];
    let decode = |row: &mut Row| {
        Ok((StoredForm::decode(&key.video, row)?, EncodedDetails::take(row, DETAILS_COLUMN)?))
    };
    // Deleted by another process.
    let Some((form, details)) = database.find_first(READ_FORMS, &keys, decode).await? else { return Ok(()) };
    let video = key.video.clone();
    let check = move || form.check(&video).and_then(|()| details.check());
    let checked = database.runtime().spawn_blocking(check).await;
    checked.map_err(|error| Error::unexpected(format!("checking a transcript failed: {error}"))).flatten()?;
    // A file has the tracks in two places, of which the details are one.
    if !D::IS_REMOTE {
        let video = values![key.video.to_string()];
        database.find(STORED_TRACKS, &video, |row| decode_info(row, 0)).await?;
    }
    Ok(())
}
