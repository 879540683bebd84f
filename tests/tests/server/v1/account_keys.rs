//! The keys of an account on its pages: several, each with its own name and use.

use anyhow::{Context as _, Result};
use http::Method;
use tempfile::TempDir;

use super::{
    account_pages::{BrowserFixture, hidden_field, new_key},
    mail_client::{MailClient, create_account},
};
use crate::server::harness::{ServerFixture, wait_until};

/// Maximum number of live keys of an account.
const LIVE_MAX: usize = 20;
/// The keys of an account share its rate limit.
const SETTINGS: [(&str, &str); 1] = [("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "1000")];

/// Creates a key on the page; returns it, and the form.
async fn create(browser: &mut BrowserFixture<'_>, name: &str) -> Result<(String, String)> {
    let token = hidden_field(&browser.get("/account/keys").await?.text(), "token")?;
    let form = format!("name={name}&token={token}");
    let created = browser.post("/account/keys/create", &form).await?;
    assert_eq!(created.status, 200, "{}", created.text());
    Ok((new_key(&created.text())?, form))
}

/// The ids of the listed keys, oldest first.
fn listed(page: &str) -> Vec<String> {
    let rest = page.split("account/keys/revoke\"").skip(1);
    rest.filter_map(|form| hidden_field(form, "key").ok()).collect()
}

/// Status of a request with a key.
async fn status(server: &ServerFixture, key: &str) -> Result<u16> {
    Ok(server.get_as(key, "/api/v1/me").await?.status.as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_keys_are_rotated_and_revoked_one_by_one() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &SETTINGS)?;
    let first = create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let (laptop, form) = create(&mut browser, "My+%3Cb%3Elaptop").await?;
    // A double click sends the form again, and the browser shows this response only.
    let again = browser.post("/account/keys/create", &form).await?;
    assert_eq!(new_key(&again.text())?, laptop);
    let (build, _) = create(&mut browser, "Build+%26+release").await?;
    for key in [&first, &laptop, &build] {
        assert_eq!(status(&server, key).await?, 200);
    }
    let page = browser.get("/account/keys").await?.text();
    assert!(page.contains("My &lt;b&gt;laptop") && page.contains("Build &amp; release"), "{page}");
    let ids = listed(&page);
    let [_, laptop_id, build_id] = ids.as_slice() else { panic!("three keys: {page}") };

    let form = format!("key={laptop_id}&token={}", hidden_field(&page, "token")?);
    let rotated = browser.post("/account/keys/rotate", &form).await?;
    let successor = new_key(&rotated.text())?;
    let again = browser.post("/account/keys/rotate", &form).await?;
    assert_eq!(new_key(&again.text())?, successor);
    // Another form names a dead key.
    let other = format!("key={laptop_id}&token={}", "0".repeat(32));
    let other = browser.post("/account/keys/rotate", &other).await?;
    assert_eq!((other.status.as_u16(), other.header("location")), (303, "../../account/keys"));
    let states = [(&first, 200), (&laptop, 401), (&successor, 200), (&build, 200)];
    for (key, expected) in states {
        assert_eq!(status(&server, key).await?, expected, "the other keys stay");
    }
    assert!(browser.get("/account/keys").await?.text().contains("My &lt;b&gt;laptop"), "the name stays");

    // The rotation of the API replaces the key of the request.
    let replaced = server.send_as(&build, Method::POST, "/api/v1/rotate-key", &[], "").await?.json();
    let replaced = replaced["api_key"].as_str().context("no key")?.to_owned();
    for (key, expected) in [(&first, 200), (&successor, 200), (&build, 401), (&replaced, 200)] {
        assert_eq!(status(&server, key).await?, expected);
    }
    assert_eq!(browser.post("/account/keys/revoke", &format!("key={build_id}")).await?.status, 303);
    assert_eq!(status(&server, &replaced).await?, 200, "the id is that of a dead key");

    // The last key can be revoked, with a warning before; the page creates another one.
    for live in listed(&browser.get("/account/keys").await?.text()) {
        let page = browser.get("/account/keys").await?.text();
        assert_eq!(page.contains("This is your only key"), listed(&page).len() == 1, "{page}");
        assert_eq!(browser.post("/account/keys/revoke", &format!("key={live}")).await?.status, 303);
    }
    for key in [&first, &successor, &replaced] {
        assert_eq!(status(&server, key).await?, 401);
    }
    assert!(browser.get("/account/keys").await?.text().contains("no API key that works"));
    let (key, _) = create(&mut browser, "Again").await?;
    assert_eq!(status(&server, &key).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_key_of_other_account_is_left_alone() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &SETTINGS)?;
    let ann_key = create_account(&server, &mut outbox, "ann@example.org").await?;
    create_account(&server, &mut outbox, "ben@example.org").await?;
    let mut ann = BrowserFixture::new(&server);
    ann.sign_in(&mut outbox, "ann%40example.org").await?;
    let id = listed(&ann.get("/account/keys").await?.text()).pop().context("no key")?;
    let mut ben = BrowserFixture::new(&server);
    ben.sign_in(&mut outbox, "ben%40example.org").await?;
    for path in ["/account/keys/rotate", "/account/keys/revoke"] {
        assert_eq!(ben.post(path, &format!("key={id}")).await?.status, 303, "{path}");
    }
    assert_eq!(status(&server, &ann_key).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_key_names_and_number_are_bounded() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &SETTINGS)?;
    create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let hidden = ["%E2%80%8B", "%EF%BB%BF", "a%E2%80%A8b", "a%E2%80%AEb"];
    for name in ["", "+++", "a%0Ab", "a%00", &"x".repeat(61)].into_iter().chain(hidden) {
        let form = format!("name={name}&token={}", "0".repeat(32));
        let refused = browser.post("/account/keys/create", &form).await?;
        assert_eq!(refused.status, 400, "{name}");
        assert!(refused.text().contains("a name of 1 to 60 characters"), "{name}");
        assert_eq!(listed(&refused.text()).len(), 1, "{name}");
    }
    for number in 1..LIVE_MAX {
        create(&mut browser, &format!("{}{number:02}", "%C3%A9".repeat(58))).await?;
    }
    let page = browser.get("/account/keys").await?.text();
    assert_eq!(listed(&page).len(), LIVE_MAX);
    assert!(
        page.contains("20 keys, the most that are possible") && !page.contains("name=\"name\""),
        "{page}"
    );
    let form = format!("name=more&token={}", "1".repeat(32));
    assert_eq!(browser.post("/account/keys/create", &form).await?.status, 303);
    assert_eq!(listed(&browser.get("/account/keys").await?.text()).len(), LIVE_MAX);
    let oldest = listed(&page).remove(0);
    browser.post("/account/keys/revoke", &format!("key={oldest}")).await?;
    create(&mut browser, "more").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_key_shows_its_last_use_after_restart() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let mut server = ServerFixture::start(&data, &SETTINGS)?;
    create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let (laptop, _) = create(&mut browser, "laptop").await?;
    let unused = "No use recorded yet";
    assert_eq!(browser.get("/account/keys").await?.text().matches(unused).count(), 2);
    assert_eq!(status(&server, &laptop).await?, 200);
    // Uses are stored in batches, by a task of the server.
    wait_until("the use was not stored", async || {
        Ok(browser.get("/account/keys").await?.text().matches(unused).count() == 1)
    })
    .await?;
    let cookie = browser.cookie;
    server.stop()?;
    server = ServerFixture::start(&data, &SETTINGS)?;
    let browser = BrowserFixture { server: &server, cookie };
    let page = browser.get("/account/keys").await?.text();
    assert_eq!(page.matches(unused).count(), 1, "{page}");
    let export = browser.get("/account/export").await?.json();
    let keys = export["keys"].as_array().context("no keys")?;
    assert_eq!((keys.len(), &keys[0]["last_used_at"]), (2, &serde_json::Value::Null), "{export}");
    assert_eq!(keys[1]["name"], "laptop");
    assert!(keys[1]["last_used_at"].is_string() && !export.to_string().contains("digest"), "{export}");
    Ok(())
}
