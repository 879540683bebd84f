//! Background compaction by a server (`archive.compact_after`), next to a damaged transcript.

use anyhow::Result;

use super::{
    super::super::{
        harness::{borrow_settings, wait_until},
        operations::ObservedServer,
    },
    DamageFixture, StoredAs, VIDEOS,
};

const MONTH_MS: u64 = 31 * 24 * 60 * 60 * 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn background_compaction_moves_old_transcripts_only() -> Result<()> {
    for form in [StoredAs::File, StoredAs::Postgres] {
        let fixture = DamageFixture::new(form, &VIDEOS)?;
        let [old, other_old, damaged, ..] = VIDEOS;
        for video in [old, other_old, damaged] {
            let age = format!("stored_at = stored_at - {MONTH_MS}");
            fixture.query(&format!("UPDATE transcripts SET {age} WHERE video = 'video_site/{video}'"))?;
        }
        fixture.flip(damaged)?;
        let bodies = "SELECT count(*) FROM bodies";
        assert_eq!(fixture.query(bodies)?.trim(), "5");
        let settings = fixture.settings();
        let off = [borrow_settings(&settings), vec![("VERBATIM_ARCHIVE__COMPACT_AFTER", "off")]].concat();
        let idle = ObservedServer::start(&fixture.data, &off).await?;
        let before = idle.server.get(&format!("/api/transcript?v={old}")).await?;

        let data = tempfile::TempDir::new()?;
        let folder = if form == StoredAs::File { &fixture.data } else { &data };
        let server = ObservedServer::start(folder, &borrow_settings(&settings)).await?;
        wait_until("the old transcripts are not compact", async || {
            Ok(server.scrape().await?.sum("verbatim_archive_compacted_total", &[]) == 2.0)
        })
        .await?;
        let figures = server.scrape().await?;
        assert!(figures.has("verbatim_archive_compaction_saved_bytes_total"));
        assert_eq!(fixture.query(bodies)?.trim(), "3", "two are young, one is damaged");
        server.wait_for_log(&format!("video=video_site/{damaged}")).await?;
        let path = format!("/api/transcript?v={old}");
        let after = server.server.get(&path).await?;
        assert_eq!(after.json()["transcript"], before.json()["transcript"]);
        assert_eq!(idle.scrape().await?.sum("verbatim_archive_compacted_total", &[]), 0.0);
    }
    Ok(())
}
