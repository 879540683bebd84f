//! Compares the ledger and the archive with the histories of the clients.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    PageRequest, Timestamp,
    archive::{FindOutcome, TrackSelector},
    ids::WalletId,
    ledger::{Balance, Entry, EntryKind, Ledger, audit},
    video::{Platform, VideoId},
};
use verbatim_tests::replay::ReplayProxy;

use super::{
    clients::{CrashAccount, CrashAccounts},
    history::{CallHistory, CallTally},
    store::{CrashStore, OpenStore},
};

/// The wallet of the daily cap.
const SERVICE: &str = "service";
/// A time at which every hold is overdue.
fn far_future() -> Timestamp {
    Timestamp::from_millis(4_000_000_000_000)
}

/// A wallet with all its entries.
type ObservedState = BTreeMap<WalletId, (Balance, Vec<Entry>)>;

pub(super) async fn check(
    store: &CrashStore,
    accounts: &CrashAccounts,
    histories: &[CallHistory],
    proxy: &ReplayProxy,
) -> Result<()> {
    store.command(&["ledger", "audit"])?;
    let open = store.open().await?;
    let state = read_state(&*open.ledger, check_balance).await?;
    check_holds(&state)?;
    let mut charged: BTreeMap<String, u64> = BTreeMap::new();
    for history in histories {
        let account = &accounts.clients[history.client];
        let (paid, held) = read_spent(&state, &account.account_wallet)?;
        compare(&format!("account {}", history.client), history, &paid, &history.credits)
            .with_context(|| format!("entries: {:#?}", entries_of(&state, &account.account_wallet)))?;
        let total: u64 = paid.values().sum();
        ensure!(
            total + held <= account.credits,
            "client {} has spent {total} credits and holds {held}",
            history.client
        );
        let (left, used) = history.final_state;
        check_figures(
            history,
            account.credits.saturating_sub(left),
            total,
            history.unanswered + history.spent_bounds().1 - history.spent_bounds().0,
        )?;
        let (lookups, held) = read_spent(&state, &account.lookup_wallet)?;
        compare(&format!("key {}", history.client), history, &lookups, &history.lookups)?;
        let total: u64 = lookups.values().sum();
        let perhaps: u64 = history.lookups.values().map(|tally| tally.possible).sum();
        check_figures(history, used, total, perhaps.max(held))?;
        for (video, count) in lookups {
            *charged.entry(video).or_default() += count;
        }
    }
    check_fetches(&state, &charged, proxy)?;
    let reported: BTreeSet<&String> =
        histories.iter().flat_map(|history| &history.delivered_videos).collect();
    check_archived(&open, reported.into_iter().chain(charged.keys())).await?;

    // Holds without an end expire, and then nothing is held.
    while open.ledger.expire(far_future(), 1_000).await? > 0 {}
    let after = read_state(&*open.ledger, check_balance).await?;
    check_holds(&after)?;
    for (wallet, (balance, _)) in &after {
        ensure!(balance.pools.iter().all(|pool| pool.held == 0), "{wallet} still holds something");
    }
    for account in &accounts.clients {
        for wallet in [&account.account_wallet, &account.lookup_wallet] {
            ensure!(
                read_spent(&after, wallet)?.0 == read_spent(&state, wallet)?.0,
                "{wallet} was charged by an expiry"
            );
        }
    }
    open.close().await;
    store.command(&["ledger", "audit"]).map(drop)
}

/// The entries of all accounts, for the message of a client that failed before the end.
pub(super) async fn describe(store: &CrashStore, accounts: &CrashAccounts) -> Result<String> {
    let open = store.open().await?;
    // The servers still run: an entry may be newer than the balance that was read before it.
    let state = read_state(&*open.ledger, |_, _| Ok(())).await?;
    open.close().await;
    let entries = |account: &CrashAccount| entries_of(&state, &account.account_wallet);
    let by_client: Vec<_> = accounts.clients.iter().map(entries).collect();
    Ok(format!("entries by client: {by_client:#?}"))
}

/// Checks that a balance equals the sum of its entries.
fn check_balance(balance: &Balance, entries: &[Entry]) -> Result<()> {
    let wrong = audit::compare(balance, entries);
    ensure!(wrong.as_ref().is_ok_and(Vec::is_empty), "{}: {wrong:?}", balance.wallet);
    Ok(())
}

/// All wallets with all their entries, after this check of each.
async fn read_state(
    ledger: &dyn Ledger,
    check_wallet: impl Fn(&Balance, &[Entry]) -> Result<()>,
) -> Result<ObservedState> {
    let mut state = ObservedState::new();
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
            check_wallet(&balance, &entries)?;
            state.insert(balance.wallet.clone(), (balance, entries));
        }
        let Some(next) = wallets.next else { return Ok(state) };
        page = PageRequest { after: Some(next), ..PageRequest::first() };
    }
}

/// Checks that each hold ends at most once, with exactly its amount.
fn check_holds(state: &ObservedState) -> Result<()> {
    for (wallet, (_, entries)) in state {
        let mut holds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for entry in entries {
            let (held, ended) = holds.entry(&entry.cause).or_default();
            match entry.kind {
                EntryKind::Held => *held += entry.amount,
                EntryKind::Spent | EntryKind::Returned | EntryKind::Expired => *ended += entry.amount,
                EntryKind::Charged => (*held, *ended) = (*held + entry.amount, *ended + entry.amount),
                EntryKind::Granted | EntryKind::Revoked { .. } => {}
            }
        }
        for (cause, (held, ended)) in holds {
            // Every call of these tests costs one credit.
            ensure!(
                held <= 1 && (ended == 0 || ended == held),
                "{wallet}: {cause}: {held} held, {ended} ended"
            );
        }
    }
    Ok(())
}

/// Checks what a server reported as used: everything spent, and at most the unknown charges in addition.
fn check_figures(history: &CallHistory, reported: u64, spent: u64, unknown: u64) -> Result<()> {
    let is_plausible = (spent..=spent + unknown).contains(&reported);
    ensure!(
        is_plausible,
        "client {} was shown {reported} as used: {spent} is spent, {unknown} unknown",
        history.client
    );
    Ok(())
}

/// What a wallet has spent, by video, and what it holds.
fn read_spent(state: &ObservedState, wallet: &WalletId) -> Result<(BTreeMap<String, u64>, u64)> {
    let mut paid: BTreeMap<String, u64> = BTreeMap::new();
    let Some((balance, entries)) = state.get(wallet) else { return Ok((paid, 0)) };
    for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
        let video = entry.memo.strip_prefix("transcript video_site/");
        ensure!(video.is_some(), "{wallet} was charged for {:?}", entry.memo);
        *paid.entry(video.unwrap_or_default().to_owned()).or_default() += entry.amount;
    }
    Ok((paid, balance.pools.iter().map(|pool| pool.held).sum()))
}

/// The entries of a wallet, a line each.
fn entries_of(state: &ObservedState, wallet: &WalletId) -> Vec<String> {
    let entries = state.get(wallet).map(|(_, entries)| entries.as_slice()).unwrap_or_default();
    let line = |entry: &Entry| {
        format!("{} {:?} {} {} {}", entry.at, entry.kind, entry.amount, entry.memo, entry.cause)
    };
    entries.iter().map(line).collect()
}

/// Checks that every delivered response was charged once, and at most the interrupted requests in addition.
fn compare(
    payer: &str,
    history: &CallHistory,
    paid: &BTreeMap<String, u64>,
    reported: &BTreeMap<String, CallTally>,
) -> Result<()> {
    let videos: BTreeSet<&String> = paid.keys().chain(reported.keys()).collect();
    for video in videos {
        let count = paid.get(video).copied().unwrap_or(0);
        let tally = reported.get(video).cloned().unwrap_or_default();
        let (least, most) = tally.bounds(&history.addresses);
        ensure!(
            (least..=most).contains(&count),
            "{payer} was charged {count} times for {video}, with {tally:?}"
        );
    }
    Ok(())
}

/// Checks that no video was charged more often than it was fetched, neither to keys nor to the service wallet.
fn check_fetches(state: &ObservedState, charged: &BTreeMap<String, u64>, proxy: &ReplayProxy) -> Result<()> {
    let mut fetches: BTreeMap<String, u64> = BTreeMap::new();
    for request in proxy.requests() {
        let body: Option<serde_json::Value> = serde_json::from_slice(&request.body).ok();
        if let Some(video) = body.as_ref().and_then(|body| body["videoId"].as_str()) {
            *fetches.entry(video.to_owned()).or_default() += 1;
        }
    }
    let (service, _) = read_spent(state, &WalletId::new(SERVICE))?;
    for (payer, counts) in [("keys", charged), ("the service", &service)] {
        for (video, count) in counts {
            let fetches = fetches.get(video).copied().unwrap_or(0);
            ensure!(*count <= fetches, "{video}: {count} charges of {payer}, {fetches} fetches");
        }
    }
    Ok(())
}

/// Checks that every delivered or charged transcript is archived with its exact text.
async fn check_archived(open: &OpenStore, videos: impl Iterator<Item = &String>) -> Result<()> {
    for video in videos {
        let id = VideoId::new(Platform::YouTube, video)?;
        let found = open.archive.find(&id, &TrackSelector::Default, far_future()).await?;
        let FindOutcome::Transcript(stored) = found else {
            anyhow::bail!("{video} was delivered, but is not archived: {found:?}")
        };
        let words = &stored.transcript.segments[0].text;
        ensure!(*words == format!("This is {video}."), "{video} is archived with another text: {words}");
    }
    Ok(())
}
