//! Database files with records of every kind.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Result, ensure};
use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive, CompactRequest, PutRequest, TrackSelector, VectorsKey},
    ids::{GrantId, HoldId, WalletId},
    ledger::{GrantRequest, HoldRequest, Ledger, Leg, Pool, RevokeRequest, SettleRequest, Terms},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoMetadata, Word},
    video::{Platform, VideoId},
};

use crate::server::harness::{create_keys, sqlite};

const NOW: i64 = 1_795_132_800_000;
/// Holds that end after this time stay open and unchanged during the test. Later ones would be shortened, as those of a
/// wrong clock.
const OPEN: Duration = Duration::from_secs(14 * 60);

/// Texts that are difficult for databases, each for another reason.
const TEXTS: [&str; 8] =
    ["plain", "\0", "a\0b", "\u{1A}", "\u{1A}0\u{1A}1", "\"'\\$1", "\u{1F600}\u{FFFF}", "null"];

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

/// Fills both files of a folder: `size` holds, a quarter as many videos, and a few records of every other kind.
pub(super) async fn fill(data: &TempDir, size: u32) -> Result<()> {
    create_keys(data, 3)?;
    insert_accounts(data)?;
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    fill_ledger(&store, size).await?;
    store.close().await;
    let archive = SqliteArchive::open(SqliteOptions::new(data.path().join("archive.db"))).await?;
    fill_archive(&archive, size / 4).await?;
    compact(&archive, i64::from(size / 8).max(2)).await?;
    archive.close().await;
    insert_archive_rows(data)
}

fn insert_accounts(data: &TempDir) -> Result<()> {
    let statements = "
        INSERT INTO accounts (id, version, email, wallet, plan, anchor, paid_through, customer, subscription, blocked,
            erased_at, paid_from, paid_credits, paid_monthly_credits, paid_anchor_before,
            prepaid_until)
        VALUES
            ('acc-ann', 3, 'ann@example.org', 'account-ann', 'pro', 1795132800000, 1797724800000, 'cus_1', 'sub_1', 0,
                NULL, 1795132800000, 10000, 10000, 1795000000000, 1795219200000),
            ('acc-bob', 1, 'bob@example.org', 'account-bob', 'free', 1795132800001, NULL, NULL, NULL, 1, NULL, NULL,
                NULL, NULL, NULL, NULL),
            ('acc-gone', 7, NULL, 'account-gone', 'free', 1, NULL, NULL, NULL, 0, 1795132800002, NULL, NULL, NULL, NULL,
                NULL);
        INSERT INTO keys (id, digest, hint, created_at, revoked_at, account) VALUES
            ('key-ann', randomblob(32), 'vba_abcd', 1795132800000, NULL, 'acc-ann'),
            ('key-ann-old', randomblob(32), 'vba_efgh', 1795132700000, 1795132800000, 'acc-ann');
        INSERT INTO keys (id, digest, hint, created_at, wallet, label, email, subject, entitled_until, expires_at, quota,
            quota_period, requests, last_request_at, day_start, day_requests, month_start, month_requests) VALUES
            ('key-plus', randomblob(32), 'vbk_abcd', 1795132800000, 'key-plus', 'a ' || char(9) || 'label', 'e@x.org',
                'sub-1', 1797724800000, 1797724800001, 1000, 'day', 9, 1795132800005, 1795132800000, 2, 1793491200000, 5);
        INSERT INTO admin_tokens VALUES ('ann', randomblob(32), 1, NULL), ('ben', randomblob(32), 2, 3);
        INSERT INTO tokens VALUES (randomblob(32), 'ann@example.org', 1795132800000, 1795132700000, 'key-ann', 1),
            (randomblob(32), 'cleo@example.org', 1795132800000, NULL, NULL, NULL),
            (randomblob(32), 'ann@example.org', 1795132800000, 1795132700000, 'key-ann', 0);
        INSERT INTO secrets VALUES ('networks', randomblob(32)), ('empty', x'');
        INSERT INTO sessions VALUES (randomblob(32), 's1', 'acc-ann', 'Firefox ' || char(10), 1, 2, 1797724800000);
        INSERT INTO sign_in_links VALUES (randomblob(32), 'acc-ann', 1797724800000, NULL),
            (randomblob(32), 'acc-bob', 5, randomblob(32));
        INSERT INTO limits VALUES ('api/acc-ann', 1795132860000, '1795132800000 1'), ('mint/x', 5, '');
        INSERT INTO replies VALUES
            ('r1', randomblob(32), 'h1', 1, 2, 200, '[[\"x-cache\",\"HIT\"]]', randomblob(70000)),
            ('r2', randomblob(32), 'h2', 1795132860000, 1795219200000, NULL, NULL, NULL),
            ('r3', x'', 'h3', 1, 2, 204, '[]', x'');
        INSERT INTO outbox (id, kind, recipient, attempts, due_at, done_at, language) VALUES
            ('m1', 'verify', 'ann@example.org', 0, 1795132800000, NULL, 'de'),
            ('m2', 'verify', NULL, 3, NULL, 1795132800000, NULL);
        INSERT INTO orders VALUES
            ('o1', 2, 'acc-ann', 'pack', 'pack-500', 500, 900, 'usd', 'fulfilled', 'cs_1', 1795132800000, '[100,200]', 300,
                'ja', 850),
            ('o2', 1, 'acc-ann', 'plan', 'pro', 10000, 2900, 'usd', 'open', NULL, 1795132800001, '[]', 0,
                NULL, NULL);";
    sqlite(&data.path().join("verbatim.db"), statements).map(drop)
}

/// Holds with two legs and two pools, settled, spent in one step, left open and expired; grants and revocations.
async fn fill_ledger(store: &SqliteStore, size: u32) -> Result<()> {
    for (index, text) in TEXTS.into_iter().chain(["account-ann", "service"]).enumerate() {
        let (wallet, memo) = (WalletId::new(text), text.to_owned());
        let id = GrantId::new(format!("grant {text}"));
        let _ = store
            .grant(GrantRequest { id: id.clone(), wallet, amount: 1_000_000, now: at(index as i64), memo })
            .await?;
        let revoke = RevokeRequest {
            id: GrantId::new(format!("back {text}")),
            grant: id,
            amount: 5,
            now: at(1),
            memo: text.to_owned(),
        };
        let _ = store.revoke(revoke).await?;
    }
    let open_until = Timestamp::from(SystemTime::now()).plus(OPEN);
    for n in 0..size {
        let text = TEXTS[n as usize % TEXTS.len()];
        let month = Pool::Allowance { bucket: format!("2026-{:02}", n % 12 + 1), limit: 3 };
        let leg = |wallet: &str, pools| Leg {
            wallet: WalletId::new(wallet),
            terms: Terms { pools, resets_at: None },
            amount: 1 + u64::from(n % 5),
        };
        let mut legs = vec![leg(if n % 3 == 0 { "account-ann" } else { text }, vec![month, Pool::Purchased])];
        if n % 4 == 0 {
            legs.push(leg("service", vec![Pool::Purchased]));
        }
        let id = HoldId::new(format!("hold {n} {text}"));
        let expires_at = if n % 7 == 0 { at(10) } else { open_until };
        let spent: Vec<u64> = legs.iter().map(|leg| leg.amount.min(u64::from(n % 3))).collect();
        let request = HoldRequest { id: id.clone(), legs, now: at(2), expires_at, memo: text.to_owned() };
        if n % 13 == 0 {
            let _ = store.spend(request).await?;
            continue;
        }
        let _ = store.hold(request).await?;
        if n % 7 != 0 && n % 11 != 0 {
            let _ = store.settle(SettleRequest { id, spent, now: at(3) }).await?;
        }
    }
    // Everything overdue: opening the files would expire the rest.
    while store.expire(at(20), 1_000).await? > 0 {}
    Ok(())
}

/// Videos with several tracks, languages and revisions.
async fn fill_archive(archive: &SqliteArchive, videos: u32) -> Result<()> {
    for n in 0..videos.max(4) {
        let platform = if n % 5 == 0 { Platform::TikTok } else { Platform::YouTube };
        let id = if n % 5 == 0 { format!("70000000000000{n:05}") } else { format!("moved-{n:05}") };
        let video = VideoId::new(platform, &id)?;
        let english = TrackInfo::new(LanguageTag::english(), TrackKind::Human);
        let german = TrackInfo {
            name: Some(TEXTS[n as usize % TEXTS.len()].to_owned()),
            original: true,
            ..TrackInfo::new(LanguageTag::from_canonical("de"), TrackKind::Generated)
        };
        for revision in 0..=(n % 3) {
            let track = if n % 2 == 0 { &english } else { &german };
            let text = |index: u32| format!("{index} of {n}: {}", TEXTS[(n + index) as usize % TEXTS.len()]);
            let segments = (0..10 + n % 40).map(|index| {
                let start = u64::from(index) * 1_000;
                let word = Word::new((index + revision).to_string(), start, 90 + u64::from(n));
                Segment {
                    words: if n % 4 < 2 { vec![word] } else { Vec::new() },
                    ..Segment::new(text(index + revision), start, 900 + u64::from(revision))
                }
            });
            let transcript = Transcript {
                video: video.clone(),
                title: Some(text(n)),
                author: None,
                duration_ms: Some(61_000),
                track: track.clone(),
                source: "youtube-captions".to_owned(),
                segments: segments.collect(),
            };
            let selectors = vec![TrackSelector::Default, TrackSelector::Language(track.language.clone())];
            let request = PutRequest {
                video: video.clone(),
                selectors: selectors.into_iter().take(1 + (n % 2) as usize).collect(),
                transcript: Arc::new(transcript),
                known_tracks: vec![english.clone(), german.clone()],
                metadata: VideoMetadata {
                    description: (n % 3 > 0).then(|| text(n)),
                    ..VideoMetadata::default()
                },
                parser_version: 1 + n % 2,
                replace: revision > 0,
                now: at(i64::from(n)).plus(Duration::from_secs(revision.into())),
            };
            let stored = archive.put(request).await?;
            if n % 2 == 0 {
                let (video, content_sha256) = (video.clone(), stored.content_sha256);
                let key = VectorsKey { video, content_sha256, texts_sha256: [n as u8; 32] };
                archive.put_vectors(&key, format!("{n} {revision}").into_bytes()).await?;
            }
        }
    }
    Ok(())
}

async fn compact(archive: &SqliteArchive, older_than: i64) -> Result<()> {
    let mut page = PageRequest::first();
    let mut compacted = 0;
    loop {
        let some = archive.compact(CompactRequest { stored_before: at(older_than), page }).await?;
        compacted += some.compacted;
        match some.next {
            Some(next) => page = PageRequest { after: Some(next), ..PageRequest::first() },
            None => break,
        }
    }
    ensure!(compacted > 0, "nothing was compacted");
    Ok(())
}

fn insert_archive_rows(data: &TempDir) -> Result<()> {
    let statements = "
        INSERT INTO absences VALUES ('video_site/nothing-here', 'default', 'no_captions', 'None.', '[\"a\"]', 9),
            ('video_site/nothing-here', 'en', 'gone', 'Gone.', '[]', 1795132800000);
        INSERT INTO leases VALUES ('video_site/nothing-here', 'default', 'server-1', 1795132800000);
        INSERT INTO links VALUES ('vm.tiktok.com/ZMplain1', 'short_video/7000000000000000001');
        INSERT INTO withdrawals VALUES ('video_site/moved-00001', 1795132800000);";
    sqlite(&data.path().join("archive.db"), statements).map(drop)
}
