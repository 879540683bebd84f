//! What has ended does not stay for ever.

use std::path::Path;

use sqlx::{ConnectOptions, Row};
use transcript_core::{
    Timestamp,
    accounts::{MailIntent, Outbox},
    archive::{Absence, Archive, Found, Lease, Wish},
    ids::Holder,
    video::{Platform, VideoId},
};

use crate::common::moment;

const HOUR: i64 = 3_600_000;

async fn count(file: &Path, statement: &'static str) -> i64 {
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    sqlx::query(statement).fetch_one(&mut other).await.unwrap().get(0)
}

fn video(number: u32) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("{number:011}")).unwrap()
}

fn lease(number: u32, now: Timestamp) -> Lease {
    let until = Timestamp::from_millis(now.as_millis() + 60_000);
    Lease { video: video(number), wish: Wish::Default, holder: Holder::new("h"), now, until }
}

#[tokio::test]
async fn ended_leases_and_absences_go_with_later_claims() {
    let (archive, folder) = crate::archive().await;
    let absence = |number, until| Absence {
        video: video(number),
        wish: Wish::Default,
        reason: "no_captions".to_owned(),
        message: "nothing".to_owned(),
        asked: vec!["captions".to_owned()],
        until,
    };
    for number in 0..20 {
        archive.claim(lease(number, moment(0))).await.unwrap();
        archive.keep_absence(absence(number, moment(60_000))).await.unwrap();
    }
    archive.keep_absence(absence(50, moment(3 * HOUR))).await.unwrap();
    let file = folder.path().join("archive.db");
    for (number, now, leases, absences) in
        [(30, HOUR, 21, 21), (31, 2 * HOUR, 6, 5), (32, 2 * HOUR, 3, 1), (33, 2 * HOUR, 4, 1)]
    {
        archive.claim(lease(number, moment(now))).await.unwrap();
        let found = (
            count(&file, "SELECT count(*) FROM leases").await,
            count(&file, "SELECT count(*) FROM absences").await,
        );
        assert_eq!(found, (leases, absences), "{number}");
    }
    let lasting = archive.find(&video(50), &Wish::Default, moment(2 * HOUR)).await.unwrap();
    assert!(matches!(lasting, Found::Absent(_)), "{lasting:?}");
}

#[tokio::test]
async fn mails_that_were_done_long_ago_go_with_later_ones() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    let mail = |number: i64| MailIntent {
        id: format!("m{number}"),
        kind: "verify".to_owned(),
        to: "a@example.org".to_owned(),
        attempts: 0,
    };
    for number in 0..20 {
        store.queue(mail(number), moment(0)).await.unwrap();
    }
    for number in 0..18 {
        store.done(&format!("m{number}"), None).await.unwrap();
    }
    for (number, now, left) in [(20, 100 * HOUR, 21), (21, 200 * HOUR, 6), (22, 200 * HOUR, 5)] {
        store.queue(mail(number), moment(now)).await.unwrap();
        assert_eq!(count(&file, "SELECT count(*) FROM outbox").await, left, "{number}");
    }
    let due = store.due(&Holder::new("h"), moment(100 * HOUR), moment(101 * HOUR), 10).await.unwrap();
    assert_eq!(due.iter().map(|mail| mail.id.as_str()).collect::<Vec<_>>(), ["m18", "m19", "m20"]);
}
