//! Requests for a damaged transcript: an error that names the cause, no charge, no fetch.

use anyhow::Result;
use serde_json::json;

use super::{DamageFixture, StoredAs, VIDEOS, check_names};
use crate::server::{
    harness::{ServerFixture, borrow_settings, create_keys, wait_until},
    platform::fetch_count,
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

const DAMAGED: &str = VIDEOS[0];

async fn check_lookups(
    fixture: &DamageFixture,
    server: &ServerFixture,
    key: &str,
    account: &str,
) -> Result<()> {
    let path = format!("/api/transcript?v={DAMAGED}");
    // A cached response never hides the damage, and the second request would be cached.
    for _ in 0..3 {
        for reply in [server.get(&path).await?, server.get_as(key, &path).await?] {
            let body = reply.json();
            assert_eq!((reply.status.as_u16(), &body["available"]), (200, &json!(false)), "{body}");
            assert_eq!(body["failureReason"], "fetch_error", "{body}");
            let message = body["failureMessage"].as_str().unwrap_or_default();
            assert!(message.contains("damaged") && message.contains("nothing was charged"), "{message}");
            assert_eq!(reply.header("cache-control"), "no-store");
        }
    }
    let plain = server.get(&format!("{path}&format=text")).await?;
    assert!(plain.status == 404 && plain.text().contains("damaged"), "{}", plain.text());
    let page = server.get(&format!("/watch/video_site/{DAMAGED}")).await?;
    assert!(!page.text().contains("The sheep"), "{}", page.text());
    let sold = server.get_as(account, &format!("/api/v1/transcript?video_id={DAMAGED}")).await?;
    assert!(sold.status == 500 && sold.text().contains("damaged"), "{}", sold.text());
    let question = json!({ "video_id": DAMAGED, "message": "sheep" }).to_string();
    let answered = server.post_as(account, "/api/v1/chat", question).await?;
    assert_eq!(answered.status, 500, "{}", answered.text());
    assert_eq!(fetch_count(&fixture.proxy, DAMAGED), 1, "only the first, which archived it");
    assert_eq!(remaining_credits(server, account).await?, 200);
    let me = server.get_as(key, "/api/keys/me").await?.json();
    assert_eq!(me["used"], 0, "{me}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_of_damaged_transcript_fails_without_charge() -> Result<()> {
    for form in [StoredAs::File, StoredAs::ColdFile] {
        let fixture = DamageFixture::new(form, &[DAMAGED])?;
        let log = fixture.data.path().join("log");
        let settings = fixture.settings();
        let server = ServerFixture::start_with_log(&fixture.data, &borrow_settings(&settings), &log)?;
        let key = create_keys(&fixture.data, 1)?.remove(0);
        let account = create_account(&server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
        fixture.flip(DAMAGED)?;
        check_lookups(&fixture, &server, &key, &account).await?;
        wait_until("the log does not name the video", async || {
            Ok(std::fs::read_to_string(&log)?.contains(DAMAGED))
        })
        .await?;
        check_names(&std::fs::read_to_string(&log)?, DAMAGED);

        fixture.expect(&["archive", "refresh", DAMAGED], "", 0)?;
        let path = format!("/api/transcript?v={DAMAGED}");
        let repaired = server.get(&path).await?.json();
        assert_eq!(repaired["transcript"][1]["text"], "The sheep keep the grass short.", "{repaired}");
        let sold = server.get_as(&account, &format!("/api/v1/transcript?video_id={DAMAGED}")).await?;
        assert_eq!(sold.status, 200, "{}", sold.text());
        assert_eq!(remaining_credits(&server, &account).await?, 199);
    }
    Ok(())
}
