//! Servers are killed under load of both surfaces, and so is their database: afterwards the ledger adds up, and says of
//! each client what the client itself has written down.
//!
//! `VERBATIM_KILLS=n` kills so often in each test; `VERBATIM_SEED=n` makes the same choices again, though not at the
//! same instants.

mod client;
mod clock;
mod disk;
mod fleet;
mod judge;
mod people;
mod record;
mod store;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use tokio::{sync::watch, task::JoinSet};
use verbatim_tests::replay::ReplayProxy;

use super::platform;
use crate::simulation::dice::Dice;
use client::Client;
use clock::RIGHT;
use fleet::{Book, Fleet};
use people::People;
use record::Record;
use store::Store;

/// How often something is killed in a test, unless `VERBATIM_KILLS` says otherwise.
const KILLS: u64 = 20;
/// How many clients ask at the same time; each has a key of either surface.
const CLIENTS: usize = 16;
/// The videos that everybody may have from the beginning.
const SHELVED: usize = 12;
/// How many videos there are for each kill that nobody has fetched yet.
const FRESH_PER_KILL: u64 = 20;
const FRESH_MAX: u64 = 2_000;
/// How long a platform takes to answer: a fetch is two of its answers.
const LATENCY: Duration = Duration::from_millis(15);
/// The shortest and the longest while between two kills, in milliseconds.
const BETWEEN: (u64, u64) = (40, 700);

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// One of the servers, which is started anew at once.
    Server,
    /// The database under the servers: with all its processes, or told to drop everything.
    Database,
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.trim().parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_files_dies_again_and_again() -> Result<()> {
    crash(Store::files()?, Victim::Server, &[RIGHT]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_postgres_dies_again_and_again() -> Result<()> {
    crash(Store::postgres()?, Victim::Server, &[RIGHT]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_servers_dies_again_and_again() -> Result<()> {
    crash(Store::postgres()?, Victim::Server, &[RIGHT; 3]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_of_two_servers_dies_again_and_again() -> Result<()> {
    crash(Store::postgres()?, Victim::Database, &[RIGHT; 2]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_whose_clocks_are_wrong_by_minutes_die_again_and_again() -> Result<()> {
    crash(Store::postgres()?, Victim::Server, &[RIGHT, 300, -300]).await
}

/// Kills while clients ask servers whose clocks are so many seconds ahead, and then compares what they wrote down with what the ledger says.
async fn crash(store: Store, victim: Victim, clocks: &[i64]) -> Result<()> {
    let seed = number("VERBATIM_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills = number("VERBATIM_KILLS").unwrap_or(KILLS);
    // Nobody sees the output of a test that ends well.
    eprintln!("{victim:?} of {clocks:?}, {kills} kills, seed {seed}");
    let dice = Dice::new(seed, 0);
    let shelved: Vec<String> = (0..SHELVED).map(|place| format!("shelved-{place:03}")).collect();
    let fresh = (0..(kills * FRESH_PER_KILL).min(FRESH_MAX)).map(|place| format!("fresh-{place:05}"));
    let fresh: Vec<String> = fresh.collect();
    let names: Vec<&str> = shelved.iter().chain(&fresh).map(String::as_str).collect();
    let proxy = platform::platform(&names, LATENCY)?;
    let people = People::made(&store, CLIENTS).await?;
    let mut fleet = Fleet::start(&store, &settings(&store, &proxy), clocks).await?;
    shelve(&fleet, &people, &shelved).await?;

    let (stop, stopped) = watch::channel(false);
    let shared = Arc::new(client::Stock::new(shelved, fresh));
    let mut clients = JoinSet::new();
    for (place, person) in people.clients.iter().enumerate() {
        let dice = Dice::new(seed, 1 + place as u64);
        let client = Client::new(person.clone(), fleet.book(), Arc::clone(&shared), dice);
        clients.spawn(client.live(stopped.clone()));
    }
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_millis(BETWEEN.0 + dice.below(BETWEEN.1 - BETWEEN.0))).await;
        match victim {
            Victim::Server => fleet.kill_and_start(dice.below(clocks.len() as u64) as usize).await?,
            Victim::Database => store.kill_and_start(kill % 2 == 0)?,
        }
    }
    stop.send(true)?;
    let mut records: Vec<Record> = Vec::new();
    while let Some(record) = clients.join_next().await {
        records.push(record??);
    }
    fleet.stop()?;
    let told: u64 = records.iter().map(Record::delivered).sum();
    let [cut, loose, replayed] = [
        records.iter().map(|record| record.cut).sum::<u64>(),
        records.iter().map(|record| record.loose).sum(),
        records.iter().map(|record| record.replayed).sum(),
    ];
    eprintln!(
        "{told} charged answers, {replayed} repeats; {cut} requests were cut off, {loose} for credits went unanswered"
    );
    // Servers whose database dies go on answering: that they cannot.
    let is_load = if victim == Victim::Server { cut > 0 } else { loose > 0 };
    ensure!(told > kills && is_load, "that is no load");
    judge::check(&store, &people, &records, &proxy).await
}

fn settings(store: &Store, proxy: &ReplayProxy) -> Vec<(String, String)> {
    let mut settings = platform::settings(proxy);
    settings.extend(store.settings());
    let more = [
        ("LIMITS__WAIT", "4s"),
        ("LIMITS__FREE_PER_MONTH", "1000000"),
        ("LIMITS__SERVICE_PER_DAY", "1000000"),
        ("LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "100000"),
        ("PLANS__FREE__REQUESTS_PER_MINUTE", "100000"),
    ];
    settings.extend(more.map(|(name, value)| (format!("VERBATIM_{name}"), value.to_owned())));
    settings.push(("VERBATIM_PLANS__FREE__CREDITS".to_owned(), people::MONTHLY.to_string()));
    settings
}

/// Has the common videos archived, by a key whose charges nobody looks at.
async fn shelve(fleet: &Fleet, people: &People, videos: &[String]) -> Result<()> {
    let book = fleet.book();
    for video in videos {
        let reply =
            client::ask(&book, 0, &people.librarian, &format!("/api/transcript?v={video}"), None).await;
        ensure!(matches!(&reply, Ok(reply) if reply.json()["available"] == true), "{reply:?}");
    }
    Ok(())
}

/// Where the servers are, for whoever asks them.
type Addresses = Arc<Book>;
