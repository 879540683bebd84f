//! Registration, sign-in and the pages of accounts, as a browser without scripts uses them.

use anyhow::{Context as _, Result};
use http::Method;
use tempfile::TempDir;

use super::mail_client::{MailClient, create_account, token_from};
use crate::server::harness::{ServerFixture, ServerReply, run, verbatim};

/// A browser with a cookie, whose forms name their origin.
pub(super) struct BrowserFixture<'a> {
    pub(super) server: &'a ServerFixture,
    pub(super) cookie: String,
}

impl<'a> BrowserFixture<'a> {
    pub(super) fn new(server: &'a ServerFixture) -> Self {
        Self { server, cookie: String::new() }
    }

    pub(super) async fn get(&self, path: &str) -> Result<ServerReply> {
        let headers = [("cookie", self.cookie.as_str()), ("accept", "text/html")];
        self.server.send(Method::GET, path, &headers, "").await
    }

    /// Sends a form, and stores the cookie of the response.
    pub(super) async fn post(&mut self, path: &str, form: &str) -> Result<ServerReply> {
        let origin = format!("http://{}", self.server.address());
        let reply = self.post_from(&origin, path, form).await?;
        if let Some(cookie) = reply.headers.get("set-cookie") {
            let cookie = cookie.to_str()?;
            self.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        }
        Ok(reply)
    }

    async fn post_from(&self, origin: &str, path: &str, form: &str) -> Result<ServerReply> {
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("accept", "text/html"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("origin", origin),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ];
        self.server.send(Method::POST, path, &headers, form.to_owned()).await
    }

    /// Signs in by mail.
    pub(super) async fn sign_in(&mut self, outbox: &mut MailClient, email: &str) -> Result<ServerReply> {
        let reply = self.post("/sign-in", &format!("email={email}")).await?;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "sign-in/sent"));
        let token = link_token(&outbox.next().await?)?;
        self.post("/sign-in/confirm", &format!("token={token}")).await
    }
}

/// The token of the sign-in link in a mail.
fn link_token(mail: &str) -> Result<String> {
    let (_, rest) = mail.split_once("/sign-in/confirm?token=").context("a mail without a sign-in link")?;
    Ok(rest.chars().take_while(char::is_ascii_alphanumeric).collect())
}

/// The value of the first hidden field with this name.
pub(super) fn hidden_field(page: &str, name: &str) -> Result<String> {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).context("no such field")?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

pub(super) fn new_key(page: &str) -> Result<String> {
    let start = page.find("vba_").context("no key")?;
    Ok(page[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_registration_signs_in_and_shows_key_once() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let mut browser = BrowserFixture::new(&server);

    let form = browser.get("/register").await?;
    assert_eq!(form.status, 200, "{}", form.text());
    assert!(form.headers.get("set-cookie").is_none(), "no cookie before sign-in");
    let wrong = browser.post("/register", "email=<b>ann").await?;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("This is not an email address") && !wrong.text().contains("<b>ann"));
    let sent = browser.post("/register", "email=Ann%40Example.org").await?;
    assert_eq!((sent.status.as_u16(), sent.header("location")), (303, "sign-in/sent"));
    assert!(browser.get("/sign-in/sent").await?.text().contains("Check your inbox"));

    let mail = outbox.next().await?;
    let token = token_from(&mail)?;
    let link = format!("/api/v1/verify?token={token}&hl=en");
    assert!(mail.contains(&link), "{mail}");
    assert_eq!(server.get(&link).await?.status, 409, "a mail scanner uses up the link");
    let confirm = browser.get(&link).await?;
    assert!(confirm.text().contains("<form method=\"post\""), "{}", confirm.text());
    let issued = browser.post("/api/v1/verify", &format!("token={token}")).await?;
    assert_eq!(issued.status, 200, "{}", issued.text());
    assert!(issued.header("set-cookie").contains("HttpOnly; SameSite=Lax"));
    assert_eq!(issued.header("cache-control"), "no-store");
    let key = new_key(&issued.text())?;
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 200);
    assert!(
        issued.text().contains(&format!("Authorization: Bearer {key}")),
        "a request that is ready to run"
    );

    // The page that is sent again shows no key; the browser stays signed in.
    let again = browser.post("/api/v1/verify", &format!("token={token}")).await?;
    assert_eq!(again.status, 400);
    assert!(!again.text().contains("vba_") && !again.text().contains("POST /api"), "{}", again.text());
    let account = browser.get("/account").await?;
    assert_eq!((account.status.as_u16(), account.header("cache-control")), (200, "no-store"));
    assert!(account.text().contains("ann@example.org") && account.text().contains("200 of 200 left"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_mail_has_language_of_form() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let words = data.path().join("words");
    std::fs::create_dir(&words)?;
    let head = "[language]\ntag = \"nl\"\nname = \"Nederlands\"\ndirection = \"ltr\"\n";
    std::fs::write(words.join("nl.toml"), format!("{head}[mail]\ngreeting = \"Hallo,\"\n"))?;
    let words = words.display().to_string();
    let settings = [
        ("VERBATIM_PAGES__MESSAGES", words.as_str()),
        ("VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR", "10"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let mut browser = BrowserFixture::new(&server);
    // A new address, then one with an account.
    for (path, parts) in [
        ("/register?hl=ja", ["lang=\"ja\"", "こんにちは。", "/api/v1/verify?token="]),
        ("/register?hl=ar", ["<body dir=\"rtl\"", "مرحبًا،", "/api/v1/verify?token="]),
        // The operator's words, and English where there are none.
        ("/register?hl=nl", ["lang=\"nl\"", "Hallo,", "We received a request for an account"]),
        ("/register?hl=xx", ["lang=\"en\"", "Hello,", "We received a request for an account"]),
    ] {
        browser.post(path, "email=ann%40example.org").await?;
        let mail = outbox.next().await?;
        for part in parts {
            assert!(mail.replace("\r\n", " ").contains(part), "{path} {part}: {mail}");
        }
    }
    create_account(&server, &mut outbox, "bob@example.org").await?;
    browser.post("/sign-in?hl=fr", "email=bob%40example.org").await?;
    let mail = outbox.next().await?;
    let link = format!("/sign-in/confirm?token={}&hl=fr", link_token(&mail)?);
    assert!(mail.contains("Ouvrez ce lien") && mail.contains(&link), "{mail}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_sign_in_link_is_single_use_and_survives_scanners() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);

    for path in ["/account", "/account/keys", "/account/statement.csv", "/account/export"] {
        let reply = browser.get(path).await?;
        assert_eq!(reply.status, 303, "{path}");
        assert!(reply.header("location").contains("sign-in"), "{path}: {}", reply.header("location"));
    }
    browser.post("/sign-in", "email=ann%40example.org").await?;
    let token = link_token(&outbox.next().await?)?;
    for _ in 0..3 {
        let scanned = browser.get(&format!("/sign-in/confirm?token={token}")).await?;
        assert_eq!(scanned.status, 200, "a scanner's GET does not use up the link");
        assert!(scanned.headers.get("set-cookie").is_none());
    }
    let opened = browser.post("/sign-in/confirm", &format!("token={token}")).await?;
    assert_eq!((opened.status.as_u16(), opened.header("location")), (303, "../account"));
    assert_eq!(browser.get("/account").await?.status, 200);
    let used = BrowserFixture::new(&server).post("/sign-in/confirm", &format!("token={token}")).await?;
    assert_eq!(used.status, 400);
    assert!(used.text().contains("Send another link"), "{}", used.text());
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 200, "signing in leaves the key");

    // A new sign-in opens a session with a new token, and ends the one of the cookie.
    let first = browser.cookie.clone();
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    assert_ne!(browser.cookie, first);
    let fixed = BrowserFixture { server: &server, cookie: first };
    assert_eq!(fixed.get("/account").await?.status, 303, "the earlier session has ended");
    let forged = BrowserFixture { server: &server, cookie: format!("verbatim_session={}", "a".repeat(64)) };
    assert_eq!(forged.get("/account").await?.status, 303);

    // `next` leads to pages of this service only.
    for (next, location) in [
        ("account/orders", "account/orders"),
        ("//evil.example", "account"),
        ("https://evil.example/account", "account"),
        ("account%5C..%2F%2Fevil.example", "account"),
    ] {
        let reply = browser.get(&format!("/sign-in?next={next}")).await?;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (303, location), "{next}");
    }
    let out = browser.post("/sign-out", "").await?;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    Ok(())
}

/// Where a sign-in leads whose form has this `next`, in a browser with this cookie.
async fn location_after_sign_in(
    server: &ServerFixture,
    outbox: &mut MailClient,
    next: &str,
    cookie: &str,
) -> Result<String> {
    let mut browser = BrowserFixture { server, cookie: cookie.to_owned() };
    let sent = browser.post("/sign-in", &format!("email=ann%40example.org&next={next}")).await?;
    assert_eq!((sent.status.as_u16(), sent.header("location")), (303, "sign-in/sent"));
    let token = link_token(&outbox.next().await?)?;
    let opened = browser.post("/sign-in/confirm", &format!("token={token}")).await?;
    assert_eq!(opened.status, 303, "{}", opened.text());
    if browser.cookie.contains("verbatim_next") || !cookie.is_empty() {
        let cookies: Vec<_> = opened.headers.get_all("set-cookie").iter().collect();
        assert!(cookies.iter().any(|cookie| cookie.to_str().is_ok_and(|text| text.contains("next=;"))));
    }
    Ok(opened.header("location").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_next_survives_mailed_link_and_stays_on_site() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[("VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR", "10")])?;
    create_account(&server, &mut outbox, "ann@example.org").await?;
    let form = BrowserFixture::new(&server).get("/sign-in?next=account/orders").await?.text();
    assert_eq!(hidden_field(&form, "next")?, "account/orders");
    assert!(form.contains("href=\"register?next=account/orders\""), "{form}");
    let mut location = async |next, cookie| location_after_sign_in(&server, &mut outbox, next, cookie).await;
    assert_eq!(location("account%2Forders", "").await?, "../account/orders");
    assert_eq!(location("%2F%2Fevil.example", "").await?, "../account");
    assert_eq!(location("https%3A%2F%2Fevil.example%2Faccount", "").await?, "../account");
    // A cookie that another page of the host has set.
    assert_eq!(location("", "verbatim_next=//evil.example").await?, "../account");
    // That of an earlier form, which may be another person's.
    assert_eq!(location("", "verbatim_next=account/orders").await?, "../account");
    // Beyond the limit the page has the form again, with its content.
    let mut browser = BrowserFixture::new(&server);
    let sent = "email=ann%40example.org&next=account%2Forders";
    let mut limited = browser.post("/sign-in", sent).await?;
    for _ in 0..50 {
        if limited.status == 429 {
            break;
        }
        limited = browser.post("/sign-in", sent).await?;
    }
    assert_eq!(limited.status, 429);
    assert_eq!(hidden_field(&limited.text(), "next")?, "account/orders");
    assert!(limited.text().contains("value=\"ann@example.org\""), "{}", limited.text());
    assert!(!limited.header("retry-after").is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_next_is_linked_after_registration() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let mut browser = BrowserFixture::new(&server);
    browser.post("/register", "email=ann%40example.org&next=account%2Forders").await?;
    let token = token_from(&outbox.next().await?)?;
    let issued = browser.post("/api/v1/verify", &format!("token={token}")).await?;
    assert_eq!(issued.status, 200, "{}", issued.text());
    assert!(issued.text().contains("<a href=\"../../account/orders\">Continue"), "{}", issued.text());
    let cookies: Vec<_> = issued.headers.get_all("set-cookie").iter().collect();
    assert!(cookies.iter().any(|cookie| cookie.to_str().is_ok_and(|text| text.contains("next=;"))));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_mailed_button_pressed_twice_has_one_result() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    // The first response of a double click is lost, and with it its cookie.
    let press = async |path: &str, form: &str| BrowserFixture::new(&server).post(path, form).await;
    let open = async |path: &str, token: &str| -> Result<String> {
        let page = BrowserFixture::new(&server).get(&format!("{path}?token={token}")).await?.text();
        Ok(format!("token={token}&form={}", hidden_field(&page, "form")?))
    };
    press("/register", "email=ann%40example.org").await?;
    let (path, token) = ("/api/v1/verify", token_from(&outbox.next().await?)?);
    let (form, other) = (open(path, &token).await?, open(path, &token).await?);
    let (one, two) = (press(path, &form).await?, press(path, &form).await?);
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200), "{}", two.text());
    let key = new_key(&one.text())?;
    assert_eq!(new_key(&two.text())?, key);
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 200);
    assert_eq!(press(path, &other).await?.status, 400, "another reader of the link");
    let forged = form.replace(&token, &"0".repeat(64));
    assert_eq!(press(path, &forged).await?.status, 400);

    press("/sign-in", "email=ann%40example.org").await?;
    let (path, token) = ("/sign-in/confirm", link_token(&outbox.next().await?)?);
    let (form, other) = (open(path, &token).await?, open(path, &token).await?);
    let mut browser = BrowserFixture::new(&server);
    assert_eq!(press(path, &form).await?.status, 303);
    // Also a browser that has the cookie stays signed in.
    for _ in 0..2 {
        assert_eq!(browser.post(path, &form).await?.status, 303);
        assert_eq!(browser.get("/account").await?.status, 200);
    }
    assert_eq!(press(path, &other).await?.status, 400, "another reader of the link");
    browser.post("/sign-out", "").await?;
    assert_eq!(press(path, &form).await?.status, 400, "the session has ended");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_forms_of_other_sites_are_rejected() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let keys = browser.get("/account/keys").await?.text();
    let live = hidden_field(&keys, "key")?;
    for (path, form) in [
        ("/register", "email=ben%40example.org".to_owned()),
        ("/sign-in", "email=ann%40example.org".to_owned()),
        ("/sign-in/confirm", format!("token={}", "0".repeat(64))),
        ("/sign-out", String::new()),
        ("/account/keys/create", format!("name=laptop&token={}", "0".repeat(32))),
        ("/account/keys/rotate", format!("key={live}")),
        ("/account/keys/revoke", format!("key={live}")),
        ("/account/jobs/cancel", "job=job_1".to_owned()),
        ("/account/buy", format!("pack=1k&token={}", "0".repeat(32))),
        ("/account/subscribe", format!("plan=pro&token={}", "0".repeat(32))),
        ("/account/subscription", String::new()),
        ("/account/sessions/revoke", String::new()),
        ("/account/delete", "email=ann%40example.org".to_owned()),
    ] {
        for origin in ["https://evil.example", "null"] {
            let reply = browser.post_from(origin, path, &form).await?;
            assert_eq!(reply.status, 403, "{path} from {origin}");
        }
    }
    assert_eq!(browser.get("/account").await?.status, 200);
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_purchase_is_one_order_and_one_receipt() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    create_account(&server, &mut outbox, "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let token = hidden_field(&browser.get("/account").await?.text(), "token")?;
    let form = format!("pack=2k&token={token}");
    // A double click sends the form twice.
    let buy = "/account/buy?hl=de";
    let (one, two) = (browser.post(buy, &form).await?, browser.post(buy, &form).await?);
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (303, 303), "{}", one.text());
    assert_eq!(one.header("location"), two.header("location"));
    let orders = browser.get("/account/orders").await?.text();
    assert_eq!(orders.matches("href=\"../account/orders/order-").count(), 1, "{orders}");

    // An order that is not paid has no receipt, and its page leads the buyer back to the payment.
    let (_, rest) = orders.split_once("href=\"../account/orders/").context("no order")?;
    let open = rest.split('"').next().unwrap_or_default();
    let facts = browser.get(&format!("/account/orders/{open}")).await?.text();
    assert!(facts.contains("<h1>Order</h1>") && !facts.contains("<h1>Receipt</h1>"), "{facts}");
    let again = browser.post(buy, &format!("pack=2k&order={open}")).await?;
    assert_eq!((again.status, again.header("location")), (one.status, one.header("location")));

    let checkout = one.header("location").split_once(server.address()).context("another host")?.1.to_owned();
    assert!(checkout.ends_with("&hl=de"), "{checkout}");
    let page = browser.get(&checkout).await?.text();
    let secret = hidden_field(&page, "token")?;
    let path = checkout.split('?').next().unwrap_or_default().to_owned();
    let paid = browser.post(&path, &format!("token={secret}&deed=pay")).await?;
    assert_eq!(paid.status, 303);
    let order = path.split('/').nth(2).context("no order")?.to_owned();
    let receipt = outbox.next().await?;
    // The receipt has the language of the page with the button.
    for part in ["Subject: Ihr Beleg von Verbatim", "Gekauft: 2.000 Credits. Preis: 20,00\u{a0}$.", &order] {
        assert!(receipt.replace("\r\n", " ").contains(part), "{part}: {receipt}");
    }
    let status = browser.get(&format!("/checkout/{order}")).await?.text();
    assert!(status.contains("Paid") && status.contains("2,200 credits"), "{status}");
    // A refund in part is shown with its amount.
    browser.post(&path, &format!("token={secret}&deed=refund&cents=501")).await?;
    let receipt = browser.get(&format!("/account/orders/{order}")).await?.text();
    assert!(receipt.contains("$5.01 of $20.00") && receipt.contains("Refunded"), "{receipt}");
    // The ledger takes back as many as are left.
    assert!(receipt.contains("<dt>Credits of the refunded amount</dt><dd>501</dd>"), "{receipt}");
    assert!(receipt.contains("<h1>Receipt</h1>") && receipt.contains("<dt>Seller</dt>"), "{receipt}");
    let stranger = BrowserFixture::new(&server).get(&format!("/account/orders/{order}")).await?;
    assert_eq!(stranger.status, 303);
    // No second receipt for the same payment, not even by the refund.
    browser.post("/sign-in", "email=ann%40example.org").await?;
    link_token(&outbox.next().await?)?;

    let statement = browser.get("/account/statement").await?.text();
    assert!(statement.contains("<td>2,000 credits</td>") && statement.contains("+2,000"), "{statement}");
    let csv = browser.get("/account/statement.csv").await?;
    assert!(csv.header("content-disposition").contains("statement.csv"));
    assert!(csv.text().contains(",added,2000,\"purchased\",\"pack 2k\","), "{}", csv.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_sessions_are_listed_revoked_and_survive_restart() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let mut server = ServerFixture::start(&data, &[])?;
    create_account(&server, &mut outbox, "ann@example.org").await?;
    let (mut here, mut there) = (BrowserFixture::new(&server), BrowserFixture::new(&server));
    here.sign_in(&mut outbox, "ann%40example.org").await?;
    there.sign_in(&mut outbox, "ann%40example.org").await?;
    let list = here.get("/account/sessions").await?.text();
    assert_eq!(list.matches("Firefox, Linux").count(), 2, "{list}");
    let other = hidden_field(&list, "session")?;
    here.post("/account/sessions/revoke", &format!("session={other}")).await?;
    assert_eq!(there.get("/account").await?.status, 303);
    let cookie = here.cookie.clone();
    drop(there);

    // A killed server loses no session.
    drop(here);
    drop(server);
    server = ServerFixture::start(&data, &[])?;
    let mut here = BrowserFixture { server: &server, cookie };
    assert_eq!(here.get("/account").await?.status, 200);
    let export = here.get("/account/export").await?;
    assert_eq!(export.json()["account"]["email"], "ann@example.org");
    let wrong = here.post("/account/delete", "email=ben%40example.org").await?;
    assert_eq!(wrong.status, 400);
    let operator = |command: &str| run(verbatim(data.path(), &["accounts", command, "ann@example.org"]), b"");
    assert!(operator("block")?.status.success());
    let blocked = here.post("/account/delete", "email=ann%40example.org").await?;
    assert_eq!(blocked.status, 409);
    assert!(blocked.text().contains("Please write to the operator of this service."), "{}", blocked.text());
    assert!(operator("unblock")?.status.success());
    let deleted = here.post("/account/delete", "email=Ann%40example.org").await?;
    assert_eq!((deleted.status.as_u16(), deleted.header("location")), (303, "../account/deleted"));
    let ended = BrowserFixture { server: &server, cookie: here.cookie.clone() };
    assert_eq!(ended.get("/account").await?.status, 303);
    let mails = std::fs::read_dir(data.path().join("outbox"))?.count();
    assert_eq!(mails, 0, "files with the address and links of the deleted account");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_page_mail_forms_are_limited_and_reveal_nothing() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR", "3")])?;
    create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut browser = BrowserFixture::new(&server);
    let known = browser.post("/sign-in", "email=ann%40example.org").await?;
    let unknown = browser.post("/sign-in", "email=ben%40example.org").await?;
    assert_eq!(known.body, unknown.body);
    assert_eq!((known.status, known.header("location")), (unknown.status, unknown.header("location")));
    let limited = browser.post("/register", "email=cleo%40example.org").await?;
    assert_eq!(limited.status, 429);
    assert!(limited.headers.contains_key("retry-after"));
    assert!(limited.text().contains("too many attempts"), "{}", limited.text());
    assert!(limited.text().contains("value=\"cleo@example.org\""), "the input is lost: {}", limited.text());
    Ok(())
}
