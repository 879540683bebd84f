//! Registering an address: a mail is queued, and everyone gets the same answer.

use std::net::IpAddr;

use super::{Accounts, Email, MailIntent, Refused, mail::MailKind};
use crate::{
    ids::random_name,
    ledger::terms::Period,
    limits::{COUNT_MAX, Take},
    time::Timestamp,
};

const HOUR_MS: u64 = 3600 * 1000;

impl Accounts {
    /// Queues a verification mail. The answer is the same whether or not the address has an account, and
    /// comes without waiting for the mail: its token is made when it is sent ([`super::mail`]).
    ///
    /// An address that got too many mails gets no more of them for a while, and whoever asks for one is answered
    /// as always: who else asked for that address is nobody's business.
    ///
    /// # Errors
    /// [`Refused::BadRequest`] for what is no address, which counts for no limit; [`Refused::RateLimited`]
    /// when the network registered too often; [`Refused::Internal`].
    pub async fn register(&self, email: &str, client: Option<IpAddr>) -> Result<(), Refused> {
        let email = Email::parse(email).map_err(|no| Refused::BadRequest(no.to_string()))?;
        let accounts = self.clone();
        self.task(async move { accounts.queue_verification(&email, client).await }).await
    }

    async fn queue_verification(&self, email: &Email, client: Option<IpAddr>) -> Result<(), Refused> {
        let (options, now) = (self.options(), self.parts.clock.now());
        let of_network =
            self.own.networks.takes("register", client, options.register_per_network_per_hour, HOUR_MS, now);
        if let Some((_, retry_after_ms)) = self.limited(of_network, now).await? {
            return Err(Refused::too_many(
                "Too many registrations came from your network",
                // Networks have other names after midnight, and nothing counted yet.
                retry_after_ms.min(wait_ms(now, Period::Day.ends(now))),
            ));
        }
        // Apart from the network's, which counts every attempt alike.
        let of_address = Take {
            bucket: format!("mail/{}", self.own.networks.digest(email.as_str(), now)),
            count: options.register_per_address_per_hour.min(COUNT_MAX),
            per_ms: HOUR_MS,
            cost: 1,
        };
        if self.limited(vec![of_address], now).await?.is_some() {
            return Ok(());
        }
        let intent = MailIntent {
            id: random_name(self.parts.random.as_ref(), "mail"),
            kind: MailKind::Verify.as_str().to_owned(),
            to: email.as_str().to_owned(),
            attempts: 0,
        };
        self.surely(|| self.parts.outbox.queue(intent.clone(), now)).await
    }
}

/// How long it is until a moment, in milliseconds.
fn wait_ms(now: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)
}
