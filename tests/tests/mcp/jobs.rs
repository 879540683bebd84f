//! The tools for lists and jobs.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use super::client::{REVISIONS, call, http_target, paged_call, pages, run_calls, text};
use crate::server::{
    harness::{ServerFixture, binary, wait_until},
    jobs::{PLAYLIST, delayed, first_page, next_page, page, platform, results_page, search, videos},
    platform::{platform_settings, serve_platform},
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

/// A platform with a playlist of six videos on two pages, of which one has no captions.
fn start_playlist(videos: &[String]) -> Result<ReplayProxy> {
    let script = platform(videos, &[&videos[4]], delayed(0))
        .rule(first_page().respond(page(&videos[..4], Some("T2"))))
        .rule(next_page("T2").respond(page(&videos[4..], None)))
        .rule(search("tide mills").respond(results_page(videos)));
    ReplayProxy::start(script)
}

/// A server behind the proxy, with the key of an account without a tight rate limit.
async fn start_server(data: &TempDir, proxy: &ReplayProxy) -> Result<(ServerFixture, String)> {
    let fast = ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000");
    let server = serve_platform(data, proxy, &[fast])?;
    let key = create_account(&server, &mut MailClient::new(data), "ann@example.org").await?;
    Ok((server, key))
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_http_job_of_playlist_is_started_and_read() -> Result<()> {
    let videos = videos("tooljob", 6);
    let proxy = start_playlist(&videos)?;
    let data = TempDir::new()?;
    let (server, key) = start_server(&data, &proxy).await?;
    let account = http_target(&server, Some(&key));
    for (round, (mode, _)) in (1..).zip(REVISIONS) {
        let list = json!({ "list": PLAYLIST, "limit": 5 });
        let calls = [call("list_videos", list), call("start_job", json!({ "playlist": PLAYLIST }))];
        let started = run_calls(&account, mode, &calls)?;
        let listed = text(&started, 0);
        assert!(listed.contains("5 videos") && listed.contains("The list has more videos."), "{listed}");
        assert!(listed.contains(&format!("https://www.youtube.com/watch?v={}", videos[4])), "{listed}");
        assert_eq!(started["results"][0][0]["meta"]["verbatim/has_more"], true);
        assert!(
            text(&started, 1).contains(": listing\nList: https://www.youtube.com/playlist?list="),
            "{started}"
        );
        // It has cost nothing yet, which is no bound of what it costs.
        assert!(text(&started, 1).contains("The list is still being read"), "{started}");
        let job = started["results"][1][0]["meta"]["verbatim/job"].clone();
        let mut status = Value::Null;
        wait_until("the job did not end", async || {
            status = run_calls(&account, mode, &[call("job_status", json!({ "job": job }))])?;
            Ok(status["results"][0][0]["meta"]["verbatim/job_status"] == "completed")
        })
        .await?;
        assert!(text(&status, 0).contains("6 in all, 5 done, 1 failed"), "{status}");
        assert!(text(&status, 0).contains("5 spent, at most 0 more for this job"), "{status}");
        let calls = [
            paged_call("job_results", json!({ "job": job, "limit": 4 })),
            call("job_results", json!({ "job": job, "limit": 1, "max_chars": 7 })),
        ];
        let results = run_calls(&account, mode, &calls)?;
        assert_eq!(pages(&results, 0).len(), 2, "{results}");
        let all: String = pages(&results, 0).iter().filter_map(|page| page["text"].as_str()).collect();
        for (index, video) in videos.iter().enumerate() {
            assert!(
                all.contains(&format!("{}. https://www.youtube.com/watch?v={video}: ", index + 1)),
                "{all}"
            );
            assert_eq!(all.contains(&format!("This is {video}.")), index != 4, "{all}");
        }
        assert!(all.contains(": failed (no_captions): "), "{all}");
        let first = text(&results, 1);
        assert!(first.contains("\nTitle: A walk along the dyke\nThis is…\n"), "{results}");
        assert_eq!(remaining_credits(&server, &key).await?, 200 - 5 * round);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_job_results_name_languages_and_repeated_start_returns_first_job() -> Result<()> {
    let videos = videos("tongues", 1);
    let proxy = ReplayProxy::start(platform(&videos, &[], delayed(0)))?;
    let data = TempDir::new()?;
    let (server, key) = start_server(&data, &proxy).await?;
    let mut account = http_target(&server, Some(&key));
    account["headers"]["Idempotency-Key"] = json!("course-2026");
    let start = call("start_job", json!({ "videos": videos, "lang": "de" }));
    let started = run_calls(&account, "auto", &[start.clone(), start])?;
    let job = started["results"][0][0]["meta"]["verbatim/job"].clone();
    ensure!(job.is_string(), "{started}");
    assert_eq!(text(&started, 0), text(&started, 1), "{started}");
    wait_until("the job did not end", async || {
        let status = run_calls(&account, "auto", &[call("job_status", json!({ "job": job }))])?;
        Ok(status["results"][0][0]["meta"]["verbatim/job_status"] == "completed")
    })
    .await?;
    let results = run_calls(&account, "auto", &[call("job_results", json!({ "job": job }))])?;
    let found = text(&results, 0);
    assert!(found.contains(": failed (no_captions): "), "{found}");
    assert!(found.contains("\nLanguages of the video: en\n"), "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_job_tools_refuse_what_they_cannot_do() -> Result<()> {
    let videos = videos("refused", 6);
    let proxy = start_playlist(&videos)?;
    let data = TempDir::new()?;
    let server = serve_platform(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    for tool in ["list_videos", "start_job", "job_status", "job_results"] {
        let arguments = match tool {
            "list_videos" => json!({ "list": PLAYLIST }),
            "start_job" => json!({ "playlist": PLAYLIST }),
            _ => json!({ "job": "job_unknown" }),
        };
        let refused = run_calls(&http_target(&server, None), "auto", &[call(tool, arguments)])?;
        assert_eq!(refused["results"][0][0]["meta"]["verbatim/code"], 401, "{tool}: {refused}");
    }
    ensure!(proxy.requests().is_empty(), "no list is read without an account: {:?}", proxy.requests());
    let calls = [
        call("job_status", json!({ "job": "job_unknown" })),
        call("start_job", json!({})),
        call("start_job", json!({ "videos": ["a"], "playlist": PLAYLIST })),
        call("list_videos", json!({ "list": "https://www.youtube.com/playlist?list=WL" })),
        call("job_results", json!({ "job": "job_unknown", "cursor": "x" })),
        call("job_results", json!({ "job": "job_unknown", "max_chars": 10_001 })),
    ];
    let refused = run_calls(&http_target(&server, Some(&key)), "auto", &calls)?;
    for (index, code) in [404, 400, 400, 400, 400, 400].into_iter().enumerate() {
        assert_eq!(refused["results"][index][0]["meta"]["verbatim/code"], code, "{index}: {refused}");
    }
    Ok(())
}

#[test]
fn mcp_stdio_lists_videos_without_jobs() -> Result<()> {
    let videos = videos("locally", 6);
    let proxy = start_playlist(&videos)?;
    let data = TempDir::new()?;
    let environment: serde_json::Map<String, Value> =
        platform_settings(&proxy).into_iter().map(|(name, value)| (name, json!(value))).collect();
    let target = json!({ "command": binary(), "args": ["mcp", "--data", data.path()], "env": environment });
    let calls = [
        call("list_videos", json!({ "list": PLAYLIST })),
        call("start_job", json!({ "videos": ["a"] })),
        call("list_videos", json!({ "search": "tide mills", "limit": 2 })),
        call("list_videos", json!({ "list": PLAYLIST, "search": "tide mills" })),
        call("list_videos", json!({})),
    ];
    let report = run_calls(&target, "auto", &calls)?;
    assert!(text(&report, 0).contains("6 videos") && !text(&report, 0).contains("more videos"), "{report}");
    assert_eq!(report["results"][1][0]["error"]["code"], -32602, "{report}");
    let found = text(&report, 2);
    assert!(found.contains("results?search_query=tide+mills") && found.contains("2 videos"), "{found}");
    for index in [3, 4] {
        assert_eq!(report["results"][index][0]["meta"]["verbatim/code"], 400, "{report}");
    }
    Ok(())
}
