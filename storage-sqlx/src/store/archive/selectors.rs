//! Damage of selectors, which rows of transcripts and tracks repair.

use transcript_core::{
    Result,
    archive::TrackSelector,
    transcript::{TrackInfo, best_track},
    video::VideoId,
};

use super::{put::PUT_SELECTORS, record_changes, scan::TranscriptKey, tracks::decode_info};
use crate::{
    error::DbResult,
    sql::{Database, Row, Session, WriteTx, values},
};

/// The selectors of a video, and whether each has a transcript of it; no row unless $2 is its newest transcript, so
/// that a scan checks each video once. A row of nulls if it has none.
const SELECTORS_OF_NEWEST: &str = "SELECT w.wish,
        EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id = w.transcript)
    FROM transcripts n LEFT JOIN wishes w ON w.video = n.video
    WHERE n.video = $1 AND n.id = $2 AND NOT EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id > $2)
    ORDER BY w.wish";
/// The selectors of a video, and whether each has a transcript of it.
const SELECTORS_OF_VIDEO: &str = "SELECT w.wish,
        EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id = w.transcript)
    FROM wishes w WHERE w.video = $1 ORDER BY w.wish";
/// The tracks of a video in the order in which they became known, each with its transcripts, the newest first.
///
/// Revisions do not order them: a new fetch after a deletion is revision 1 again.
const TRACKS_WITH_TRANSCRIPTS: &str = "SELECT k.id, k.language, k.kind, k.name, k.original, t.id
    FROM tracks k LEFT JOIN transcripts t ON t.video = k.video AND t.track = k.id
    WHERE k.video = $1 ORDER BY k.id, t.id DESC";
const DELETE_BROKEN_SELECTOR: &str = "DELETE FROM wishes WHERE video = $1 AND wish = $2
    AND NOT EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id = wishes.transcript)";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(super) const INDEXED_STATEMENTS: [&str; 4] =
    [SELECTORS_OF_NEWEST, SELECTORS_OF_VIDEO, TRACKS_WITH_TRANSCRIPTS, DELETE_BROKEN_SELECTOR];

/// A row of [`SELECTORS_OF_NEWEST`] or [`SELECTORS_OF_VIDEO`].
enum SelectorRow {
    /// The video has no selector.
    Missing,
    Sound,
    /// Its transcript is missing, or of another video.
    Broken(String),
    /// Its name does not decode.
    Unreadable,
}

impl SelectorRow {
    fn decode(row: &mut Row) -> DbResult<Self> {
        let is_sound = row.take(1)?;
        Ok(match row.take::<Option<String>>(0) {
            Err(_) => Self::Unreadable,
            Ok(None) => Self::Missing,
            Ok(Some(_)) if is_sound => Self::Sound,
            Ok(Some(name)) => Self::Broken(name),
        })
    }
}

/// A row of [`TRACKS_WITH_TRANSCRIPTS`].
struct KnownTrack {
    track: TrackInfo,
    /// `None` if the track is not archived.
    transcript: Option<i64>,
}

impl KnownTrack {
    /// Decodes a row; `None` if it is damaged, so that the track is unknown.
    fn decode(row: &mut Row) -> DbResult<Option<Self>> {
        let transcript = row.take(5)?;
        Ok(decode_info(row, 0).ok().map(|(_, track)| Self { track, transcript }))
    }
}

/// The transcript that a selector gets: the newest one of the best track.
///
/// A fetch chooses the default among all tracks, archived or not. Another selector matches one language.
fn best_transcript(tracks: &[KnownTrack], selector: &TrackSelector) -> Option<i64> {
    let is_choice = |known: &&KnownTrack| known.transcript.is_some() || *selector == TrackSelector::Default;
    let choices: Vec<_> = tracks.iter().filter(is_choice).collect();
    let best = best_track(choices.iter().map(|known| &known.track), selector)?;
    choices[best].transcript
}

/// The default, if its track is archived, and the selector of each archived track.
fn archived_selectors(tracks: &[KnownTrack]) -> Vec<TrackSelector> {
    let mut selectors = Vec::new();
    selectors.extend(best_transcript(tracks, &TrackSelector::Default).map(|_| TrackSelector::Default));
    for known in tracks.iter().filter(|known| known.transcript.is_some()) {
        let selector = known.track.selector();
        if !selectors.contains(&selector) {
            selectors.push(selector);
        }
    }
    selectors
}

/// Damage of the selectors of a video.
pub(super) struct SelectorDamage {
    pub(super) reason: &'static str,
    /// The selectors without a transcript of the video; those of its archived tracks if it has no selector.
    pub(super) selectors: Vec<TrackSelector>,
    /// Whether the video has no selector.
    pub(super) is_unselected: bool,
}

/// The damage of a video's selectors, found with its newest transcript.
pub(super) async fn check<D: Database>(database: &D, key: &TranscriptKey) -> Result<Option<SelectorDamage>> {
    let video = key.video.to_string();
    let rows =
        database.find(SELECTORS_OF_NEWEST, &values![&video, key.transcript], SelectorRow::decode).await?;
    let (mut reason, mut selectors, mut is_unselected) = (None, Vec::new(), false);
    for row in rows {
        match row {
            SelectorRow::Sound => {}
            SelectorRow::Missing => {
                let tracks =
                    database.find(TRACKS_WITH_TRANSCRIPTS, &values![&video], KnownTrack::decode).await?;
                let tracks: Vec<_> = tracks.into_iter().flatten().collect();
                (selectors, is_unselected) = (archived_selectors(&tracks), true);
                reason = Some("the video has transcripts, but no selector");
            }
            SelectorRow::Unreadable => reason = Some("a selector of the video cannot be read"),
            SelectorRow::Broken(name) => {
                reason = reason.or(Some("a selector of the video has no transcript of it"));
                selectors.push(TrackSelector::from_name(&name));
            }
        }
    }
    Ok(reason.map(|reason| SelectorDamage { reason, selectors, is_unselected }))
}

/// Sets damaged selectors again. The outcome is whether no damage remains.
///
/// A selector without a match is deleted, and the next lookup fetches.
pub(super) struct RestoreSelectorsTx {
    pub(super) video: VideoId,
    /// Whether archived tracks without a selector get one. Their text may be one that was replaced, of which the newer
    /// transcript was damaged and deleted.
    pub(super) restores_all: bool,
}

impl WriteTx for RestoreSelectorsTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let video = self.video.to_string();
        let rows = db.find(SELECTORS_OF_VIDEO, &values![&video], SelectorRow::decode).await?;
        let tracks = db.find(TRACKS_WITH_TRANSCRIPTS, &values![&video], KnownTrack::decode).await?;
        let tracks: Vec<_> = tracks.into_iter().flatten().collect();
        let (mut selectors, mut is_readable, mut changed) = (Vec::new(), true, 0);
        for row in &rows {
            match row {
                SelectorRow::Sound | SelectorRow::Missing => {}
                SelectorRow::Unreadable => is_readable = false,
                SelectorRow::Broken(name) => selectors.push(TrackSelector::from_name(name)),
            }
        }
        if self.restores_all {
            selectors.extend(archived_selectors(&tracks));
        }
        for selector in selectors {
            changed += match best_transcript(&tracks, &selector) {
                // Sound selectors stay.
                Some(transcript) => {
                    let row = values![&video, vec![selector.as_str()], transcript, false];
                    db.execute(PUT_SELECTORS, &row).await?
                }
                None => db.execute(DELETE_BROKEN_SELECTOR, &values![&video, selector.as_str()]).await?,
            };
        }
        record_changes(db, &video, changed).await?;
        Ok(is_readable && (!rows.is_empty() || changed > 0))
    }
}
