//! Requests, responses and errors.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::ReplayProxy;

use super::{
    call, call_with, delayed, gated, job, results, serve, start_job, start_platform, videos, wait_for_status,
};
use crate::server::{
    harness::ServerFixture,
    platform::fetch_count,
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

#[tokio::test(flavor = "multi_thread")]
async fn job_delivers_in_order_and_charges_only_transcripts() -> Result<()> {
    let videos = videos("order-", 4);
    let proxy = start_platform(&videos, &[&videos[2]], delayed(5))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let link = format!("https://youtu.be/{}?t=4", videos[0]);
    let urls = json!([videos[0], "https://example.org/", videos[1], link, videos[2], videos[3], videos[1]]);
    let headers = [("idempotency-key", "course-1")];
    let body = json!({ "urls": urls });
    let first = call_with(&server, &key, Method::POST, "", &headers, &body).await?;
    assert_eq!(first.status, 202, "{}", first.text());
    let created = first.json();
    assert_eq!(created["counts"]["total"], 5, "links of one video are one item: {created}");
    assert_eq!(created["counts"]["failed"], 1, "a link without a video has failed: {created}");
    assert_eq!(created["credits"], json!({ "spent": 0, "estimate": 4, "remaining": 200 }));
    let id = created["job_id"].as_str().context("no job_id")?;
    assert!(created["poll_url"].as_str().is_some_and(|url| url.ends_with(&format!("/api/v1/jobs/{id}"))));
    let again = call_with(&server, &key, Method::POST, "", &headers, &body).await?;
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (202, "true"));
    assert_eq!(again.json()["job_id"], id);

    let done = wait_for_status(&server, &key, id, "completed").await?;
    let counts = json!({ "total": 5, "queued": 0, "running": 0, "done": 3, "failed": 2, "skipped": 0 });
    assert_eq!(done["counts"], counts);
    assert_eq!(done["credits"], json!({ "spent": 3, "estimate": 0, "remaining": 197 }));
    assert!(done["ended_at"].is_string() && done["pause_reason"].is_null(), "{done}");
    assert_eq!(remaining_credits(&server, &key).await?, 197);

    let lines = results(&server, &key, id).await?;
    let found: Vec<_> = lines
        .iter()
        .map(|line| (line["index"].clone(), line["status"].clone(), line["reason"].clone()))
        .collect();
    let expected = [
        (0, "done", Value::Null),
        (1, "failed", json!("invalid_url")),
        (2, "done", Value::Null),
        (3, "failed", json!("no_captions")),
        (4, "done", Value::Null),
    ];
    assert_eq!(found, expected.map(|(index, status, reason)| (json!(index), json!(status), reason)));
    assert_eq!(lines[1]["url"], "https://example.org/");
    let transcript = server.get_as(&key, &format!("/api/v1/transcript?video_id={}", videos[0])).await?;
    assert_eq!(lines[0]["transcript"], transcript.json(), "as the endpoint of one transcript responds");

    let path = format!("/{id}/results?limit=2&cursor=");
    let (mut cursor, mut pages) = (String::new(), Vec::new());
    loop {
        let path = if cursor.is_empty() { path.replace("&cursor=", "") } else { format!("{path}{cursor}") };
        let page = call(&server, &key, Method::GET, &path, &Value::Null).await?.json();
        pages.extend(page["items"].as_array().context("no items")?.clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, lines);
    assert!(videos.iter().all(|video| fetch_count(&proxy, video) >= 1));
    assert_eq!(fetch_count(&proxy, &videos[0]), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_items_name_languages_like_transcripts_after_restart() -> Result<()> {
    let videos = videos("german-", 1);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let mut server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut found = Vec::new();
    for lang in ["de", "en-GB"] {
        let body = json!({ "urls": videos, "lang": lang });
        let created = call(&server, &key, Method::POST, "", &body).await?.json();
        let id = created["job_id"].as_str().context("no job_id")?.to_owned();
        wait_for_status(&server, &key, &id, "completed").await?;
        let items = results(&server, &key, &id).await?;
        let path = format!("/api/v1/transcript?video_id={}&lang={lang}", videos[0]);
        let one = server.get_as(&key, &path).await?.json();
        found.push((id, items[0].clone(), path, one));
        let fetches = fetch_count(&proxy, &videos[0]);
        server = restart(server, &data, &proxy)?;
        for (id, item, path, one) in &found {
            assert_eq!(&results(&server, &key, id).await?[0], item);
            assert_eq!(&server.get_as(&key, path).await?.json(), one);
        }
        assert_eq!(fetch_count(&proxy, &videos[0]), fetches, "a restart fetches nothing");
    }
    let english = json!([{ "tag": "en", "name": "English", "kind": "manual", "original": false }]);
    let (_, missing, _, refused) = &found[0];
    assert_eq!((&missing["status"], &missing["reason"]), (&json!("failed"), &json!("no_captions")));
    assert_eq!((&missing["languages"], &refused["languages"]), (&english, &english), "{missing} {refused}");
    let (_, done, _, one) = &found[1];
    assert_eq!((&done["transcript"], done.get("languages")), (one, None));
    let language = |field: &str| done["transcript"][field].clone();
    assert_eq!((language("requested_language"), language("language")), (json!("en-GB"), json!("en")));
    assert_eq!(language("languages"), english);
    Ok(())
}

/// Stops a server, and starts it with the same data.
fn restart(server: ServerFixture, data: &TempDir, proxy: &ReplayProxy) -> Result<ServerFixture> {
    drop(server);
    serve(data, proxy, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn job_of_another_account_is_404() -> Result<()> {
    let videos = videos("owner-", 1);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = serve(&data, &proxy, &[("VERBATIM_LIMITS__JOBS_PER_ACCOUNT", "3")])?;
    let ann = create_account(&server, &mut outbox, "ann@example.org").await?;
    let bob = create_account(&server, &mut outbox, "bob@example.org").await?;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(start_job(&server, &ann, &videos).await?);
    }
    for (method, path) in [
        (Method::GET, format!("/{}", ids[0])),
        (Method::GET, format!("/{}/results", ids[0])),
        (Method::DELETE, format!("/{}", ids[0])),
        (Method::GET, "/job_unknown".to_owned()),
        (Method::GET, "/%ff".to_owned()),
        (Method::DELETE, "/%ff".to_owned()),
        (Method::GET, "/%ff/results".to_owned()),
        (Method::GET, "/%ff/deliveries".to_owned()),
        (Method::GET, format!("/{}", "x".repeat(500))),
    ] {
        let reply = call(&server, &bob, method.clone(), &path, &Value::Null).await?;
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.text());
        assert_eq!(reply.json()["code"], 404);
    }
    for id in &ids {
        wait_for_status(&server, &ann, id, "completed").await?;
    }
    let list = call(&server, &ann, Method::GET, "?limit=1", &Value::Null).await?.json();
    assert_eq!(list["jobs"][0]["job_id"], json!(ids[1]), "the newest first: {list}");
    let cursor = list["next_cursor"].as_str().context("no next page")?;
    let rest = call(&server, &ann, Method::GET, &format!("?cursor={cursor}"), &Value::Null).await?.json();
    assert_eq!((&rest["jobs"][0]["job_id"], &rest["next_cursor"]), (&json!(ids[0]), &Value::Null));
    let other = call(&server, &bob, Method::GET, "", &Value::Null).await?.json();
    assert_eq!(other["jobs"], json!([]));
    assert_eq!(job(&server, &ann, &ids[1]).await?["credits"]["spent"], 1, "each job pays for its delivery");
    assert_eq!(fetch_count(&proxy, &videos[0]), 1, "of one fetch");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_beyond_unfinished_limit_is_429() -> Result<()> {
    let videos = videos("limit-", 1);
    let gate = Arc::new(Semaphore::new(0));
    let proxy = start_platform(&videos, &[], gated(&gate))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_LIMITS__JOBS_PER_ACCOUNT", "1")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let first = start_job(&server, &key, &videos).await?;
    let refused = call(&server, &key, Method::POST, "", &json!({ "urls": videos })).await?;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, "60"), "{}", refused.text());
    gate.add_permits(1_000);
    wait_for_status(&server, &key, &first, "completed").await?;
    start_job(&server, &key, &videos).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_bad_requests_are_400_in_v1_form() -> Result<()> {
    let proxy = start_platform(&[], &[], delayed(0))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_LIMITS__ITEMS_PER_JOB", "3")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    for (body, start) in [
        (json!({}), "urls: "),
        (json!({ "urls": [] }), "urls: "),
        (json!({ "urls": "aaaaaaaaaaa" }), "urls: "),
        (json!({ "urls": [1] }), "urls: "),
        (json!({ "urls": ["a", "b", "c", "d"] }), "urls: it has 4 links; at most 3"),
        (json!({ "urls": ["a"], "lang": "not a language" }), "lang: "),
        (json!({ "urls": ["a"], "lang": 7 }), "lang: "),
        (json!({ "urls": ["a"], "callback_url": "https://localhost/" }), "callback_url: "),
        (json!({ "urls": ["a"], "callback_url": 7 }), "callback_url: "),
        (json!({ "urls": ["a"], "extra": 1 }), "body: "),
        (json!({ "urls": ["a"], "playlist": "PL0123456789abcdef" }), "body: it has more than one of"),
        (json!({ "playlist": "PL0123456789abcdef", "channel": "@name" }), "body: it has more than one of"),
        (json!({ "urls": null, "playlist": null }), "urls: it is missing"),
        (json!({ "urls": ["a"], "limit": 1 }), "limit: it is only for"),
        (json!({ "urls": ["a"], "since": "2026-01-01" }), "since: it is only for"),
        (json!({ "playlist": 7 }), "playlist: it must be a string"),
        (json!({ "playlist": "" }), "playlist: "),
        (json!({ "playlist": "https://www.youtube.com/playlist?list=WL" }), "playlist: "),
        (
            json!({ "playlist": "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=RDdQw4w9WgXcQ" }),
            "playlist: ",
        ),
        (json!({ "playlist": "https://youtu.be/dQw4w9WgXcQ" }), "playlist: "),
        (json!({ "playlist": "https://www.tiktok.com/@name" }), "playlist: "),
        (json!({ "playlist": "@name" }), "playlist: it names a channel"),
        (json!({ "search": "tide mills" }), "limit: it is missing"),
        (json!({ "search": " ", "limit": 5 }), "search: "),
        (json!({ "search": "tide mills", "limit": 5, "channel": "@name" }), "body: it has more than one of"),
        (
            json!({ "channel": "https://www.youtube.com/results?search_query=a" }),
            "channel: it names a search",
        ),
        (json!({ "channel": "PL0123456789abcdef" }), "channel: it names a playlist"),
        (json!({ "channel": "no channel" }), "channel: "),
        (json!({ "channel": "@name", "limit": 0 }), "limit: it must be a number from 1 to 3"),
        (json!({ "channel": "@name", "limit": 4 }), "limit: it must be a number from 1 to 3"),
        (json!({ "channel": "@name", "limit": "2" }), "limit: it must be a whole number"),
        (json!({ "channel": "@name", "since": "last week" }), "since: it must be a date"),
        (json!({ "channel": "@name", "since": 7 }), "since: "),
        (json!([]), "body: "),
    ] {
        let reply = call(&server, &key, Method::POST, "", &body).await?;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        let error = reply.json();
        assert_eq!(error["code"], 400);
        assert!(error["error"].as_str().is_some_and(|text| text.starts_with(start)), "{body}: {error}");
    }
    for path in [
        "?limit=0",
        "?limit=x",
        "?limit=%2B5",
        "?cursor=x",
        "?Limit=5",
        "/job_a/results?limit=101",
        "/job_a/results?cursor=-1",
        "/job_a/results?Format=srt",
    ] {
        let reply = call(&server, &key, Method::GET, path, &Value::Null).await?;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
    }
    let reply = call(&server, "vba_unknown", Method::GET, "", &Value::Null).await?;
    assert_eq!(reply.status, 401);
    let list = call(&server, &key, Method::GET, "", &Value::Null).await?.json();
    assert_eq!(list["jobs"], json!([]), "no job was stored");
    Ok(())
}
