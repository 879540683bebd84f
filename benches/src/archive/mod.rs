//! What an archive costs that grows: look-ups in archives of a thousand, a hundred thousand and a million transcripts,
//! beside each other, and the room that transcripts take.

mod size;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive as _, Compact, Compacted, Keep, Wish},
};

use crate::{
    ask::{Client, get},
    corpus::{Sequence, into_page_cache},
    process::{Server, new_key, serve},
    report::{Goal, line, median, ratio},
    talk::{Surprise, Talk, keep, video},
};

const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Those whose transcripts are compacted: to compact a million takes longer than anybody waits for.
const COLD_SIZES: [u64; 2] = [1_000, 100_000];
/// How many captions of a small video are: half a minute.
const CAPTIONS: usize = 10;
const ROUNDS: usize = 15;
/// How many look-ups of each archive there are in a round.
const LOOK_UPS: u64 = 4_000;

/// How an archive is asked.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A server, over HTTP.
    Server,
    /// The store alone.
    Store,
}

/// One archive that is asked.
struct Asked {
    size: u64,
    file: PathBuf,
    archive: SqliteArchive,
    server: Server,
    /// With it nothing is ready: each look-up asks the archive, however few transcripts there are.
    key: String,
    sequence: Sequence,
}

/// What one round of one archive took, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    middle: f64,
    slow: f64,
}

/// Keeps transcripts, as many at once as share a commit.
async fn keep_all(archive: &SqliteArchive, transcripts: impl Iterator<Item = Result<Keep>>) -> Result<()> {
    let mut transcripts = transcripts.peekable();
    while transcripts.peek().is_some() {
        let some: Vec<_> = transcripts.by_ref().take(256).collect::<Result<_>>()?;
        futures_util::future::try_join_all(some.into_iter().map(|one| archive.keep(one))).await?;
    }
    Ok(())
}

/// Compacts all that there is.
async fn compact(archive: &SqliteArchive) -> Result<Compacted> {
    let mut all = Compacted::default();
    let mut page = PageRequest::first();
    loop {
        let some = archive.compact(Compact { stored_before: Timestamp::from_millis(i64::MAX), page }).await?;
        all.compacted += some.compacted;
        all.bytes_before += some.bytes_before;
        all.bytes_after += some.bytes_after;
        match some.next {
            Some(after) => page = PageRequest { after: Some(after), ..PageRequest::first() },
            None => return Ok(all),
        }
    }
}

/// The folder of an archive of this size; filled where it is not.
async fn filled(data: &Path, size: u64, is_cold: bool) -> Result<PathBuf> {
    let folder = data.join(format!("{size}{}", if is_cold { "-cold" } else { "" }));
    std::fs::create_dir_all(&folder)?;
    let archive = SqliteArchive::open(SqliteOptions::new(folder.join("archive.db"))).await?;
    let stats = archive.stats().await?;
    if stats.transcripts < size {
        let begun = Instant::now();
        let talk = Talk::new();
        let mut missing = Vec::new();
        for number in 0..size {
            // Of those that were being kept when an earlier filling was broken off, any may be missing.
            if stats.transcripts == 0 || archive.body(&video(number)?, &Wish::Default).await?.is_none() {
                missing.push(number);
            }
        }
        let transcript = |number| Ok(keep(talk.transcript(number, CAPTIONS, Surprise::Many)?));
        keep_all(&archive, missing.into_iter().map(transcript)).await?;
        let rate = (size - stats.transcripts) as f64 / begun.elapsed().as_secs_f64();
        line(&format!("{size} archived"), rate, "a second");
    }
    if is_cold && stats.compact < size {
        let begun = Instant::now();
        let compacted = compact(&archive).await?;
        line(
            &format!("{size} compacted"),
            compacted.compacted as f64 / begun.elapsed().as_secs_f64(),
            "a second",
        );
        let smaller = compacted.bytes_after as f64 / compacted.bytes_before as f64;
        ratio(&format!("{size} compacted: to what they took before"), smaller, Goal::None);
        ensure!(archive.stats().await?.compact == size, "{compacted:?}");
    }
    archive.close().await;
    Ok(folder)
}

impl Asked {
    async fn open(folder: &Path, size: u64) -> Result<Self> {
        let file = folder.join("archive.db");
        let archive = SqliteArchive::open(SqliteOptions::new(file.clone())).await?;
        let key = format!("Bearer {}", new_key(folder, &[])?);
        let server = serve(folder, &[("VERBATIM_LOG__LEVEL", "warn".to_owned())])?;
        Ok(Self { size, file, archive, server, key, sequence: Sequence::new(size) })
    }

    async fn ask(&mut self, client: &Client, way: Way) -> Result<Round> {
        into_page_cache(&self.file)?;
        match way {
            Way::Server => self.over_http(client).await,
            Way::Store => self.in_store().await,
        }
    }

    /// Looks transcripts up at random, one after the other, at a server.
    async fn over_http(&mut self, client: &Client) -> Result<Round> {
        let mut took = Vec::new();
        for _ in 0..LOOK_UPS {
            let path = format!("/api/transcript?v={}", video(self.sequence.below(self.size))?.id());
            let begun = Instant::now();
            let answer = get(client, self.server.address(), &path, &[("authorization", &self.key)]).await?;
            ensure!(answer.status() == 200, "the server answers {}", answer.status());
            answer.into_body().collect().await?;
            took.push(begun.elapsed());
        }
        Ok(round(took))
    }

    /// The same in the store alone.
    async fn in_store(&mut self) -> Result<Round> {
        let mut took = Vec::new();
        for _ in 0..LOOK_UPS {
            let video = video(self.sequence.below(self.size))?;
            let begun = Instant::now();
            let body = self.archive.body(&video, &Wish::Default).await?;
            took.push(begun.elapsed());
            ensure!(body.is_some(), "{video} is archived");
        }
        Ok(round(took))
    }
}

fn round(mut took: Vec<Duration>) -> Round {
    took.sort_unstable();
    let at =
        |part: usize| took.get(took.len() * part / 100).map_or(f64::NAN, |took| took.as_secs_f64() * 1e6);
    Round { middle: at(50), slow: at(99) }
}

/// Asks all in turn, and prints medians of rounds; the ratios are of the smallest archive in the same round.
async fn compare(what: &str, asked: &mut [Asked], way: Way) -> Result<()> {
    let client = Client::new();
    let mut rounds = vec![Vec::new(); asked.len()];
    for number in 0..=ROUNDS {
        for place in 0..asked.len() {
            // None is always the first one. The first round is for the caches.
            let place = (place + number) % asked.len();
            let round = asked[place].ask(&client, way).await?;
            if number > 0 {
                rounds[place].push(round);
            }
        }
    }
    for (place, one) in asked.iter().enumerate() {
        let of = |figure: fn(&Round) -> f64| median(rounds[place].iter().map(figure).collect());
        let name = format!("{what}, {} transcripts", one.size);
        line(&format!("{name}: p50"), of(|round| round.middle), "µs");
        line(&format!("{name}: p99"), of(|round| round.slow), "µs");
        if place == 0 {
            continue;
        }
        let to_first = |figure: fn(&Round) -> f64| {
            let pairs = rounds[place].iter().zip(&rounds[0]);
            median(pairs.map(|(round, first)| figure(round) / figure(first)).collect())
        };
        ratio(&format!("{name}: p50 to the smallest"), to_first(|round| round.middle), Goal::AtMost(1.2));
        ratio(&format!("{name}: p99 to the smallest"), to_first(|round| round.slow), Goal::AtMost(1.2));
    }
    Ok(())
}

/// All measurements of the archive, in a folder whose archives are filled where they are not yet.
pub(crate) async fn run(data: Option<&Path>, only_fill: bool) -> Result<()> {
    let own = TempDir::new()?;
    let data = data.unwrap_or(own.path());
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for size in SIZES {
        hot.push((filled(data, size, false).await?, size));
    }
    for size in COLD_SIZES {
        cold.push((filled(data, size, true).await?, size));
    }
    if only_fill {
        return Ok(());
    }
    size::run(own.path()).await?;
    for (what, folders) in [("as sent", hot), ("compact", cold)] {
        let mut asked = Vec::new();
        for (folder, size) in folders {
            asked.push(Asked::open(&folder, size).await?);
        }
        compare(&format!("{what}, over HTTP"), &mut asked, Way::Server).await?;
        compare(&format!("{what}, the store alone"), &mut asked, Way::Store).await?;
        for one in asked {
            one.archive.close().await;
        }
    }
    Ok(())
}
