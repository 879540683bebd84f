//! `POST /mcp` of the built server.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    LONG, SHORT, archive,
    client::{REVISIONS, call, http_target, paged_call, pages, run_calls, text},
    long_words, words,
};
use crate::{
    server::{
        harness::{ServerFixture, create_keys, run, verbatim, wait_until},
        platform::{fetch_count, serve_platform, start_platform},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::{FakeReply, FakeService},
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
            json!([
                "get_transcript",
                "search_transcript",
                "list_languages",
                "ask_video",
                "list_videos",
                "start_job",
                "job_status",
                "job_results",
                "search_archive"
            ])
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
    let server = serve_platform(&data, &proxy, &[])?;
    let key = create_keys(&data, 1)?.remove(0);
    let mine = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
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
async fn mcp_http_caller_that_disconnects_from_model_is_charged() -> Result<()> {
    let service = FakeService::start(|_, _| FakeReply::Never).await?;
    let data = archive()?;
    let chat = [("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()), ("VERBATIM_CHAT__MODEL", "small")];
    let server = ServerFixture::start(&data, &chat)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
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
    wait_until("the model was not called", async || Ok(!service.requests().is_empty())).await?;
    drop(stream);
    wait_until("the credit was not spent", async || {
        let exported = run(verbatim(data.path(), &["accounts", "export", "ann@example.org"]), b"")?;
        Ok(String::from_utf8_lossy(&exported.stdout).contains("\"spent\""))
    })
    .await?;
    assert_eq!(remaining_credits(&server, &key).await?, all - 1);
    Ok(())
}

/// Calls a tool without the official client.
pub(super) async fn call_plain(
    server: &ServerFixture,
    key: Option<&str>,
    tool: &str,
    arguments: Value,
) -> Result<Value> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } });
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("content-type", "application/json"), ("mcp-protocol-version", "2025-11-25")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let reply = server.send(Method::POST, "/mcp", &headers, message.to_string()).await?;
    Ok(reply.json()["result"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_http_anonymous_crowd_is_limited_beside_paid_chats() -> Result<()> {
    let data = archive()?;
    let settings = [("VERBATIM_LIMITS__TOOL_CALLS_PER_NETWORK_PER_MINUTE", "40")];
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let all = remaining_credits(&server, &key).await?;
    let search = |forged: bool| {
        // An invalid key evades no limit.
        let key = forged.then_some("not-a-key");
        call_plain(&server, key, "search_transcript", json!({ "video": LONG, "query": "line 1000000" }))
    };
    let question_call = || {
        let arguments = json!({ "video": LONG, "question": "What is line 1000000?" });
        call_plain(&server, Some(&key), "ask_video", arguments)
    };
    let (searches, chats) = tokio::try_join!(
        futures_util::future::try_join_all((0..48).map(|n| search(n % 2 == 0))),
        futures_util::future::try_join_all((0..4).map(|_| question_call())),
    )?;
    for chat in &chats {
        ensure!(chat["isError"] == false, "{chat}");
    }
    assert_eq!(remaining_credits(&server, &key).await?, all - 4);
    let (refused, found): (Vec<_>, Vec<_>) = searches.iter().partition(|result| result["isError"] == true);
    assert_eq!((found.len(), refused.len()), (40, 8));
    for result in refused {
        assert_eq!(result["_meta"]["verbatim/code"], 429, "{result}");
        let seconds = result["_meta"]["verbatim/retry_after"].as_u64().unwrap_or_default();
        ensure!((1..=60).contains(&seconds), "{result}");
    }
    // A key is not limited by its network.
    let free = create_keys(&data, 1)?.remove(0);
    let listed = call_plain(&server, Some(&free), "list_languages", json!({ "video": LONG })).await?;
    ensure!(listed["isError"] == false, "{listed}");
    Ok(())
}
