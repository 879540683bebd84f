//! What one server does, the others know.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::Stage;
use crate::server::{
    harness::{run, verbatim},
    platform::{fetches, platform},
    v1::post::{Outbox, account, credits, key_in},
};

const VIDEO: &str = "dyke-walk-0";

/// Keys of the look-up API, by the operator's command on the same database.
fn keys(stage: &Stage, count: usize) -> Result<Vec<String>> {
    let mut command = verbatim(stage.data.path(), &["keys", "create", "--count", &count.to_string()]);
    command.envs(stage.settings());
    let output = run(command, b"")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_made_on_one_server_opens_the_other_and_dies_on_both() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let stage = Stage::new(Some(&proxy))?;
    let mut outbox = Outbox::of(&stage.data);
    let (one, two) = (stage.server()?, stage.server()?);
    let key = account(&one, &mut outbox, "ann@example.org").await?;
    for (left, server) in [&two, &one, &two, &one].into_iter().enumerate() {
        let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        assert_eq!(reply.header("x-credits-remaining"), (199 - left).to_string());
    }
    assert_eq!((credits(&one, &key).await?, credits(&two, &key).await?), (196, 196));
    assert_eq!(fetches(&proxy, VIDEO), 1);

    let bearer = format!("Bearer {key}");
    let rotated = two.send(Method::POST, "/api/v1/rotate-key", &[("authorization", &bearer)], "").await?;
    let new = key_in(&rotated)?;
    for server in [&one, &two] {
        assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
        let dead = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
        assert_eq!(dead.status, 401, "a key that was remembered is looked at again where it is charged");
        assert_eq!(server.get_as(&new, "/api/v1/me").await?.status, 200);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_is_one_for_all_servers() -> Result<()> {
    let stage = Stage::new(None)?;
    let mut outbox = Outbox::of(&stage.data);
    let servers = [stage.server()?, stage.server()?];
    let key = account(&servers[0], &mut outbox, "ann@example.org").await?;
    let mut seen = Vec::new();
    for place in 0..12 {
        seen.push(servers[place % 2].get_as(&key, "/api/v1/me").await?.status.as_u16());
    }
    assert_eq!(seen, [[200; 10].as_slice(), &[429; 2]].concat());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_all_servers_cost_one_fetch_and_one_allowance() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::from_millis(300))?;
    let stage = Stage::new(Some(&proxy))?;
    let servers = Arc::new([stage.server()?, stage.server()?, stage.server()?]);
    let keys = keys(&stage, 20)?;
    let mut callers = JoinSet::new();
    for place in 0..200 {
        let (servers, key) = (Arc::clone(&servers), keys[place % keys.len()].clone());
        callers.spawn(
            async move { servers[place % 3].get_as(&key, &format!("/api/transcript?v={VIDEO}")).await },
        );
    }
    let mut fetched = 0;
    while let Some(reply) = callers.join_next().await {
        let body = reply??.json();
        assert_eq!(body["available"], json!(true), "{body}");
        fetched += usize::from(body["fromCache"] == json!(false));
    }
    assert_eq!((fetched, fetches(&proxy, VIDEO)), (1, 1), "one fetch, by whichever server");
    let mut used = 0;
    for key in &keys {
        used += servers[1].get_as(key, "/api/keys/me").await?.json()["used"].as_u64().unwrap_or(99);
    }
    assert_eq!(used, 1);
    let audit = {
        let mut command = verbatim(stage.data.path(), &["ledger", "audit"]);
        command.envs(stage.settings());
        run(command, b"")?
    };
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_withdraws_is_gone_from_all_servers() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let stage = Stage::new(Some(&proxy))?;
    let servers = [stage.server()?, stage.server()?];
    let key = keys(&stage, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    assert_eq!(servers[0].get_as(&key, &path).await?.json()["available"], json!(true));
    for server in &servers {
        // Often enough to be kept ready.
        for _ in 0..3 {
            assert_eq!(server.get(&path).await?.json()["available"], json!(true));
        }
    }
    let mut command = verbatim(stage.data.path(), &["archive", "withdraw", VIDEO]);
    command.envs(stage.settings());
    let output = run(command, b"")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The command ended 50 ms after its commit: from then on nobody is shown it.
    for server in &servers {
        assert_eq!(server.get(&path).await?.json()["available"], json!(false));
    }
    Ok(())
}
