//! Against a real mail server, in every mood.

#[path = "../../../../tests/smtp/smtpd.rs"]
mod smtpd;

use std::time::Instant;

use smtpd::Smtpd;

use super::*;
use crate::config::{Raw, Setting};

const FROM: &str = "Verbatim <no-reply@v.example>";

fn mail() -> Mail {
    mail_to("ann@example.org")
}

fn mail_to(to: &str) -> Mail {
    Mail {
        to: to.to_owned(),
        subject: "A subject".to_owned(),
        // A line that begins with a dot must arrive as it is.
        text: "Hello,\n.\n..two\nhttps://v.example/?token=0123\n".to_owned(),
        html: "<p>Hello</p>\n".to_owned(),
    }
}

/// One that waits for as long as it does in production.
fn mailer(url: &str, roots: &str) -> SmtpMailer {
    let url = SmtpUrl::read(&Raw::Text(url.to_owned())).unwrap();
    SmtpMailer::new(&url, FROM.parse().unwrap(), roots.as_bytes()).unwrap()
}

fn clear(server: &Smtpd) -> SmtpMailer {
    mailer(&format!("smtp://127.0.0.1:{}", server.port), "")
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_written() {
    let mut server = Smtpd::start(&[]).unwrap();
    clear(&server).send(mail()).await.unwrap();
    let taken = server.line().unwrap();
    assert_eq!((&taken["from"], &taken["to"][0]), (&"no-reply@v.example".into(), &"ann@example.org".into()));
    // The sender's domain greets, unless the address names somebody else.
    assert_eq!((&taken["hello"], &taken["tls"]), (&"v.example".into(), &false.into()));
    let data = taken["data"].as_str().unwrap();
    assert!(data.contains("Hello,\r\n.\r\n..two\r\nhttps://v.example/?token=0123\r\n"), "{data}");
    assert!(data.contains("From: Verbatim <no-reply@v.example>\r\n"), "{data}");
    mailer(&format!("smtp://127.0.0.1:{}/else.example", server.port), "").send(mail()).await.unwrap();
    assert_eq!(server.line().unwrap()["hello"], "else.example");
}

#[tokio::test]
async fn tls_and_authentication_work_together() {
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
        // A wrong password is the operator's to mend: no mail is lost by it.
        assert_eq!(
            (refused.retry(), refused.to_string().as_str()),
            (Retry::Backoff, "the mail server refused us (535)")
        );
        // A certificate of nobody that is known.
        let refused = mailer(&good, "").send(mail()).await.unwrap_err();
        assert_eq!(refused.retry(), Retry::Backoff);
        assert!(!refused.to_string().contains("p@ss"), "{refused}");
    }
}

#[tokio::test]
async fn nothing_goes_out_in_the_clear_where_tls_is_required() {
    let mut server = Smtpd::start(&["--user", "me", "--password", "hush"]).unwrap();
    let url = format!("smtp://me:hush@localhost:{}?tls=required", server.port);
    let refused = mailer(&url, &server.authority).send(mail()).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Backoff);
    assert!(refused.to_string().contains("STARTTLS"), "{refused}");
    // Whoever leaves it to the server gets it done.
    let url = format!("smtp://me:hush@localhost:{}?tls=opportunistic", server.port);
    mailer(&url, &server.authority).send(mail()).await.unwrap();
    assert_eq!(server.line().unwrap()["tls"], false);
}

#[tokio::test]
async fn what_is_said_about_the_mail_is_told_from_what_is_said_about_us() {
    let mut server = Smtpd::start(&[]).unwrap();
    for (mode, retry) in [
        ("mail:451", Retry::Backoff),
        ("mail:550", Retry::Never),
        ("rcpt:450", Retry::Backoff),
        ("rcpt:550", Retry::Never),
        ("rcpt:530", Retry::Backoff),
        ("data:452", Retry::Backoff),
        ("data:554", Retry::Never),
        ("greeting:421", Retry::Backoff),
        ("greeting:554", Retry::Backoff),
        ("drop:greeting", Retry::Backoff),
        ("drop:data", Retry::Backoff),
    ] {
        server.mode(mode).unwrap();
        let refused = clear(&server).send(mail()).await.unwrap_err();
        assert_eq!(refused.retry(), retry, "{mode}: {refused}");
        // What a server says may name the recipient.
        assert!(!refused.to_string().contains("ann@"), "{mode}: {refused}");
    }
    server.mode("accept").unwrap();
    clear(&server).send(mail()).await.unwrap();
    server.line().unwrap();
}

#[tokio::test]
async fn a_server_that_stalls_is_given_up() {
    let mut server = Smtpd::start(&[]).unwrap();
    let hasty = Patience {
        greeting: Duration::from_secs(2),
        all: Duration::from_secs(3),
        quit: Duration::from_secs(1),
    };
    let mailer = clear(&server).with_patience(hasty);
    for (mode, limit) in [("stall:greeting", 2), ("stall:data", 3)] {
        server.mode(mode).unwrap();
        let began = Instant::now();
        let refused = mailer.send(mail()).await.unwrap_err();
        assert_eq!(
            (refused.retry(), refused.to_string().as_str()),
            (Retry::Backoff, "the mail server did not answer in time")
        );
        assert!(began.elapsed() >= Duration::from_secs(limit), "{mode}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_too_early_may_get_a_mail_twice() {
    let mut server = Smtpd::start(&[]).unwrap();
    server.mode("late:data").unwrap();
    // It has the mail, and nobody but itself knows.
    let unknown = clear(&server).send(mail()).await.unwrap_err();
    assert_eq!(unknown.retry(), Retry::Backoff);
    assert_eq!(server.line().unwrap()["to"][0], "ann@example.org");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_again() {
    let server = Smtpd::start(&[]).unwrap();
    let mailer = clear(&server);
    drop(server);
    let refused = mailer.send(mail()).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Backoff);
    assert!(refused.to_string().contains("refused"), "{refused}");
}

#[tokio::test]
async fn addresses_of_other_scripts_need_a_server_that_takes_them() {
    let mut server = Smtpd::start(&["--utf8"]).unwrap();
    clear(&server).send(mail_to("jürgen@example.org")).await.unwrap();
    assert_eq!(server.line().unwrap()["to"][0], "jürgen@example.org");
    let mut plain = Smtpd::start(&[]).unwrap();
    let refused = clear(&plain).send(mail_to("jürgen@example.org")).await.unwrap_err();
    assert_eq!(refused.retry(), Retry::Never, "{refused}");
    clear(&plain).send(mail_to("ann@bücher.example")).await.unwrap();
    assert_eq!(plain.line().unwrap()["to"][0], "ann@xn--bcher-kva.example");
}
