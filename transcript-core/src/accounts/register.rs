//! Registration of an address: queues a mail; the response is the same for every address.

use std::{net::IpAddr, sync::Arc};

#[cfg(feature = "mail")]
use super::mail::{MailBranding, MailSender, MailSenderDeps, MailTexts, Mailer, OutboxNotifier};
use super::{AccountKeys, Email, MailIntent, MailKind, V1Error};
use crate::{
    ledger::terms::AllowancePeriod,
    limits::{HOUR_MS, LimitRequest},
    time::Timestamp,
};

/// Networks that may request as many sign-in emails to an address as one may: more than a /48, which counts as four.
const SIGN_IN_NETWORKS: u32 = 6;

impl AccountKeys {
    /// Queues a verification email.
    /// The response is the same whether or not the address has an account, and does not wait for the mail:
    /// the token is made when the mail is sent ([`super::mail`]).
    ///
    /// An address that received too many mails receives no more for a while. The response stays the same, so that
    /// it does not reveal other registrations of that address.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for an invalid address, which counts for no limit; [`V1Error::RateLimited`]
    /// if the network registered too often; [`V1Error::Internal`].
    pub async fn register(self: &Arc<Self>, email: &str, client: Option<IpAddr>) -> Result<(), V1Error> {
        self.queue_mail(email, MailKind::Verify, client, None).await
    }

    /// Queues a sign-in email; for an address without an account, the verification email of a new one.
    ///
    /// `language` is the tag of the language of the mail: that of the page with the form.
    ///
    /// The response is the same for both, and the limit of the network is that of [`AccountKeys::register`]. The mails
    /// to an address count per network and in all, apart from those of registrations: requests of others must not keep
    /// its holder from signing in.
    ///
    /// # Errors
    /// As [`AccountKeys::register`].
    pub async fn request_sign_in(
        self: &Arc<Self>,
        email: &str,
        client: Option<IpAddr>,
        language: Option<&str>,
    ) -> Result<(), V1Error> {
        self.queue_mail(email, MailKind::SignIn, client, language).await
    }

    async fn queue_mail(
        self: &Arc<Self>,
        email: &str,
        kind: MailKind,
        client: Option<IpAddr>,
        language: Option<&str>,
    ) -> Result<(), V1Error> {
        let email = Email::parse(email).map_err(|error| V1Error::BadRequest(error.to_string()))?;
        let (keys, language) = (Arc::clone(self), language.map(str::to_owned));
        let work = async move {
            let (options, now) = (&keys.context.options, keys.context.now());
            let network_limits = keys.networks.limit_requests(
                "register",
                client,
                options.register_per_network_per_hour,
                HOUR_MS,
                now,
            );
            if let Some(retry_after_ms) = keys.limits.acquire(network_limits, now).await? {
                return Err(V1Error::rate_limited(
                    "Too many registrations came from your network",
                    // Network digests change at midnight, and with them the counts.
                    retry_after_ms.min(now.millis_until(AllowancePeriod::Day.end(now))),
                ));
            }
            // Separate from the network's limit, which counts every attempt.
            if keys.limits.acquire(keys.address_limits(&email, kind, client, now), now).await?.is_some() {
                return Ok(());
            }
            let intent = MailIntent {
                id: keys.context.random_id("mail"),
                kind: kind.as_str().to_owned(),
                to: email.as_str().to_owned(),
                attempts: 0,
                language,
            };
            let queued = keys.context.retry_store(|| keys.outbox.queue(intent.clone(), now)).await;
            queued.map_err(V1Error::from_store_error)
        };
        self.context.task(work).await
    }

    /// The limits of the mails of this kind to an address.
    fn address_limits(
        &self,
        email: &Email,
        kind: MailKind,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Vec<LimitRequest> {
        let per_hour = self.context.options.register_per_address_per_hour;
        let address = self.networks.address_digest(email.as_str());
        let total = |bucket: String, max: u32| LimitRequest::one(bucket, max, HOUR_MS);
        if kind != MailKind::SignIn {
            return vec![total(format!("mail/{address}"), per_hour)];
        }
        let bucket = format!("sign-in/{address}");
        let mut limits = self.networks.limit_requests(&bucket, client, per_hour, HOUR_MS, now);
        limits.push(total(bucket, per_hour.saturating_mul(SIGN_IN_NETWORKS)));
        limits
    }

    /// The sender of the queued mails, which `notifier` wakes. `languages` are those of [`MailBranding`].
    #[cfg(feature = "mail")]
    pub fn mail_sender(
        &self,
        mailer: Arc<dyn Mailer>,
        notifier: OutboxNotifier,
        languages: Vec<MailTexts>,
    ) -> MailSender {
        let base_url = self.context.options.base_url.clone();
        let deps = MailSenderDeps {
            outbox: Arc::clone(&self.outbox),
            directory: Arc::clone(&self.directory),
            orders: Arc::clone(&self.orders),
            sessions: Arc::clone(&self.sessions),
            mailer,
            clock: Arc::clone(&self.context.clock),
            random: Arc::clone(&self.context.random),
            branding: MailBranding { base_url, languages, ..MailBranding::default() },
        };
        MailSender::new(deps, notifier)
    }
}
