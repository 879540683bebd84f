//! `verbatim accounts`: what operators do with accounts, under a running server.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    Timestamp,
    accounts::{Item, Order, OrderState, Orders as _},
    directory::{Account, AccountRef, Directory as _},
    ids::OrderId,
};

use super::{ends, told, told_json};
use crate::server::{
    harness::Server,
    v1::post::{Outbox, account, credits, key_in, register, token},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/lighthouse.vtt");
const VIDEO: &str = "L1ghth0use1";

/// A server with an archived transcript and two accounts, of which the first has bought it once.
pub(super) async fn served() -> Result<(TempDir, Server, Outbox, String)> {
    let data = TempDir::new()?;
    ends(data.path(), &["import", EXAMPLE, "--video", VIDEO, "--lang", "en"], "", 0)?;
    let server = Server::start(&data, &[])?;
    let mut outbox = Outbox::of(&data);
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    account(&server, &mut outbox, "ben@example.org").await?;
    let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
    assert_eq!(reply.status, 200, "{}", reply.text());
    Ok((data, server, outbox, key))
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_listed_and_shown() -> Result<()> {
    let (data, _server, _, _) = served().await?;
    let all = told_json(data.path(), &["accounts", "list", "--json"])?;
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    for (name, value) in [
        ("email", json!("ann@example.org")),
        ("plan", json!("free")),
        ("state", json!("free")),
        ("credits_remaining", json!(199)),
        ("credits_total", json!(200)),
        ("blocked", json!(false)),
        ("paid_through", json!(null)),
        ("subscription", json!(null)),
    ] {
        assert_eq!(all[0][name], value, "{name}: {}", all[0]);
    }
    let table = told(data.path(), &["accounts", "list"])?;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.starts_with("ID") && table.contains("199/200") && table.contains("ben@example.org"),
        "{table}"
    );

    let id = all[0]["id"].as_str().context("id")?;
    for who in ["ann@example.org", " Ann@EXAMPLE.org ", id] {
        assert_eq!(told_json(data.path(), &["accounts", "show", who, "--json"])?, all[0], "{who}");
    }
    let shown = told(data.path(), &["accounts", "show", id])?;
    assert!(shown.contains("email: ann@example.org\n") && shown.contains("credits: 199 of 200\n"), "{shown}");
    for command in ["show", "grant", "block", "unblock", "statement", "export", "delete"] {
        ends(data.path(), &["accounts", command], "", 2)?;
        let mut unknown = vec!["accounts", command, "nobody@example.org"];
        unknown.extend((command == "grant").then_some("5"));
        ends(data.path(), &unknown, "", 1)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_obeys_at_once() -> Result<()> {
    let (data, server, _, key) = served().await?;
    let run = |arguments: &[&str]| told(data.path(), &[&["accounts"], arguments].concat());
    // Once by its name, however often it is asked for.
    for _ in 0..2 {
        let granted =
            run(&["grant", "ann@example.org", "50", "--id", "ticket-1", "--memo", "sorry \u{1b}[2J"])?;
        assert_eq!(granted, "ann@example.org: 249 credits left\n");
    }
    assert_eq!(credits(&server, &key).await?, 249);
    assert_eq!(run(&["grant", "ann@example.org", "1"])?, "ann@example.org: 250 credits left\n");
    ends(data.path(), &["accounts", "grant", "ann@example.org", "60", "--id", "ticket-1"], "", 1)?;
    ends(data.path(), &["accounts", "grant", "ann@example.org", "0"], "", 2)?;

    // Asked for often enough that the server has it ready, and knows whose key it is.
    let transcript = format!("/api/v1/transcript?video_id={VIDEO}");
    for _ in 0..2 {
        assert_eq!(server.get_as(&key, &transcript).await?.status, 200);
    }
    assert_eq!(run(&["grant", "ann@example.org", "2"])?, "ann@example.org: 250 credits left\n");
    assert_eq!(run(&["block", "ann@example.org"])?, "ann@example.org: blocked\n");
    for path in ["/api/v1/me", &transcript] {
        let blocked = server.get_as(&key, path).await?;
        assert_eq!(blocked.status, 401, "{path}");
        assert!(
            blocked.json()["error"].as_str().is_some_and(|why| why.contains("blocked")),
            "{}",
            blocked.text()
        );
    }
    assert_eq!(run(&["unblock", "ann@example.org"])?, "ann@example.org: not blocked\n");
    assert_eq!(credits(&server, &key).await?, 250);

    let statement = told_json(data.path(), &["accounts", "statement", "ann@example.org", "--json"])?;
    let steps: Vec<_> = statement.as_array().into_iter().flatten().map(|line| &line["step"]).collect();
    assert_eq!(steps.iter().filter(|step| **step == &json!("granted")).count(), 3, "{statement}");
    assert!(steps.contains(&&json!("charged")), "{statement}");
    let table = run(&["statement", "ann@example.org"])?;
    assert!(table.contains("purchased") && table.contains("sorry") && !table.contains('\u{1b}'), "{table}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_goes_with_all_that_is_personal() -> Result<()> {
    let (data, server, mut outbox, key) = served().await?;
    let export = told_json(data.path(), &["accounts", "export", "ann@example.org"])?;
    assert_eq!(export["account"]["email"], json!("ann@example.org"));
    assert!(export["statement"].as_array().is_some_and(|lines| !lines.is_empty()), "{export}");

    // Without a terminal to ask at it must be said for sure.
    ends(data.path(), &["accounts", "delete", "ann@example.org"], "y\n", 2)?;
    assert_eq!(credits(&server, &key).await?, 199);
    let mails = || std::fs::read_dir(data.path().join("outbox")).map(Iterator::count);
    assert_eq!(mails()?, 2, "one to each of them");
    let deleted = told(data.path(), &["accounts", "delete", "ann@example.org", "--yes"])?;
    let id = export["id"].as_str().context("id")?;
    assert_eq!(deleted, format!("{id}: deleted\n1 mail to it was deleted from the outbox folder\n"));
    assert_eq!(mails()?, 1);
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    ends(data.path(), &["accounts", "show", "ann@example.org"], "", 1)?;
    assert_eq!(told_json(data.path(), &["accounts", "list", "--json"])?.as_array().map(Vec::len), Some(1));
    ends(data.path(), &["ledger", "audit"], "", 0)?;

    // The address begins anew, with nothing of before.
    assert_eq!(register(&server, "ann@example.org").await?.status, 200);
    let path = format!("/api/v1/verify?token={}", token(&outbox.next().await?)?);
    let anew = server.send(Method::GET, &path, &[], "").await?;
    assert_eq!((anew.status.as_u16(), &anew.json()["credits"]), (200, &json!(200)), "{}", anew.text());
    assert_eq!(credits(&server, &key_in(&anew)?).await?, 200);
    let fresh = told_json(data.path(), &["accounts", "export", "ann@example.org"])?;
    assert_eq!(fresh["statement"], Value::Array(Vec::new()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_may_yet_be_charged_is_deleted_only_anyway() -> Result<()> {
    let (data, server, _, key) = served().await?;
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let who = AccountRef::Email("ann@example.org".to_owned());
    let ann = store.account(&who).await?.context("the account")?;
    let order = Order {
        id: OrderId::new("order-7"),
        version: 1,
        account: ann.id.clone(),
        item: Item::Pack("1k".to_owned()),
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        taken_back: Vec::new(),
        created_at: Timestamp::from_millis(0),
    };
    store.open(order).await?;
    let subscribed = Account { subscription: Some("sub_7".to_owned()), ..ann };
    store.change_account(subscribed).await?;
    store.close().await;

    let delete = ["accounts", "delete", "ann@example.org", "--yes"];
    let refused = super::text(&ends(data.path(), &delete, "", 1)?.stderr);
    for part in ["sub_7", "cancel it at the payment provider first", "order-7", "--anyway"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(credits(&server, &key).await?, 199);
    let deleted = told(data.path(), &[&delete[..], &["--anyway"]].concat())?;
    for part in [": deleted\n", "the subscription sub_7 goes on", "the order order-7 may yet be paid"] {
        assert!(deleted.contains(part), "{part}: {deleted}");
    }
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    ends(data.path(), &["ledger", "audit"], "", 0)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_deleted_person_is_left_on_the_disk() -> Result<()> {
    let (data, mut server, _, key) = served().await?;
    told(data.path(), &["accounts", "delete", "ann@example.org", "--yes"])?;
    assert!(server.stop()?.success());
    for mail in std::fs::read_dir(data.path().join("outbox"))? {
        let mail = std::fs::read_to_string(mail?.path())?;
        assert!(mail.contains("ben@example.org") && !mail.contains("ann@example.org"), "{mail}");
    }
    for name in ["verbatim.db", "verbatim.db-wal"] {
        let file = data.path().join(name);
        let bytes = if file.exists() { std::fs::read(&file)? } else { Vec::new() };
        for secret in ["ann@example.org", &key] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{name} still has {secret}");
        }
        let others = bytes.windows(15).any(|part| part == b"ben@example.org");
        assert_eq!(others, name == "verbatim.db", "{name}");
    }
    Ok(())
}

#[test]
fn a_mistyped_folder_is_not_made() -> Result<()> {
    let data = TempDir::new()?;
    let typo = data.path().join("typo");
    for command in ["list", "export", "delete"] {
        let who = (command != "list").then_some("ann@example.org");
        let asked: Vec<&str> = ["accounts", command].into_iter().chain(who).collect();
        let told = super::text(&ends(&typo, &asked, "", 1)?.stderr);
        assert!(told.contains("nothing was kept there yet"), "{command}: {told}");
    }
    assert!(!typo.exists());
    Ok(())
}
