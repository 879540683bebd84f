//! Pages of accounts: the way to end a plan, keys, deletion, and downloads.

use std::time::Duration;

use http_body_util::BodyExt as _;
use transcript_core::{
    Clock as _,
    directory::{Account, PaidPeriod, Plan},
    ids::GrantId,
};

use crate::testing::{ARCHIVED, PaymentSetup, SILENT, ServiceFixture, TestResponse, request};

/// An account, and the cookie of a browser in which its holder is signed in.
async fn signed_in(service: &ServiceFixture) -> (Account, String) {
    signed_in_as(service, "ann@example.org").await
}

async fn signed_in_as(service: &ServiceFixture, email: &str) -> (Account, String) {
    service.account(email).await;
    let account = service.app.accounts.admin.show(email).await.unwrap().account;
    let opened = service.app.accounts.sessions.open(&account.id, "Firefox").await.unwrap();
    (account, format!("__Host-verbatim_session={}", opened.token))
}

async fn get(service: &ServiceFixture, target: &str, cookie: &str) -> TestResponse {
    service.send(request("GET", target, &[("cookie", cookie)], "")).await
}

async fn post(service: &ServiceFixture, target: &str, cookie: &str, form: &str) -> TestResponse {
    let headers = [("cookie", cookie), ("origin", "https://v.example")];
    service.send(request("POST", target, &headers, form)).await
}

#[tokio::test]
async fn account_page_with_subscription_leads_to_its_end() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let (account, cookie) = signed_in(&service).await;
    let (overview, deletion) = ("action=\"account/subscription\"", "href=\"../account#plan\"");
    assert!(!get(&service, "/account", &cookie).await.text.contains(overview));
    assert!(!get(&service, "/account/delete", &cookie).await.text.contains(deletion));
    let back = post(&service, "/account/subscription", &cookie, "").await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, Some("../account")), "{back:?}");

    let subscribe = |account: &Account| Account {
        plan: Plan::Starter,
        customer: Some("cus_1".to_owned()),
        subscription: Some("sub_1".to_owned()),
        ..account.clone()
    };
    service.app.accounts.admin.change(&account.id, subscribe).await.unwrap();
    let page = get(&service, "/account", &cookie).await;
    assert!(page.text.contains(overview) && page.text.contains("Manage or cancel the plan"), "{}", page.text);
    // Browsers apply the rule for forms to the redirect, too.
    assert!(page.header("content-security-policy").unwrap().contains("form-action 'self' https:"));
    assert!(get(&service, "/account/delete", &cookie).await.text.contains(deletion));
    let refused = post(&service, "/account/delete", &cookie, "email=ann%40example.org").await;
    assert_eq!(refused.status, 409);
    assert!(refused.text.contains(deletion) && refused.text.contains("Cancel the plan first"), "{refused:?}");
    for (target, location) in [
        ("/account/subscription", "https://pay.example/cus_1?back=https://v.example/account"),
        ("/account/subscription?hl=de", "https://pay.example/cus_1?back=https://v.example/account?hl=de"),
    ] {
        let opened = post(&service, target, &cookie, "").await;
        assert_eq!((opened.status.as_u16(), opened.header("location")), (303, Some(location)), "{opened:?}");
    }
    // The holder of a blocked account can end its plan.
    service.app.accounts.admin.set_blocked(account.id.as_str(), true).await.unwrap();
    assert!(get(&service, "/account", &cookie).await.text.contains(overview));
    assert_eq!(post(&service, "/account/subscription", &cookie, "").await.status, 303);
}

#[tokio::test]
async fn account_blocked_is_offered_nothing() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let (account, cookie) = signed_in(&service).await;
    for (target, is_blocked) in
        [("/account", false), ("/account/orders", false), ("/account", true), ("/account/orders", true)]
    {
        service.app.accounts.admin.set_blocked(account.id.as_str(), is_blocked).await.unwrap();
        let page = get(&service, target, &cookie).await.text;
        let shown = (page.contains("account/buy\""), page.contains("Your remaining credits are kept."));
        assert_eq!(shown, (!is_blocked, is_blocked), "{target}: {page}");
    }
}

#[tokio::test]
async fn account_shop_marks_plan_of_account() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let (account, cookie) = signed_in(&service).await;
    let now = service.clock.now();
    let paid = move |account: &Account, is_running: bool| {
        let through = if is_running { now.plus(Duration::from_secs(86_400)) } else { now };
        let (credits, from) = (2_000, account.anchor);
        let paid = PaidPeriod { from, through, credits, monthly_credits: credits, anchor_before: from };
        let subscription = Some("sub_1".to_owned());
        Account { plan: Plan::Starter, paid: Some(paid), subscription, ..account.clone() }
    };
    // An overdue plan can be paid.
    for (is_running, offers) in [(true, 0), (false, 1)] {
        let change = move |account: &Account| paid(account, is_running);
        service.app.accounts.admin.change(&account.id, change).await.unwrap();
        for target in ["/account", "/account/orders"] {
            let page = get(&service, target, &cookie).await.text;
            let count = |value: &str| page.matches(&format!("name=\"plan\" value=\"{value}\"")).count();
            assert_eq!((count("starter"), count("pro")), (offers, 1), "{target}: {page}");
            assert_eq!(page.contains("<strong>Your plan</strong>"), is_running, "{target}: {page}");
            assert!(page.contains("A cheaper plan begins with the next month."), "{target}: {page}");
        }
    }
}

#[tokio::test]
async fn order_not_paid_is_continued_by_its_buyer_only() {
    let service = ServiceFixture::start().await;
    let (account, ann) = signed_in(&service).await;
    let (_, ben) = signed_in_as(&service, "ben@example.org").await;
    let bought = post(&service, "/account/buy", &ann, &format!("pack=2k&token={}", "0".repeat(32))).await;
    let checkout = bought.header("location").unwrap().to_owned();
    let (path, _) = checkout.strip_prefix("https://v.example").unwrap().split_once("/sandbox").unwrap();
    let order = path.rsplit('/').next().unwrap();
    let page = get(&service, path, &ann).await;
    assert!(page.text.contains("Continue the payment"), "{}", page.text);
    // Browsers hide the origin of a form from pages without a referrer, and apply the rule for forms to redirects.
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert!(page.header("content-security-policy").unwrap().contains("form-action 'self' https:"));
    for (cookie, pack, status, location) in [
        (&ann, "2k", 303, Some(checkout.as_str())),
        (&ann, "5k", 303, Some("../account/orders")),
        (&ben, "2k", 400, None),
    ] {
        let sent = post(&service, "/account/buy", cookie, &format!("pack={pack}&order={order}")).await;
        assert_eq!((sent.status.as_u16(), sent.header("location")), (status, location), "{sent:?}");
    }
    let other = get(&service, path, &ben).await;
    assert!(!other.text.contains("Continue the payment"), "{}", other.text);
    assert!(!other.text.contains("sign-in?next=checkout"), "{}", other.text);
    assert_eq!(other.header("referrer-policy"), Some("no-referrer"));
    assert!(service.get(path).await.text.contains("sign-in?next=checkout"));
    // A payment page of another order could be paid in addition to the first.
    service.clock.advance(Duration::from_secs(24 * 3_600));
    let late = post(&service, "/account/buy", &ann, &format!("pack=2k&order={order}")).await;
    assert_eq!((late.status.as_u16(), late.header("location")), (303, Some(checkout.as_str())), "{late:?}");
    service.app.accounts.admin.set_blocked(account.id.as_str(), true).await.unwrap();
    let blocked = get(&service, path, &ann).await;
    assert!(!blocked.text.contains("Continue the payment"), "{}", blocked.text);
    assert_eq!(blocked.header("referrer-policy"), Some("no-referrer"));
}

#[tokio::test]
async fn account_form_after_session_end_leads_back_to_its_page() {
    let service = ServiceFixture::start().await;
    for (form, location) in [
        ("/account/keys/create", "../../sign-in?next=account/keys&ended=1"),
        ("/account/sessions/revoke", "../../sign-in?next=account/sessions&ended=1"),
        ("/account/jobs/cancel", "../../sign-in?next=account/jobs&ended=1"),
        ("/account/buy", "../sign-in?next=account/orders&ended=1"),
        ("/account/subscribe", "../sign-in?next=account/orders&ended=1"),
        ("/account/subscription", "../sign-in?next=account&ended=1"),
        ("/account/delete", "../sign-in"),
        ("/sign-out", "sign-in"),
    ] {
        let sent = post(&service, form, "", "name=laptop").await;
        assert_eq!((sent.status.as_u16(), sent.header("location")), (303, Some(location)), "{form}");
    }
    for (page, location) in [
        ("/account/orders", "../sign-in?next=account/orders"),
        ("/account/statement.csv", "../sign-in?next=account/statement"),
        ("/account/export", "../sign-in"),
    ] {
        let sent = service.get(page).await;
        assert_eq!((sent.status.as_u16(), sent.header("location")), (303, Some(location)), "{page}");
    }
    let ended = "Your session has ended. Nothing was changed.";
    let page = service.get("/sign-in?next=account/keys&ended=1").await.text;
    assert!(page.contains(ended) && page.contains("name=\"next\" value=\"account/keys\""), "{page}");
    assert!(!page.contains("email-error"), "{page}");
    assert!(!service.get("/sign-in?next=account/keys").await.text.contains(ended));
}

#[tokio::test]
async fn watch_page_leads_signed_in_visitor_to_keys() {
    let service = ServiceFixture::start().await;
    let (_, cookie) = signed_in(&service).await;
    for (cookie, is_signed_in) in [("", false), (cookie.as_str(), true)] {
        let page = get(&service, &format!("/watch/video_site/{SILENT}"), cookie).await.text;
        let links =
            ["../../account/keys", "../../register"].map(|path| page.contains(&format!("\"{path}\"")));
        assert_eq!(links, [is_signed_in, !is_signed_in], "{page}");
    }
}

#[tokio::test]
async fn account_page_of_sandbox_plan_has_no_portal() {
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    let subscribe = |account: &Account| Account {
        plan: Plan::Starter,
        subscription: Some("sandbox-order-1".to_owned()),
        ..account.clone()
    };
    service.app.accounts.admin.change(&account.id, subscribe).await.unwrap();
    let page = get(&service, "/account", &cookie).await;
    assert!(!page.text.contains("account/subscription"), "it is never renewed: {}", page.text);
}

/// Downloads a file, and returns it with the lengths of its parts.
async fn download(service: &ServiceFixture, target: &str, cookie: &str) -> (String, Vec<usize>) {
    let sent = request("GET", target, &[("cookie", cookie)], "");
    let (head, body) = service.http.answer(sent, [192, 0, 2, 1].into()).await.into_parts();
    assert_eq!(head.status, 200);
    let (mut body, mut bytes, mut lengths) = (Box::pin(body), Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let part = frame.unwrap().into_data().unwrap();
        lengths.push(part.len());
        bytes.extend_from_slice(&part);
    }
    (String::from_utf8(bytes).unwrap(), lengths)
}

#[tokio::test]
async fn account_downloads_are_sent_in_pages_and_limited() {
    const ENTRIES: usize = 2_500;
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    for number in 0..ENTRIES {
        let id = GrantId::new(format!("grant-{number}"));
        service.app.accounts.admin.grant(account.id.as_str(), id, 1, "\"statement\":[]").await.unwrap();
    }
    let (export, lengths) = download(&service, "/account/export", &cookie).await;
    assert!(lengths.len() >= 3 && lengths.iter().all(|length| *length < 200_000), "{lengths:?}");
    let export: serde_json::Value = serde_json::from_str(&export).unwrap();
    let statement = export["statement"].as_array().unwrap();
    assert_eq!((statement.len(), &statement[0]["memo"]), (ENTRIES, &"\"statement\":[]".into()));
    assert_eq!(export["account"]["email"], "ann@example.org");
    assert_eq!(export["sessions"][0]["device"], "Firefox");
    assert_eq!((export["jobs"].as_array().unwrap().len(), export["keys"].as_array().unwrap().len()), (0, 1));

    let (csv, lengths) = download(&service, "/account/statement.csv", &cookie).await;
    assert!(lengths.len() >= 3 && lengths.iter().all(|length| *length < 200_000), "{lengths:?}");
    let rows: Vec<_> = csv.lines().collect();
    let is_row = |row: usize, number: usize| rows[row].ends_with(&format!("grant-{number}\""));
    assert_eq!((rows.len(), rows[0]), (1 + ENTRIES, "time,kind,credits,source,purpose,id"));
    assert!((1..=ENTRIES).all(|row| is_row(row, ENTRIES - row)), "{:?}", &rows[..3]);

    for _ in 2..20 {
        assert_eq!(get(&service, "/account/statement.csv", &cookie).await.status, 200);
    }
    for target in ["/account/export", "/account/statement.csv"] {
        let limited = get(&service, target, &cookie).await;
        assert_eq!(limited.status, 429, "{target}");
        assert!(limited.header("retry-after").is_some(), "{limited:?}");
        assert!(limited.text.contains("Try again in 60 min."), "{}", limited.text);
    }
}

#[tokio::test]
async fn account_statement_names_archived_videos_by_title() {
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    for video in [ARCHIVED, SILENT] {
        let (id, memo) = (GrantId::new(format!("grant-{video}")), format!("transcript video_site/{video}"));
        service.app.accounts.admin.grant(account.id.as_str(), id, 1, &memo).await.unwrap();
    }
    let page = get(&service, "/account/statement", &cookie).await.text;
    let named = format!("<a href=\"../watch/video_site/{ARCHIVED}\"><bdi>A talk</bdi></a>");
    assert!(page.contains(&named) && page.contains(&format!("YouTube {SILENT}</bdi>")), "{page}");
}

/// The key that a page shows.
#[track_caller]
fn shown_key(page: &TestResponse) -> String {
    assert_eq!(page.status, 200, "{page:?}");
    let (_, rest) = page.text.split_once(" id=\"key\" dir=\"ltr\">").unwrap();
    rest.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn account_key_form_sent_twice_shows_same_key() {
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    let keys = &service.app.accounts.keys;
    let old = keys.list(&account.id).await.unwrap().remove(0).key.id;
    for (target, form, count) in [
        ("/account/keys/rotate", format!("key={old}&token=0123456789"), 1),
        ("/account/keys/create", "name=laptop&token=0123456789".to_owned(), 2),
    ] {
        let send = || post(&service, target, &cookie, &form);
        let (first, second) = tokio::join!(send(), send());
        service.clock.advance(Duration::from_secs(5));
        let key = shown_key(&first);
        assert_eq!((shown_key(&second), shown_key(&send().await)), (key.clone(), key.clone()), "{target}");
        assert_eq!(keys.list(&account.id).await.unwrap().len(), count, "{target}");
        let bearer = format!("Bearer {key}");
        let used = service.send(request("GET", "/api/v1/me", &[("authorization", &bearer)], "")).await;
        assert_eq!(used.status, 200, "{target}");
        // A reload later.
        service.clock.advance(Duration::from_secs(30));
        check_list(&send().await);
        assert_eq!(keys.list(&account.id).await.unwrap().len(), count, "{target}");
    }
}

/// Asserts that a response leads to the list of keys, and shows none.
#[track_caller]
fn check_list(response: &TestResponse) {
    let location = response.header("location");
    assert_eq!((response.status.as_u16(), location), (303, Some("../../account/keys")), "{response:?}");
}

#[tokio::test]
async fn account_key_is_shown_to_its_own_form_only() {
    const ROTATE: &str = "/account/keys/rotate";
    const CREATE: &str = "/account/keys/create";
    let service = ServiceFixture::start().await;
    let (account, ann) = signed_in(&service).await;
    let (_, ben) = signed_in_as(&service, "ben@example.org").await;
    let old = service.app.accounts.keys.list(&account.id).await.unwrap().remove(0).key.id;
    let page = get(&service, "/account/keys", &ann).await.text;
    let (_, rotate_form) = page.split_once("account/keys/rotate\"").unwrap();
    let (_, rest) = rotate_form.split_once("name=\"token\" value=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    assert_eq!((token.len(), rotate_form.find("</form>") > rotate_form.find(token)), (32, true), "{page}");

    let form = |token: &str| format!("key={old}&token={token}");
    let rotated = shown_key(&post(&service, ROTATE, &ann, &form(token)).await);
    let other = "0".repeat(32);
    for (cookie, token) in [(&ann, other.as_str()), (&ann, ""), (&ben, token)] {
        check_list(&post(&service, ROTATE, cookie, &form(token)).await);
    }
    assert_eq!(shown_key(&post(&service, ROTATE, &ann, &form(token)).await), rotated);
    let create = format!("name=laptop&token={token}");
    let [first, second] = [&ann, &ben].map(|cookie| post(&service, CREATE, cookie, &create));
    assert_ne!(shown_key(&first.await), shown_key(&second.await));
}

#[tokio::test]
async fn account_new_key_page_has_name_and_tabs() {
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    let form = "name=+my+%3Claptop%3E&token=0123456789";
    let created = post(&service, "/account/keys/create", &cookie, form).await;
    let live = service.app.accounts.keys.list(&account.id).await.unwrap();
    let id_of = |name: Option<&str>| &live.iter().find(|live| live.name.as_deref() == name).unwrap().key.id;
    let rotate = |id: &_| format!("key={id}&token=9876543210");
    let [named, unnamed] = [Some("my <laptop>"), None].map(|name| rotate(id_of(name)));
    let rotated = post(&service, "/account/keys/rotate", &cookie, &named).await;
    for page in [&created, &rotated] {
        assert!(page.text.contains("<h1>Your API key “<bdi>my &lt;laptop&gt;</bdi>”</h1>"), "{}", page.text);
        let tab = "<a href=\"../../account/keys\" aria-current=\"page\">API keys</a>";
        assert!(page.text.contains(tab), "{}", page.text);
    }
    let unnamed = post(&service, "/account/keys/rotate", &cookie, &unnamed).await;
    assert!(unnamed.text.contains("<h1>Your API key</h1>"), "{}", unnamed.text);
}

#[tokio::test]
async fn account_key_that_is_not_live_is_not_shown_as_new() {
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    let keys = &service.app.accounts.keys;
    for end in ["revoke", "rotate"] {
        let form = format!("name={end}&token=0123456789{end}");
        let create = || post(&service, "/account/keys/create", &cookie, &form);
        shown_key(&create().await);
        let live = keys.list(&account.id).await.unwrap();
        let id = &live.iter().find(|live| live.name.as_deref() == Some(end)).unwrap().key.id;
        let ended = format!("key={id}&token=0123456789");
        post(&service, &format!("/account/keys/{end}"), &cookie, &ended).await;
        check_list(&create().await);
    }
}

#[tokio::test]
async fn account_deletion_sent_twice_is_confirmed_twice() {
    let service = ServiceFixture::start().await;
    let (_, cookie) = signed_in(&service).await;
    let send = || post(&service, "/account/delete", &cookie, "email=ann%40example.org");
    // Both are authenticated before either deletes.
    let (first, second) = tokio::join!(send(), send());
    for response in [first, second] {
        let location = response.header("location");
        assert_eq!((response.status.as_u16(), location), (303, Some("../account/deleted")), "{response:?}");
    }
    // Later there is no session, and the page does not say that nothing was changed.
    let late = send().await;
    assert_eq!((late.status.as_u16(), late.header("location")), (303, Some("../sign-in")), "{late:?}");
}

#[tokio::test]
async fn account_deletion_that_fails_says_what_may_have_changed() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let (account, cookie) = signed_in(&service).await;
    // A subscription of a refunded plan, which the provider does not cancel.
    let subscribe = |account: &Account| Account {
        customer: Some("cus_1".to_owned()),
        subscription: Some("sub_1".to_owned()),
        ..account.clone()
    };
    service.app.accounts.admin.change(&account.id, subscribe).await.unwrap();
    let failed = post(&service, "/account/delete", &cookie, "email=ann%40example.org").await;
    assert_eq!(failed.status, 503, "{failed:?}");
    assert!(failed.text.contains("The deletion did not finish."), "{}", failed.text);
    assert!(!failed.text.contains("Nothing was changed"), "{}", failed.text);
}

#[tokio::test]
async fn sign_in_form_names_cookie_that_it_sets() {
    let service = ServiceFixture::start().await;
    let page = service.get("/sign-in?next=account/orders").await.text;
    assert!(page.contains("sets a cookie only to take you back to the page you wanted to see"), "{page}");
    for (form, is_set) in
        [("email=ann%40example.org&next=account/orders", true), ("email=ben%40example.org", false)]
    {
        let sent = post(&service, "/sign-in", "", form).await;
        assert_eq!((sent.status.as_u16(), sent.header("set-cookie").is_some()), (303, is_set), "{sent:?}");
    }
}

#[tokio::test]
async fn sign_in_beyond_limit_names_the_wait() {
    let service = ServiceFixture::start().await;
    let options = service.app.accounts.options();
    let (mails, links) = (options.register_per_network_per_hour, options.verify_per_network_per_minute);
    for (path, form, count, wait) in [
        ("/sign-in", "email=ann%40example.org", mails, "Try again in 60 min."),
        ("/sign-in/confirm", "token=none", links, "Try again in 1 min."),
    ] {
        for _ in 0..count {
            assert_ne!(post(&service, path, "", form).await.status, 429, "{path}");
        }
        let limited = post(&service, path, "", form).await;
        assert!(limited.status == 429 && limited.text.contains(wait), "{limited:?}");
    }
}

#[tokio::test]
async fn another_sign_in_link_leads_to_the_same_page() {
    let service = ServiceFixture::start().await;
    let cookie = "__Host-verbatim_next=account/orders";
    let again = "href=\"../sign-in?next=account/orders\"";
    for page in [
        get(&service, "/sign-in/sent", cookie).await,
        get(&service, "/sign-in/confirm", cookie).await,
        post(&service, "/sign-in/confirm", cookie, "token=none&form=0123456789").await,
    ] {
        assert!(page.text.contains(again), "{page:?}");
    }
    let again = "href=\"../../register?next=account/orders\"";
    let browser = [("cookie", cookie), ("accept", "text/html"), ("origin", "https://v.example")];
    for method in ["GET", "POST"] {
        let refused = service.send(request(method, "/api/v1/verify", &browser, "")).await;
        assert!(refused.status == 400 && refused.text.contains(again), "{refused:?}");
    }
    let elsewhere = get(&service, "/sign-in/sent", "__Host-verbatim_next=//evil.example").await.text;
    assert!(elsewhere.contains("href=\"../sign-in\""), "{elsewhere}");
}

#[tokio::test]
async fn rejected_form_has_the_focus_in_its_field() {
    let service = ServiceFixture::start().await;
    let (_, cookie) = signed_in(&service).await;
    let long = format!("token=0123456789&name={}", "a".repeat(200));
    for (field, page) in [
        ("url", service.get("/?url=nonsense").await),
        ("email", post(&service, "/register", "", "email=ann").await),
        ("email", post(&service, "/account/delete", &cookie, "email=ben%40example.org").await),
        ("name", post(&service, "/account/keys/create", &cookie, &long).await),
    ] {
        let input = page.text.split("<input").find(|input| input.contains(&format!(" id=\"{field}\"")));
        let input = input.and_then(|input| input.split('>').next()).unwrap();
        assert!(input.contains("aria-invalid") && input.contains(" autofocus"), "{input}");
    }
    for target in ["/", "/register"] {
        assert!(!service.get(target).await.text.contains("autofocus"), "{target}");
    }
}
