//! Tests against a real mail server, including its failures.

#[path = "../../../../tests/smtp/smtpd.rs"]
mod smtpd;

use std::time::Instant;

use smtpd::Smtpd;

use super::*;
use crate::config::{ParseSetting, RawSettings};

const FROM: &str = "Verbatim <no-reply@v.example>";

fn mail() -> MailMessage {
    mail_to("ann@example.org")
}

fn mail_to(to: &str) -> MailMessage {
    MailMessage {
        to: to.to_owned(),
        subject: "A subject".to_owned(),
        // A line that begins with a dot must arrive unchanged.
        text: "Hello,\n.\n..two\nhttps://v.example/?token=0123\n".to_owned(),
        html: "<p>Hello</p>\n".to_owned(),
    }
}

/// Creates a mailer with the timeouts of production.
fn mailer(url: &str, roots: &str) -> SmtpMailer {
    let url = SmtpUrl::read(&RawSettings::Text(url.to_owned())).unwrap();
    SmtpMailer::new(&url, FROM.parse().unwrap(), roots.as_bytes()).unwrap()
}

fn unencrypted(server: &Smtpd) -> SmtpMailer {
    mailer(&format!("smtp://127.0.0.1:{}", server.port), "")
}

#[tokio::test]
async fn smtp_mail_arrives_unchanged() {
    let mut server = Smtpd::start(&[]).unwrap();
    unencrypted(&server).send(mail()).await.unwrap();
    let taken = server.line().unwrap();
    assert_eq!((&taken["from"], &taken["to"][0]), (&"no-reply@v.example".into(), &"ann@example.org".into()));
    // The EHLO name is the sender's domain, unless the address names another.
    assert_eq!((&taken["hello"], &taken["tls"]), (&"v.example".into(), &false.into()));
    let data = taken["data"].as_str().unwrap();
    assert!(data.contains("Hello,\r\n.\r\n..two\r\nhttps://v.example/?token=0123\r\n"), "{data}");
    assert!(data.contains("From: Verbatim <no-reply@v.example>\r\n"), "{data}");
    mailer(&format!("smtp://127.0.0.1:{}/else.example", server.port), "").send(mail()).await.unwrap();
    assert_eq!(server.line().unwrap()["hello"], "else.example");
}

#[tokio::test]
async fn smtp_tls_with_authentication_works() {
    for (tls, scheme, query) in [
        ("starttls", "smtp", "?tls=required"),
        ("starttls", "smtp", "?tls=opportunistic"),
        ("wrapper", "smtps", ""),
    ] {
        let mut server =
            Smtpd::start(&["--tls", tls, "--user", "me@v.example", "--password", "p@ss w/ord"]).unwrap();
        let url =
            |password: &str| format!("{scheme}://me%40v.example:{password}@localhost:{}{query}", server.port);
        let (good, wrong) = (url("p%40ss%20w%2Ford"), url("hush"));
        mailer(&good, &server.authority).send(mail()).await.unwrap();
        let taken = server.line().unwrap();
        assert_eq!((&taken["tls"], &taken["user"]), (&true.into(), &"me@v.example".into()), "{tls} {query}");
        let refused = mailer(&wrong, &server.authority).send(mail()).await.unwrap_err();
        // A wrong password is fixed by the operator: no mail is lost.
        assert_eq!(
            (refused.retry(), refused.to_string().as_str()),
            (Retry::Backoff, "the mail server refused the connection (535)")
        );
        // A certificate of an unknown authority.
        let refused = mailer(&good, "").send(mail()).await.unwrap_err();
        assert_eq!(refused.retry(), Retry::Backoff);
        assert!(!refused.to_string().contains("p@ss"), "{refused}");
    }
}

#[tokio::test]
async fn smtp_required_tls_missing_fails() {
    let mut server = Smtpd::start(&["--user", "me", "--password", "hush"]).unwrap();
    let url = format!("smtp://me:hush@localhost:{}?tls=required", server.port);
    let refused = mailer(&url, &server.authority).send(mail()).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Backoff);
    assert!(refused.to_string().contains("STARTTLS"), "{refused}");
    // With `opportunistic` the mail is sent unencrypted.
    let url = format!("smtp://me:hush@localhost:{}?tls=opportunistic", server.port);
    mailer(&url, &server.authority).send(mail()).await.unwrap();
    assert_eq!(server.line().unwrap()["tls"], false);
}

#[tokio::test]
async fn smtp_replies_are_mapped_to_retries() {
    let mut server = Smtpd::start(&[]).unwrap();
    for (mode, retry) in [
        ("mail:451", Retry::Backoff),
        // The sender concerns all mails: none is lost while the operator corrects it.
        ("mail:550", Retry::Backoff),
        ("mail:553", Retry::Backoff),
        ("mail:530", Retry::Backoff),
        ("rcpt:450", Retry::Backoff),
        ("rcpt:550", Retry::Never),
        ("rcpt:530", Retry::Backoff),
        ("rcpt:553 5.7.1 <no-reply@v.example>: Sender address rejected: not owned by user", Retry::Backoff),
        ("data:452", Retry::Backoff),
        ("data:554", Retry::Never),
        ("greeting:421", Retry::Backoff),
        ("greeting:554", Retry::Backoff),
        ("drop:greeting", Retry::Backoff),
        ("drop:data", Retry::Backoff),
    ] {
        server.mode(mode).unwrap();
        let refused = unencrypted(&server).send(mail()).await.unwrap_err();
        assert_eq!(refused.retry(), retry, "{mode}: {refused}");
        // A reply of the server may contain the recipient.
        assert!(!refused.to_string().contains("ann@"), "{mode}: {refused}");
        let is_of_sender = refused.to_string().contains("check mail.from");
        let expected = ["mail:550", "mail:553"].contains(&mode) || mode.contains("Sender address rejected");
        assert_eq!(is_of_sender, expected, "{mode}: {refused}");
    }
    server.mode("accept").unwrap();
    unencrypted(&server).send(mail()).await.unwrap();
    server.line().unwrap();
}

#[tokio::test]
async fn smtp_stalled_server_times_out() {
    let mut server = Smtpd::start(&[]).unwrap();
    let (short, long) = (Duration::from_secs(2), Duration::from_secs(60));
    for (mode, greeting, all) in [("stall:greeting", short, long), ("stall:data", long, short)] {
        let timeouts = SmtpTimeouts { greeting, all, quit: Duration::from_secs(1) };
        let mailer = unencrypted(&server).with_timeouts(timeouts);
        server.mode(mode).unwrap();
        let began = Instant::now();
        let refused = mailer.send(mail()).await.unwrap_err();
        assert_eq!(
            (refused.retry(), refused.to_string().as_str()),
            (Retry::Backoff, "the mail server timed out")
        );
        assert!((short..long).contains(&began.elapsed()), "{mode}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn smtp_lost_reply_is_retried() {
    let mut server = Smtpd::start(&[]).unwrap();
    server.mode("late:data").unwrap();
    // The server has the mail, but the client does not know.
    let unknown = unencrypted(&server).send(mail()).await.unwrap_err();
    assert_eq!(unknown.retry(), Retry::Backoff);
    assert_eq!(server.line().unwrap()["to"][0], "ann@example.org");
}

#[tokio::test]
async fn smtp_unreachable_server_is_retried() {
    let server = Smtpd::start(&[]).unwrap();
    let mailer = unencrypted(&server);
    drop(server);
    let refused = mailer.send(mail()).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Backoff);
    assert!(refused.to_string().contains("refused"), "{refused}");
}

#[tokio::test]
async fn smtp_international_address_requires_smtputf8() {
    let mut server = Smtpd::start(&["--utf8"]).unwrap();
    unencrypted(&server).send(mail_to("jürgen@example.org")).await.unwrap();
    assert_eq!(server.line().unwrap()["to"][0], "jürgen@example.org");
    let mut plain = Smtpd::start(&[]).unwrap();
    let refused = unencrypted(&plain).send(mail_to("jürgen@example.org")).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Never, "{refused}");
    unencrypted(&plain).send(mail_to("ann@bücher.example")).await.unwrap();
    assert_eq!(plain.line().unwrap()["to"][0], "ann@xn--bcher-kva.example");
}
