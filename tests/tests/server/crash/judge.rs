//! What the ledger says, beside what the clients have written down.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Found, Wish},
    ids::WalletId,
    ledger::{Balance, Entry, EntryKind, Ledger, audit},
    video::{Platform, VideoId},
};
use verbatim_tests::replay::ReplayProxy;

use super::{
    people::People,
    record::{Record, Tally},
    store::{Open, Store},
};

/// The wallet of the daily cap.
const SERVICE: &str = "service";
/// When every hold is overdue.
fn far() -> Timestamp {
    Timestamp::from_millis(4_000_000_000_000)
}

/// A wallet with all its entries.
type Books = BTreeMap<WalletId, (Balance, Vec<Entry>)>;

pub(super) async fn check(
    store: &Store,
    people: &People,
    records: &[Record],
    proxy: &ReplayProxy,
) -> Result<()> {
    store.command(&["ledger", "audit"])?;
    let open = store.open().await?;
    let books = books(&*open.ledger).await?;
    check_courses(&books)?;
    let mut charged: BTreeMap<String, u64> = BTreeMap::new();
    for record in records {
        let person = &people.clients[record.client];
        let (paid, held) = spent(&books, &person.account_wallet)?;
        compare(&format!("account {}", record.client), &paid, &record.credits)?;
        let total: u64 = paid.values().sum();
        ensure!(total + held <= person.credits, "client {} has spent {total} and more", record.client);
        let (left, used) = record.at_the_end;
        figures(
            record,
            person.credits.saturating_sub(left),
            total,
            record.loose + record.spent().1 - record.spent().0,
        )?;
        let (looked, held) = spent(&books, &person.lookup_wallet)?;
        compare(&format!("key {}", record.client), &looked, &record.lookups)?;
        let total: u64 = looked.values().sum();
        let perhaps: u64 = record.lookups.values().map(|tally| tally.perhaps).sum();
        figures(record, used, total, perhaps.max(held))?;
        for (video, count) in looked {
            *charged.entry(video).or_default() += count;
        }
    }
    check_fetches(&books, &charged, proxy)?;
    let told: BTreeSet<&String> = records.iter().flat_map(|record| &record.told).collect();
    check_words(&open, told.into_iter().chain(charged.keys())).await?;

    // What nobody ended is returned once it is overdue, and then nothing is held.
    while open.ledger.expire(far(), 1_000).await? > 0 {}
    let after = self::books(&*open.ledger).await?;
    check_courses(&after)?;
    for (wallet, (balance, _)) in &after {
        ensure!(balance.pools.iter().all(|pool| pool.held == 0), "{wallet} still holds something");
    }
    for person in &people.clients {
        for wallet in [&person.account_wallet, &person.lookup_wallet] {
            ensure!(
                spent(&after, wallet)?.0 == spent(&books, wallet)?.0,
                "{wallet}: an end charged something"
            );
        }
    }
    open.close().await;
    store.command(&["ledger", "audit"]).map(drop)
}

/// All wallets with all their entries; each balance is what its entries add up to.
async fn books(ledger: &dyn Ledger) -> Result<Books> {
    let mut books = Books::new();
    let mut page = PageRequest::first();
    loop {
        let wallets = ledger.wallets(page).await?;
        for balance in wallets.items {
            let mut entries = Vec::new();
            let mut page = PageRequest::first();
            loop {
                let found = ledger.entries(&balance.wallet, page).await?;
                entries.extend(found.items);
                let Some(next) = found.next else { break };
                page = PageRequest { after: Some(next), ..PageRequest::first() };
            }
            let wrong = audit::compare(&balance, &entries);
            ensure!(wrong.as_ref().is_ok_and(Vec::is_empty), "{}: {wrong:?}", balance.wallet);
            books.insert(balance.wallet.clone(), (balance, entries));
        }
        let Some(next) = wallets.next else { return Ok(books) };
        page = PageRequest { after: Some(next), ..PageRequest::first() };
    }
}

/// Each hold ends once, and gives out what it holds and no more.
fn check_courses(books: &Books) -> Result<()> {
    for (wallet, (_, entries)) in books {
        let mut courses: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for entry in entries {
            let (held, ended) = courses.entry(&entry.cause).or_default();
            match entry.kind {
                EntryKind::Held => *held += entry.amount,
                EntryKind::Spent | EntryKind::Returned | EntryKind::Expired => *ended += entry.amount,
                EntryKind::Charged => (*held, *ended) = (*held + entry.amount, *ended + entry.amount),
                EntryKind::Granted | EntryKind::Revoked { .. } => {}
            }
        }
        for (cause, (held, ended)) in courses {
            // Every call of these tests costs one.
            ensure!(
                held <= 1 && (ended == 0 || ended == held),
                "{wallet}: {cause}: {held} held, {ended} ended"
            );
        }
    }
    Ok(())
}

/// What a server told of what is gone: all that was spent, and of what nobody knew at that moment no more than there is.
fn figures(record: &Record, told: u64, spent: u64, unknown: u64) -> Result<()> {
    let is_so = (spent..=spent + unknown).contains(&told);
    ensure!(
        is_so,
        "client {} was told that {told} is gone: {spent} is spent, {unknown} unknown",
        record.client
    );
    Ok(())
}

/// What a wallet has spent, by video, and what it holds.
fn spent(books: &Books, wallet: &WalletId) -> Result<(BTreeMap<String, u64>, u64)> {
    let mut paid: BTreeMap<String, u64> = BTreeMap::new();
    let Some((balance, entries)) = books.get(wallet) else { return Ok((paid, 0)) };
    for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
        let video = entry.memo.strip_prefix("transcript video_site/");
        ensure!(video.is_some(), "{wallet} was charged for {:?}", entry.memo);
        *paid.entry(video.unwrap_or_default().to_owned()).or_default() += entry.amount;
    }
    Ok((paid, balance.pools.iter().map(|pool| pool.held).sum()))
}

/// Everything that was delivered was charged once, and nothing but what was cut off may have been beside.
fn compare(who: &str, paid: &BTreeMap<String, u64>, told: &BTreeMap<String, Tally>) -> Result<()> {
    let videos: BTreeSet<&String> = paid.keys().chain(told.keys()).collect();
    for video in videos {
        let count = paid.get(video).copied().unwrap_or(0);
        let tally = told.get(video).copied().unwrap_or_default();
        ensure!(
            (tally.sure..=tally.sure + tally.perhaps).contains(&count),
            "{who} was charged {count} times for {video}, with {tally:?}"
        );
    }
    Ok(())
}

/// Nothing is charged more often than it was fetched: neither to keys, nor to the operator.
fn check_fetches(books: &Books, charged: &BTreeMap<String, u64>, proxy: &ReplayProxy) -> Result<()> {
    let mut fetches: BTreeMap<String, u64> = BTreeMap::new();
    for request in proxy.requests() {
        let body: Option<serde_json::Value> = serde_json::from_slice(&request.body).ok();
        if let Some(video) = body.as_ref().and_then(|body| body["videoId"].as_str()) {
            *fetches.entry(video.to_owned()).or_default() += 1;
        }
    }
    let (service, _) = spent(books, &WalletId::new(SERVICE))?;
    for (payer, counts) in [("keys", charged), ("the service", &service)] {
        for (video, count) in counts {
            let fetches = fetches.get(video).copied().unwrap_or(0);
            ensure!(*count <= fetches, "{video}: {count} charges of {payer}, {fetches} fetches");
        }
    }
    Ok(())
}

/// What was told or paid for is archived, word for word.
async fn check_words(open: &Open, videos: impl Iterator<Item = &String>) -> Result<()> {
    for video in videos {
        let id = VideoId::new(Platform::VideoSite, video)?;
        let found = open.archive.find(&id, &Wish::Default, far()).await?;
        let Found::Transcript(stored) = found else {
            anyhow::bail!("{video} was told, and is gone: {found:?}")
        };
        let words = &stored.transcript.segments[0].text;
        ensure!(*words == format!("This is {video}."), "{video} is archived with other words: {words}");
    }
    Ok(())
}
