//! Starts the mail sender.

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::accounts::mail::{MailBranding, MailSender, MailSenderDeps, MailSenderHandle, Mailer};

use crate::Verbatim;

impl Verbatim {
    /// Starts sending the queued mails, and every later one, through `mailer`.
    ///
    /// Without it mails stay queued, so a server of the v1 API calls this once. Must be called inside a Tokio runtime.
    pub fn start_mail(&self, mailer: Arc<dyn Mailer>) -> MailSenderHandle {
        let parts = self.accounts().deps();
        let branding = MailBranding { base_url: parts.options.base_url.clone(), ..MailBranding::default() };
        let parts = MailSenderDeps {
            outbox: Arc::clone(&parts.outbox),
            directory: Arc::clone(&parts.directory),
            mailer,
            clock: Arc::clone(&parts.clock),
            random: Arc::clone(&parts.random),
            branding,
        };
        MailSender::new(parts, self.outbox_notifier.clone()).start(&Handle::current())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;
    use transcript_core::{Result, accounts::mail::MailMessage};

    use super::*;
    use crate::Options;

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
            verbatim.accounts().register(&format!("{name}@example.org"), None).await.unwrap();
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
}
