//! `POST /mcp` of the built server.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    LONG, SHORT, archive,
    client::{REVISIONS, call, http_target, paged_call, pages, run_calls, text},
    long_words, words,
};
use crate::{
    server::{
        harness::{ServerFixture, borrow_settings, create_keys, wait_until},
        platform::{fetch_count, platform_settings, start_platform},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    speech::service::{FakeSpeechService, SpeechReply},
};

const BASE_URL: &str = "https://v.example";

#[tokio::test(flavor = "multi_thread")]
async fn mcp_http_both_revisions_use_archive() -> Result<()> {
    let data = archive()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_SERVER__BASE_URL", BASE_URL)])?;
    for (mode, version) in REVISIONS {
        let calls = [
            paged_call("get_transcript", json!({ "video": LONG, "max_chars": 5_000 })),
            call("search_transcript", json!({ "video": LONG, "query": "line 1000000" })),
            call("list_languages", json!({ "video": format!("https://youtu.be/{SHORT}") })),
            call("get_transcript", json!({ "video": "nothinghere" })),
            call("ask_video", json!({ "video": SHORT, "question": "How long did it take?" })),
            call("steal", json!({})),
        ];
        let report = run_calls(&http_target(&server, None), mode, &calls)?;
        assert_eq!(report["version"], version);
        assert_eq!(
            report["tools"],
            json!(["get_transcript", "search_transcript", "list_languages", "ask_video"])
        );
        assert!(pages(&report, 0).len() > 5, "{report}");
        assert_eq!(words(pages(&report, 0)), long_words());
        assert!(
            text(&report, 1).contains("1 of 1 passages")
                && text(&report, 1).contains("This is line 1000000."),
            "{}",
            text(&report, 1)
        );
        assert!(text(&report, 2).contains("- en, made by people; archived"), "{}", text(&report, 2));
        let page = format!("\n{BASE_URL}/watch/video_site/nothinghere?src=mcp_other\n");
        assert!(text(&report, 3).ends_with(&page), "{}", text(&report, 3));
        assert_eq!(report["results"][4][0]["isError"], true, "{report}");
        assert_eq!(report["results"][4][0]["meta"]["verbatim/code"], 401);
        assert_eq!(report["results"][5][0]["error"]["code"], -32602, "{report}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_http_keys_of_both_apis_pay_for_transcripts() -> Result<()> {
    let videos = ["aaaaaaaaaaa", "bbbbbbbbbbb"];
    let proxy = start_platform(&videos, Duration::ZERO)?;
    let data = archive()?;
    let mut outbox = MailClient::new(&data);
    let settings = platform_settings(&proxy);
    let settings = borrow_settings(&settings);
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_keys(&data, 1)?.remove(0);
    let mine = create_account(&server, &mut outbox, "ann@example.org").await?;
    let all = remaining_credits(&server, &mine).await?;
    let get = |video: &str| call("get_transcript", json!({ "video": video }));

    let free = run_calls(&http_target(&server, Some(&key)), "auto", &[get(videos[0]), get(videos[0])])?;
    assert!(
        text(&free, 0).contains("This is aaaaaaaaaaa.") && text(&free, 0).contains("1 of 25 are used"),
        "{free}"
    );
    assert!(
        text(&free, 1).contains("This is aaaaaaaaaaa.") && !text(&free, 1).contains("are used"),
        "{free}"
    );

    let question_call =
        call("ask_video", json!({ "video": videos[1], "question": "What keeps the grass short?" }));
    let paid = run_calls(
        &http_target(&server, Some(&mine)),
        "legacy",
        &[get(videos[1]), get(videos[0]), question_call],
    )?;
    assert!(text(&paid, 0).contains(&format!("{} are left", all - 1)), "{paid}");
    assert!(!text(&paid, 1).contains("charged"), "{paid}");
    assert!(
        text(&paid, 2).contains("The sheep keep the grass short")
            && text(&paid, 2).contains("\n[0:00] https://"),
        "{paid}"
    );
    assert_eq!(remaining_credits(&server, &mine).await?, all - 2);
    assert_eq!(videos.map(|video| fetch_count(&proxy, video)), [1, 1]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_http_disconnected_caller_is_not_charged() -> Result<()> {
    let service = FakeSpeechService::start(|_, _| SpeechReply::Never).await?;
    let data = archive()?;
    let mut outbox = MailClient::new(&data);
    let chat = [("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()), ("VERBATIM_CHAT__MODEL", "small")];
    let server = ServerFixture::start(&data, &chat)?;
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    let all = remaining_credits(&server, &key).await?;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "ask_video", "arguments": { "video": SHORT, "question": "How long?" } } })
    .to_string();
    let mut stream = TcpStream::connect(server.address()).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let began = Instant::now();
    while remaining_credits(&server, &key).await? == all {
        ensure!(began.elapsed() < Duration::from_secs(30), "no credit was held");
    }
    drop(stream);
    wait_until("the credit is returned", async || Ok(remaining_credits(&server, &key).await? == all)).await?;
    match began.elapsed() {
        // A hold that is not released would expire only after its lease.
        took if took < Duration::from_secs(50) => Ok(()),
        took => bail!("the credit was returned after {took:?}"),
    }
}
