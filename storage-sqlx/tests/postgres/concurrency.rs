//! Time of the database, and its leader leases.

use transcript_core::ids::Holder;

use crate::common::timestamp;

#[tokio::test]
async fn postgres_now_returns_database_time() {
    let (store, database) = crate::store().await;
    let archive = crate::archive_in(&database).await;
    let (before, between, after) =
        (store.now().await.unwrap(), archive.now().await.unwrap(), store.now().await.unwrap());
    assert!(before <= between && between <= after);
}

#[tokio::test]
async fn leader_lease_of_corrected_clock_is_free() {
    let (store, _database) = crate::store().await;
    for (holder, now, leads) in
        [("a", 86_400_000, true), ("b", 86_400_000, false), ("b", 0, true), ("a", 0, false)]
    {
        let (now, end) = (timestamp(now), timestamp(now + 60_000));
        let outcome = store.try_lead("sweep", &Holder::new(holder), now, end).await.unwrap();
        assert_eq!(outcome, leads, "{holder} at {now}");
    }
}

#[cfg(feature = "search")]
#[tokio::test]
async fn undecodable_track_is_indexed_for_search() {
    let (index, (archive, database)) = crate::search_index().await;
    crate::common::changed::check_undecodable_track_is_indexed(archive, index, async |damage| {
        crate::run_on_archive(&database, damage).await;
    })
    .await;
}
