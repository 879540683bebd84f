//! Sending the mails that registrations queue.

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::accounts::mail::{Letterhead, MailSender, Mailer, RunningSender, SenderParts};

use crate::Verbatim;

impl Verbatim {
    /// Begins to send the mails that wait, and every one that is queued from now on, through `mailer`.
    ///
    /// Without it mails wait: whoever serves Surface B calls this once. It must be called inside a tokio
    /// runtime.
    pub fn start_mail(&self, mailer: Arc<dyn Mailer>) -> RunningSender {
        let parts = self.accounts().parts();
        let letterhead = Letterhead { base_url: parts.options.base_url.clone(), ..Letterhead::default() };
        let parts = SenderParts {
            outbox: Arc::clone(&parts.outbox),
            directory: Arc::clone(&parts.directory),
            mailer,
            clock: Arc::clone(&parts.clock),
            random: Arc::clone(&parts.random),
            letterhead,
        };
        MailSender::new(parts, self.bell.clone()).start(&Handle::current())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;
    use transcript_core::{Result, accounts::mail::Mail};

    use super::*;
    use crate::Options;

    #[derive(Debug)]
    struct Tray(mpsc::UnboundedSender<Mail>);

    #[async_trait]
    impl Mailer for Tray {
        async fn send(&self, mail: Mail) -> Result<()> {
            // Nobody may look into the tray any more.
            let _ = self.0.send(mail);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_registration_is_followed_by_its_mail() {
        let verbatim = Verbatim::open(Options::default()).await.unwrap();
        let register = async |name: &str| {
            verbatim.accounts().register(&format!("{name}@example.org"), None).await.unwrap();
        };
        register("before").await;
        let (tray, mut mails) = mpsc::unbounded_channel();
        let sender = verbatim.start_mail(Arc::new(Tray(tray)));
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
