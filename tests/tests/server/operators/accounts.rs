//! `verbatim accounts`: operators manage accounts under a running server.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    Timestamp,
    accounts::OrderStore as _,
    directory::{Account, AccountRef, Directory as _},
};

use super::{json_of, run_expecting, stdout_of};
use crate::{
    payments::fixture::open_order,
    server::{
        harness::{EXAMPLE, ServerFixture},
        v1::mail_client::{MailClient, create_account, key_from, register, remaining_credits, token_from},
    },
};

const VIDEO: &str = "L1ghth0use1";

/// A server with an archived transcript and two accounts, of which the first has bought it once.
pub(super) async fn start_with_accounts() -> Result<(TempDir, ServerFixture, MailClient, String)> {
    let data = TempDir::new()?;
    run_expecting(data.path(), &["import", EXAMPLE, "--video", VIDEO, "--lang", "en"], "", 0)?;
    let server = ServerFixture::start(&data, &[])?;
    let mut outbox = MailClient::new(&data);
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    create_account(&server, &mut outbox, "ben@example.org").await?;
    let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
    assert_eq!(reply.status, 200, "{}", reply.text());
    Ok((data, server, outbox, key))
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_list_and_show_print_accounts() -> Result<()> {
    let (data, _server, _, _) = start_with_accounts().await?;
    let all = json_of(data.path(), &["accounts", "list", "--json"])?;
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
    let table = stdout_of(data.path(), &["accounts", "list"])?;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.starts_with("ID") && table.contains("199/200") && table.contains("ben@example.org"),
        "{table}"
    );

    let id = all[0]["id"].as_str().context("id")?;
    for account in ["ann@example.org", " Ann@EXAMPLE.org ", id] {
        assert_eq!(json_of(data.path(), &["accounts", "show", account, "--json"])?, all[0], "{account}");
    }
    let shown = stdout_of(data.path(), &["accounts", "show", id])?;
    assert!(shown.contains("email: ann@example.org\n") && shown.contains("credits: 199 of 200\n"), "{shown}");
    for command in ["show", "grant", "revoke-grant", "block", "unblock", "statement", "export", "delete"] {
        run_expecting(data.path(), &["accounts", command], "", 2)?;
        let mut unknown = vec!["accounts", command, "unknown@example.org"];
        unknown.extend(["grant", "revoke-grant"].contains(&command).then_some("5"));
        run_expecting(data.path(), &unknown, "", 1)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_changes_apply_to_running_server() -> Result<()> {
    let (data, server, _, key) = start_with_accounts().await?;
    let run = |arguments: &[&str]| stdout_of(data.path(), &[&["accounts"], arguments].concat());
    // A grant with an id is applied once, however often it is repeated.
    for note in ["", "already granted; "] {
        let granted =
            run(&["grant", "ann@example.org", "50", "--id", "ticket-1", "--memo", "sorry \u{1b}[2J"])?;
        assert_eq!(granted, format!("ann@example.org: {note}249 credits left (grant ticket-1)\n"));
    }
    run_expecting(data.path(), &["accounts", "grant", "ann@example.org", "50", "--id", ""], "", 2)?;
    assert_eq!(remaining_credits(&server, &key).await?, 249);
    let granted = run(&["grant", "ann@example.org", "1"])?;
    assert!(granted.starts_with("ann@example.org: 250 credits left (grant grant-"), "{granted}");
    run_expecting(data.path(), &["accounts", "grant", "ann@example.org", "60", "--id", "ticket-1"], "", 1)?;
    run_expecting(data.path(), &["accounts", "grant", "ann@example.org", "0"], "", 2)?;

    // Requested often enough that the server caches the response and the key.
    let transcript = format!("/api/v1/transcript?video_id={VIDEO}");
    for _ in 0..2 {
        assert_eq!(server.get_as(&key, &transcript).await?.status, 200);
    }
    let granted = run(&["grant", "ann@example.org", "2"])?;
    assert!(granted.starts_with("ann@example.org: 250 credits left (grant grant-"), "{granted}");
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
    assert_eq!(remaining_credits(&server, &key).await?, 250);

    let statement = json_of(data.path(), &["accounts", "statement", "ann@example.org", "--json"])?;
    let steps: Vec<_> = statement.as_array().into_iter().flatten().map(|line| &line["step"]).collect();
    assert_eq!(steps.iter().filter(|step| **step == &json!("granted")).count(), 3, "{statement}");
    assert!(steps.contains(&&json!("charged")), "{statement}");
    let table = run(&["statement", "ann@example.org"])?;
    assert!(table.contains("purchased") && table.contains("sorry") && !table.contains('\u{1b}'), "{table}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_delete_removes_personal_data() -> Result<()> {
    let (data, server, mut outbox, key) = start_with_accounts().await?;
    let export = json_of(data.path(), &["accounts", "export", "ann@example.org"])?;
    assert_eq!(export["account"]["email"], json!("ann@example.org"));
    assert!(export["statement"].as_array().is_some_and(|lines| !lines.is_empty()), "{export}");

    // Without a terminal for the question, the deletion requires `--yes`.
    run_expecting(data.path(), &["accounts", "delete", "ann@example.org"], "y\n", 2)?;
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    let mails = || std::fs::read_dir(data.path().join("outbox")).map(Iterator::count);
    assert_eq!(mails()?, 2, "one mail per account");
    let deleted = stdout_of(data.path(), &["accounts", "delete", "ann@example.org", "--yes"])?;
    let id = export["id"].as_str().context("id")?;
    assert_eq!(deleted, format!("{id}: deleted\n1 mail to it was deleted from the outbox folder\n"));
    assert_eq!(mails()?, 1);
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    run_expecting(data.path(), &["accounts", "show", "ann@example.org"], "", 1)?;
    assert_eq!(json_of(data.path(), &["accounts", "list", "--json"])?.as_array().map(Vec::len), Some(1));
    run_expecting(data.path(), &["ledger", "audit"], "", 0)?;

    // A new registration of the address starts without earlier data.
    assert_eq!(register(&server, "ann@example.org").await?.status, 200);
    let path = format!("/api/v1/verify?token={}", token_from(&outbox.next().await?)?);
    let reregistered = server.send(Method::GET, &path, &[], "").await?;
    assert_eq!(
        (reregistered.status.as_u16(), &reregistered.json()["credits"]),
        (200, &json!(200)),
        "{}",
        reregistered.text()
    );
    assert_eq!(remaining_credits(&server, &key_from(&reregistered)?).await?, 200);
    let fresh = json_of(data.path(), &["accounts", "export", "ann@example.org"])?;
    assert_eq!(fresh["statement"], Value::Array(Vec::new()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_delete_with_unreadable_mail_can_be_repeated() -> Result<()> {
    let (data, _server, _, _) = start_with_accounts().await?;
    let outbox = data.path().join("outbox");
    let unreadable = outbox.join("unreadable.eml");
    std::fs::create_dir(&unreadable)?;
    let delete = ["accounts", "delete", "ann@example.org", "--yes"];
    let failed = super::text(&run_expecting(data.path(), &delete, "", 1)?.stderr);
    assert!(failed.contains("could not be deleted"), "{failed}");
    stdout_of(data.path(), &["accounts", "show", "ann@example.org"])?;
    std::fs::remove_dir(&unreadable)?;
    let deleted = stdout_of(data.path(), &delete)?;
    assert!(deleted.contains(": deleted\n"), "{deleted}");
    assert_eq!(std::fs::read_dir(outbox)?.count(), 1, "the mail to the other account stays");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_delete_with_open_payment_requires_anyway() -> Result<()> {
    let (data, server, _, key) = start_with_accounts().await?;
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let account = AccountRef::Email("ann@example.org".to_owned());
    let ann = store.account(&account).await?.context("the account")?;
    store.open(open_order("order-7", ann.id.clone(), Timestamp::from_millis(0))).await?;
    let subscribed = Account { subscription: Some("sub_7".to_owned()), ..ann };
    store.update_account(subscribed).await?;
    store.close().await;

    let delete = ["accounts", "delete", "ann@example.org", "--yes"];
    let refused = super::text(&run_expecting(data.path(), &delete, "", 1)?.stderr);
    for part in ["sub_7", "cancel it at the payment provider first", "order-7", "--anyway"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    let deleted = stdout_of(data.path(), &[&delete[..], &["--anyway"]].concat())?;
    for part in [": deleted\n", "the subscription sub_7 continues", "the order order-7 may still be paid"] {
        assert!(deleted.contains(part), "{part}: {deleted}");
    }
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    run_expecting(data.path(), &["ledger", "audit"], "", 0)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_delete_leaves_no_data_on_disk() -> Result<()> {
    let (data, mut server, _, key) = start_with_accounts().await?;
    stdout_of(data.path(), &["accounts", "delete", "ann@example.org", "--yes"])?;
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
fn accounts_missing_folder_is_not_created() -> Result<()> {
    let data = TempDir::new()?;
    let typo = data.path().join("typo");
    for command in ["list", "export", "delete"] {
        let account = (command != "list").then_some("ann@example.org");
        let arguments: Vec<&str> = ["accounts", command].into_iter().chain(account).collect();
        let message = super::text(&run_expecting(&typo, &arguments, "", 1)?.stderr);
        assert!(message.contains("nothing is stored there yet"), "{command}: {message}");
    }
    assert!(!typo.exists());
    Ok(())
}
