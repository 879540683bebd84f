//! Pages of accounts: the way to end a plan, and downloads.

use http_body_util::BodyExt as _;
use transcript_core::{
    directory::{Account, Plan},
    ids::GrantId,
};

use crate::testing::{PaymentSetup, ServiceFixture, TestResponse, request};

/// An account, and the cookie of a browser in which its holder is signed in.
async fn signed_in(service: &ServiceFixture) -> (Account, String) {
    service.account("ann@example.org").await;
    let account = service.app.accounts.admin.show("ann@example.org").await.unwrap().account;
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
    assert!(page.text.contains(overview) && page.text.contains("Manage or end the plan"), "{}", page.text);
    // Browsers apply the rule for forms to the redirect, too.
    assert!(page.header("content-security-policy").unwrap().contains("form-action 'self' https:"));
    assert!(get(&service, "/account/delete", &cookie).await.text.contains(deletion));
    let refused = post(&service, "/account/delete", &cookie, "email=ann%40example.org").await;
    assert_eq!(refused.status, 409);
    assert!(refused.text.contains(deletion) && refused.text.contains("End the plan first"), "{refused:?}");
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

#[tokio::test]
async fn account_export_is_sent_in_pages_and_limited() {
    const ENTRIES: usize = 2_500;
    let service = ServiceFixture::start().await;
    let (account, cookie) = signed_in(&service).await;
    for number in 0..ENTRIES {
        let id = GrantId::new(format!("grant-{number}"));
        service.app.accounts.admin.grant(account.id.as_str(), id, 1, "\"statement\":[]").await.unwrap();
    }
    let export = request("GET", "/account/export", &[("cookie", &cookie)], "");
    let (head, body) = service.http.answer(export, [192, 0, 2, 1].into()).await.into_parts();
    assert_eq!(head.status, 200);
    let (mut body, mut bytes, mut lengths) = (Box::pin(body), Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let part = frame.unwrap().into_data().unwrap();
        lengths.push(part.len());
        bytes.extend_from_slice(&part);
    }
    assert!(lengths.len() >= 3 && lengths.iter().all(|length| *length < 200_000), "{lengths:?}");
    let export: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let statement = export["statement"].as_array().unwrap();
    assert_eq!((statement.len(), &statement[0]["memo"]), (ENTRIES, &"\"statement\":[]".into()));
    assert_eq!(export["account"]["email"], "ann@example.org");
    assert_eq!(export["sessions"][0]["device"], "Firefox");
    assert_eq!((export["jobs"].as_array().unwrap().len(), export["keys"].as_array().unwrap().len()), (0, 1));

    for _ in 1..20 {
        assert_eq!(get(&service, "/account/statement.csv", &cookie).await.status, 200);
    }
    for target in ["/account/export", "/account/statement.csv"] {
        let limited = get(&service, target, &cookie).await;
        assert_eq!(limited.status, 429, "{target}");
        assert!(limited.header("retry-after").is_some(), "{limited:?}");
    }
}
