//! The mails of a facade are sent.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use transcript_core::{
    Result,
    accounts::mail::{MailMessage, Mailer},
};

use crate::{Options, Verbatim};

#[derive(Debug)]
struct FakeMailer(mpsc::UnboundedSender<MailMessage>);

#[async_trait]
impl Mailer for FakeMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        // The receiver may be closed.
        let _ = self.0.send(mail);
        Ok(())
    }
}

#[tokio::test]
async fn registration_sends_its_mail() {
    let verbatim = Verbatim::open(Options::default()).await.unwrap();
    let register = async |name: &str| {
        verbatim.accounts().keys.register(&format!("{name}@example.org"), None).await.unwrap();
    };
    register("before").await;
    let (sent, mut mails) = mpsc::unbounded_channel();
    let sender = verbatim.start_mail(Arc::new(FakeMailer(sent)));
    for name in ["before", "after"] {
        if name == "after" {
            register(name).await;
        }
        let mail = mails.recv().await.unwrap();
        assert_eq!(mail.to, format!("{name}@example.org"));
        assert!(mail.text.contains("http://127.0.0.1:8080/api/v1/verify?token="), "{}", mail.text);
    }
    sender.stop().await;
    verbatim.close().await;
}
