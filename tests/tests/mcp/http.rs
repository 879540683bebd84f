//! `POST /mcp` of the built server.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    LONG, SHORT, archive,
    client::{REVISIONS, call, over_http, pages, text, told, whole},
    long_words, words,
};
use crate::{
    server::{
        harness::{Server, borrowed, keys, until},
        platform::{fetches, platform, settings},
        v1::post::{Outbox, account, credits},
    },
    speech::service::{Reply, Service},
};

const BASE_URL: &str = "https://v.example";

#[tokio::test(flavor = "multi_thread")]
async fn both_revisions_read_search_and_list_what_is_archived() -> Result<()> {
    let data = archive()?;
    let server = Server::start(&data, &[("VERBATIM_SERVER__BASE_URL", BASE_URL)])?;
    for (mode, version) in REVISIONS {
        let calls = [
            whole("get_transcript", json!({ "video": LONG, "max_chars": 5_000 })),
            call("search_transcript", json!({ "video": LONG, "query": "line 1000000" })),
            call("list_languages", json!({ "video": format!("https://youtu.be/{SHORT}") })),
            call("get_transcript", json!({ "video": "nothinghere" })),
            call("ask_video", json!({ "video": SHORT, "question": "How long did it take?" })),
            call("steal", json!({})),
        ];
        let told = told(&over_http(&server, None), mode, &calls)?;
        assert_eq!(told["version"], version);
        assert_eq!(
            told["tools"],
            json!(["get_transcript", "search_transcript", "list_languages", "ask_video"])
        );
        assert!(pages(&told, 0).len() > 5, "{told}");
        assert_eq!(words(pages(&told, 0)), long_words());
        assert!(
            text(&told, 1).contains("1 of 1 passages") && text(&told, 1).contains("This is line 1000000."),
            "{}",
            text(&told, 1)
        );
        assert!(text(&told, 2).contains("- en, made by people; archived"), "{}", text(&told, 2));
        let page = format!("\n{BASE_URL}/watch/video_site/nothinghere?src=mcp_other\n");
        assert!(text(&told, 3).ends_with(&page), "{}", text(&told, 3));
        assert_eq!(told["results"][4][0]["isError"], true, "{told}");
        assert_eq!(told["results"][4][0]["meta"]["verbatim/code"], 401);
        assert_eq!(told["results"][5][0]["error"]["code"], -32602, "{told}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_both_surfaces_pay_for_what_they_get() -> Result<()> {
    let videos = ["aaaaaaaaaaa", "bbbbbbbbbbb"];
    let proxy = platform(&videos, Duration::ZERO)?;
    let data = archive()?;
    let mut outbox = Outbox::of(&data);
    let settings = settings(&proxy);
    let settings = borrowed(&settings);
    let server = Server::start(&data, &settings)?;
    let key = keys(&data, 1)?.remove(0);
    let mine = account(&server, &mut outbox, "ann@example.org").await?;
    let all = credits(&server, &mine).await?;
    let get = |video: &str| call("get_transcript", json!({ "video": video }));

    let free = told(&over_http(&server, Some(&key)), "auto", &[get(videos[0]), get(videos[0])])?;
    assert!(
        text(&free, 0).contains("This is aaaaaaaaaaa.") && text(&free, 0).contains("1 of 25 are used"),
        "{free}"
    );
    assert!(
        text(&free, 1).contains("This is aaaaaaaaaaa.") && !text(&free, 1).contains("are used"),
        "{free}"
    );

    let asked = call("ask_video", json!({ "video": videos[1], "question": "What keeps the grass short?" }));
    let paid = told(&over_http(&server, Some(&mine)), "legacy", &[get(videos[1]), get(videos[0]), asked])?;
    assert!(text(&paid, 0).contains(&format!("{} are left", all - 1)), "{paid}");
    assert!(!text(&paid, 1).contains("charged"), "{paid}");
    assert!(
        text(&paid, 2).contains("The sheep keep the grass short")
            && text(&paid, 2).contains("\n[0:00] https://"),
        "{paid}"
    );
    assert_eq!(credits(&server, &mine).await?, all - 2);
    assert_eq!(videos.map(|video| fetches(&proxy, video)), [1, 1]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_before_the_answer_pays_nothing() -> Result<()> {
    let service = Service::start(|_, _| Reply::Never).await?;
    let data = archive()?;
    let mut outbox = Outbox::of(&data);
    let chat = [("VERBATIM_CHAT__BASE_URL", service.base_url.as_str()), ("VERBATIM_CHAT__MODEL", "small")];
    let server = Server::start(&data, &chat)?;
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    let all = credits(&server, &key).await?;
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
    while credits(&server, &key).await? == all {
        ensure!(began.elapsed() < Duration::from_secs(30), "no credit was held");
    }
    drop(stream);
    until("the credit comes back", async || Ok(credits(&server, &key).await? == all)).await?;
    match began.elapsed() {
        // A hold that nobody gave back would end by itself only after its lease.
        took if took < Duration::from_secs(50) => Ok(()),
        took => bail!("it came back after {took:?}"),
    }
}
