//! Search in the whole archive, next to tantivy and SQLite's FTS5 on the same talks.
//!
//! Quality is known-item search: a query of words that one talk is about, as people type them, must find this talk.

mod languages;
mod own;
mod peers;
mod talks;

use std::{collections::BTreeMap, hint::black_box, time::Instant};

use anyhow::Result;
use own::{OwnIndex, keep_without_index};
use peers::{Fts5Index, PeerIndex, TantivyIndex};
use talks::{QueryKind, Talks};
use tempfile::TempDir;

use crate::report::{Goal, line, median, ratio};

/// Talks without an argument: 150 in each language.
pub(crate) const TALKS: u64 = 1_200;
/// Hits of a query.
const LIMIT: u32 = 10;
/// Talks beyond which queries are no longer unique: only sizes and times are measured.
const RECALL_TALKS_MAX: u64 = 20_000;
/// Talks beyond which CPU time is measured once.
const REPEATED_TALKS_MAX: u64 = 20_000;
const ROUNDS: usize = 3;
/// Queries whose time is measured.
const TIMED_QUERIES: u64 = 400;

/// The measured engines, in the order of their figures.
const ENGINES: [&str; 3] = ["Verbatim", "tantivy", "FTS5"];

/// The engines with all talks.
struct Engines {
    own: OwnIndex,
    tantivy: TantivyIndex,
    fts5: Fts5Index,
}

/// Queries of one language or kind, and how many found their talk.
#[derive(Clone, Copy, Debug, Default)]
struct Recall {
    queries: u64,
    /// By engine: in the first place, and among the first ten.
    first: [u64; 3],
    ten: [u64; 3],
}

impl Recall {
    fn add(&mut self, talk: u64, found: &[Vec<u64>; 3]) {
        self.queries += 1;
        for (engine, numbers) in found.iter().enumerate() {
            self.first[engine] += u64::from(numbers.first() == Some(&talk));
            self.ten[engine] += u64::from(numbers.iter().take(LIMIT as usize).any(|number| *number == talk));
        }
    }

    /// Prints the shares of all engines; the goal is the best of the others.
    fn print(&self, name: &str) {
        for (rank, counts) in [("@1", self.first), ("@10", self.ten)] {
            let share = |engine: usize| counts[engine] as f64 / self.queries.max(1) as f64;
            let others = format!("{} {:.3}, {} {:.3}", ENGINES[1], share(1), ENGINES[2], share(2));
            let best = (share(1).max(share(2)) * 1_000.0).floor() / 1_000.0;
            ratio(&format!("recall{rank}, {name} ({others})"), share(0), Goal::AtLeast(best));
        }
    }
}

impl Engines {
    async fn search(&self, query: &str) -> Result<[Vec<u64>; 3]> {
        Ok([
            self.own.search(query, LIMIT).await?,
            self.tantivy.search(query, LIMIT as usize)?,
            self.fts5.search(query, LIMIT as usize)?,
        ])
    }

    /// Prints the recall by language and by kind of query.
    async fn print_recall(&self, talks: &Talks) -> Result<()> {
        let mut by_language: BTreeMap<&str, Recall> = BTreeMap::new();
        let mut by_kind = [Recall::default(); QueryKind::ALL.len()];
        for talk in 0..talks.count {
            for (kind, recall) in QueryKind::ALL.into_iter().zip(&mut by_kind) {
                let found = self.search(&talks.query(talk, kind)).await?;
                by_language.entry(talks.language_of(talk)).or_default().add(talk, &found);
                recall.add(talk, &found);
            }
        }
        for language in talks.languages() {
            by_language.get(language).copied().unwrap_or_default().print(language);
        }
        for (kind, recall) in QueryKind::ALL.into_iter().zip(by_kind) {
            recall.print(kind.name());
        }
        Ok(())
    }

    /// Prints the time of queries as ratios to tantivy's, which alternate with them.
    async fn print_times(&self, talks: &Talks) -> Result<()> {
        let (mut own, mut tantivy, mut fts5) = (Vec::new(), Vec::new(), Vec::new());
        let step = (talks.count / TIMED_QUERIES).max(1);
        for (round, talk) in (0..talks.count).step_by(usize::try_from(step)?).enumerate() {
            let query = talks.query(talk, QueryKind::Order);
            let own_first = round % 2 == 0;
            for is_own in [own_first, !own_first] {
                let started = Instant::now();
                if is_own {
                    black_box(self.own.search(&query, LIMIT).await?);
                    own.push(started.elapsed().as_secs_f64() * 1_000.0);
                } else {
                    black_box(self.tantivy.search(&query, LIMIT as usize)?);
                    tantivy.push(started.elapsed().as_secs_f64() * 1_000.0);
                }
            }
            let started = Instant::now();
            black_box(self.fts5.search(&query, LIMIT as usize)?);
            fts5.push(started.elapsed().as_secs_f64() * 1_000.0);
        }
        for (name, part, goal) in [("p50", 0.5, Goal::AtMost(1.2)), ("p99", 0.99, Goal::None)] {
            let [own, tantivy, fts5] = [&own, &tantivy, &fts5].map(|times| quantile(times, part));
            line(&format!("query, {name}: tantivy"), tantivy, "ms");
            line(&format!("query, {name}: FTS5"), fts5, "ms");
            line(&format!("query, {name}: Verbatim, with moments"), own, "ms");
            ratio(&format!("query, {name}: to tantivy"), own / tantivy, goal);
        }
        Ok(())
    }
}

fn quantile(times: &[f64], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Measures CPU time with and without the index, in alternating rounds; returns the last archive with its index.
async fn measure_keeping(talks: &Talks, folder: &TempDir) -> Result<OwnIndex> {
    let rounds = if talks.count <= REPEATED_TALKS_MAX { ROUNDS } else { 1 };
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: Option<OwnIndex> = None;
    for round in 0..rounds {
        if let Some(earlier) = last.take() {
            earlier.close().await?;
        }
        let folders =
            [format!("{round}-bare"), format!("{round}-indexed")].map(|name| folder.path().join(name));
        for folder in &folders {
            std::fs::create_dir_all(folder)?;
        }
        let bare = keep_without_index(talks, &folders[0]).await?;
        let (own, indexed) = OwnIndex::build(talks, &folders[1]).await?;
        last = Some(own);
        without.push(bare);
        with.push(indexed);
        ratios.push(indexed / bare);
    }
    let each_us = |seconds: Vec<f64>| median(seconds) * 1e6 / talks.count as f64;
    line("keeping a talk: CPU without the index", each_us(without), "µs");
    line("keeping a talk: CPU with the index", each_us(with), "µs");
    ratio("the same: with to without the index", median(ratios), Goal::AtMost(1.3));
    last.ok_or_else(|| anyhow::anyhow!("no round was measured"))
}

/// All measurements of search, over this number of talks.
pub(crate) async fn run(count: u64) -> Result<()> {
    let (talks, folder) = (Talks::new(count), TempDir::new()?);
    println!("{count} talks in {} languages", talks.languages().count());
    let own = measure_keeping(&talks, &folder).await?;
    let engines = Engines {
        own,
        tantivy: TantivyIndex::build(&talks)?,
        fts5: Fts5Index::build(&talks, &folder.path().join("fts5.db"))?,
    };
    if count <= RECALL_TALKS_MAX {
        engines.print_recall(&talks).await?;
    }
    engines.print_times(&talks).await?;
    let Engines { own, tantivy, fts5 } = engines;
    let (bytes, mib) = (own.close().await?, |bytes: u64| bytes as f64 / f64::from(1 << 20));
    line("compacted archive", mib(bytes.compacted_archive), "MiB");
    line("index: tantivy", mib(tantivy.bytes()?), "MiB");
    line("index: FTS5, with the texts", mib(fts5.bytes()?), "MiB");
    line("index: Verbatim", mib(bytes.index), "MiB");
    let to_archive = bytes.index as f64 / bytes.compacted_archive as f64;
    ratio("index: to the compacted archive", to_archive, Goal::AtMost(0.6));
    Ok(())
}
