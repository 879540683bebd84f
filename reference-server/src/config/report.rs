//! Output of `verbatim check-config`.

use std::{fmt::Write as _, time::Duration};

use transcript_core::{directory::Plan, video::Platform};

use verbatim::PaymentOptions;
#[cfg(feature = "speech")]
use verbatim::find_program;

use super::{
    EffectiveSetting, SettingOrigin, Settings, SmtpSecurity, StoreUrl, mail::OUTBOX_FOLDER, value::is_exposed,
};

/// Time of a stop beyond `server.stop_delay` and the longest request.
///
/// 5 s each for connections, claims of jobs, webhooks and traces, 10 s for mail, and 60 s for fetches.
const STOP_BEYOND_REQUESTS: Duration = Duration::from_secs(90);
/// Time after which the unit, the chart and the compose file of `deploy` kill a server that stops.
const KILLED_AFTER: Duration = Duration::from_secs(180);

impl Settings {
    /// The longest time that a request may take: an answer of a chat model may take longer than a fetch.
    pub(crate) fn longest_request(&self) -> Duration {
        #[cfg(feature = "chat-model")]
        if let Some(chat) = &self.options.chat {
            return self.options.wait.max(chat.timeout);
        }
        self.options.wait
    }

    /// Returns all effective settings with their origins, as TOML; secrets are not shown.
    pub(crate) fn report(&self) -> String {
        let width = self.effective.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
        let mut report = format!("# data folder: {}\n", self.data.display());
        for setting in &self.effective {
            let name = &setting.name;
            // Writing to a string cannot fail.
            let _ = match &setting.value {
                Some(value) => writeln!(report, "{name:width$} = {value}  # {}", setting.origin),
                None => writeln!(report, "# {name} is not set"),
            };
        }
        let _ = writeln!(report, "# mail: {}", self.mail_route());
        let _ = writeln!(report, "# payments: {}", self.payment_route());
        report
    }

    /// Describes the payment provider.
    fn payment_route(&self) -> String {
        match &self.options.checkout {
            PaymentOptions::Stripe(stripe) => {
                let base_url = self.server.base_url_at(self.server.listen.socket_address());
                let mode = match stripe.is_live() {
                    Some(false) => " in test mode: no money is taken",
                    Some(true) | None => "",
                };
                format!("Stripe{mode}; send its webhook events to {base_url}/api/v1/webhooks/stripe")
            }
            PaymentOptions::Sandbox => "sandbox: no money is taken, every order counts as paid".to_owned(),
            PaymentOptions::None => "not configured: nothing is for sale".to_owned(),
        }
    }

    /// Describes where mails are sent.
    pub(crate) fn mail_route(&self) -> String {
        let Some(url) = &self.mail.smtp_url else {
            return format!("files in {}", self.data.join(OUTBOX_FOLDER).display());
        };
        let security = match url.security {
            SmtpSecurity::Tls => "with TLS",
            SmtpSecurity::StartTls => "with STARTTLS (required)",
            SmtpSecurity::StartTlsIfOffered => "with STARTTLS if the server offers it",
            SmtpSecurity::None => "unencrypted",
        };
        let user = match &url.credentials {
            Some((user, _)) => format!("user {user}"),
            None => "without authentication".to_owned(),
        };
        let (host, port, from) = (&url.host, url.port, self.mail.sender());
        format!("SMTP server {host}, port {port}, {security}, {user}; from {from}")
    }

    /// Returns the warnings about these settings, one sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match &self.server.base_url {
            Some(url) if url.is_exposed() => warnings.push(format!(
                "server.base_url is {}: API keys are sent unencrypted; use https",
                url.as_str()
            )),
            None if !self.server.ip().is_loopback() => warnings.push(
                "server.base_url is not set: links begin with the listening address, which clients may not reach"
                    .to_owned(),
            ),
            _ => {}
        }
        warnings.extend(self.cdn.warnings());
        for platform in Platform::ALL {
            if self.options.suppliers.for_platform(platform).is_empty() {
                warnings.push(format!(
                    "suppliers.{platform} is empty: lookups of new {} videos fail with config_error",
                    platform.name()
                ));
            }
        }
        warnings.extend(self.speech_warning());
        if self.options.service.as_ref().is_some_and(|service| is_exposed(&service.base_url)) {
            warnings.push("service.base_url is http: the API key is sent unencrypted".to_owned());
        }
        warnings.extend(self.payment_warnings());
        match &self.mail.smtp_url {
            None => {
                let outbox = self.data.join(OUTBOX_FOLDER);
                warnings.push(format!(
                    "mail.smtp_url is not set: mails are written to {} and are not delivered",
                    outbox.display()
                ));
            }
            Some(url) if url.is_exposed() => warnings.push(
                "mail.smtp_url: mails and the password may be sent unencrypted; use smtps://… or ?tls=required"
                    .to_owned(),
            ),
            Some(_) => {}
        }
        let set = |section: &str| {
            let within = |name: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
            self.effective.iter().any(|one| within(one.name) && one.origin != SettingOrigin::Default)
        };
        if self.options.entitlement.is_none() && set("entitlement") {
            warnings.push(
                "entitlement.keys is not set: entitlements are not accepted and every key is free".to_owned(),
            );
        }
        let open = [self.proxy_warning(), self.storage_warning(), self.webhook_warning()];
        warnings.extend(open.into_iter().flatten());
        #[cfg(feature = "chat-model")]
        warnings.extend(self.chat_warning(set("chat")));
        warnings.extend(self.metrics_warning());
        warnings.extend(self.admin_warning());
        warnings.extend(self.stop_warning());
        warnings
    }

    /// Returns the warning about speech-to-text.
    #[cfg(feature = "speech")]
    fn speech_warning(&self) -> Option<String> {
        match &self.options.speech {
            None => Some("speech.base_url is not set: videos without captions get no transcript".to_owned()),
            Some(speech) if find_program(&speech.ffmpeg).is_none() => Some(format!(
                "speech.ffmpeg: there is no program {}: speech-to-text does not work",
                speech.ffmpeg.display()
            )),
            Some(speech) if is_exposed(&speech.base_url) && speech.api_key.is_some() => {
                Some("speech.base_url is http: the API key is sent unencrypted".to_owned())
            }
            Some(_) => None,
        }
    }

    /// Returns the warning about speech-to-text, which this build lacks.
    #[cfg(not(feature = "speech"))]
    fn speech_warning(&self) -> Option<String> {
        Some("this build lacks the feature speech: videos without captions get no transcript".to_owned())
    }

    /// Returns the warning about trusted proxies that are every address.
    fn proxy_warning(&self) -> Option<String> {
        let trusts_all = self.server.trusted_proxies.iter().any(|network| network.prefix_len() == 0);
        trusts_all.then(|| {
            "server.trusted_proxies contains every address: callers choose the address that limits count"
                .to_owned()
        })
    }

    /// Returns the warning about settings of a PostgreSQL server whose address is missing.
    fn storage_warning(&self) -> Option<String> {
        const OF_SERVERS: [&str; 4] =
            ["storage.connections", "storage.connect_timeout", "storage.pooler", "storage.start_timeout"];
        let StoreUrl::Sqlite(path) = &self.storage.url else { return None };
        let is_set =
            |one: &&EffectiveSetting| OF_SERVERS.contains(&one.name) && one.origin != SettingOrigin::Default;
        let name = self.effective.iter().find(is_set)?.name;
        Some(format!(
            "{name} is set, but storage.url is no PostgreSQL server: keys, accounts and the ledger are in the file {}",
            path.display()
        ))
    }

    /// Returns the warning about webhooks to private addresses, on a server that other machines reach.
    fn webhook_warning(&self) -> Option<String> {
        let is_open = self.options.accounts.private_webhooks && !self.server.is_local_only();
        is_open.then(|| {
            "webhooks.allow_private is true: every account holder may send requests to the hosts of this network"
                .to_owned()
        })
    }

    /// Returns the warning about a stop that may outlast the examples of service managers.
    fn stop_warning(&self) -> Option<String> {
        let longest = self.server.stop_delay + self.longest_request() + STOP_BEYOND_REQUESTS;
        (longest > KILLED_AFTER).then(|| {
            format!(
                "a stop may take {} seconds (server.stop_delay, the longer of limits.wait and chat.timeout, and {} s): \
                 let the service manager wait as long; the examples kill the server after {} s",
                longest.as_secs(),
                STOP_BEYOND_REQUESTS.as_secs(),
                KILLED_AFTER.as_secs()
            )
        })
    }

    /// Returns the warning about an admin listener that other machines may reach.
    fn admin_warning(&self) -> Option<String> {
        let is_open = self.server.admin.is_some_and(|address| !address.0.ip().to_canonical().is_loopback());
        is_open.then(|| {
            "admin.listen may be reached by other machines: admin tokens are sent unencrypted; put a proxy with TLS \
             and access rules before it"
                .to_owned()
        })
    }

    /// Returns the warning about public metrics, which have no authentication.
    fn metrics_warning(&self) -> Option<String> {
        let is_open = self.log.metrics.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        is_open.then(|| {
            "metrics.listen may be reached by other machines: the metrics reveal usage and sales".to_owned()
        })
    }

    /// Returns the warning about the chat model; `is_set` if a chat setting is not a default.
    #[cfg(feature = "chat-model")]
    fn chat_warning(&self, is_set: bool) -> Option<String> {
        let warning = match &self.options.chat {
            None if is_set => "chat.base_url is not set: answers are passages of the transcript",
            Some(chat) if is_exposed(&chat.base_url) => {
                "chat.base_url is http: questions and the API key are sent unencrypted"
            }
            None | Some(_) => return None,
        };
        Some(warning.to_owned())
    }

    /// Returns the warning about sales without money, the gravest of [`Settings::warnings`].
    ///
    /// It is about an open sandbox, or the test mode of Stripe on a server that other machines reach.
    pub(crate) fn free_sales_warning(&self) -> Option<String> {
        let warning = match (&self.options.checkout, self.sandbox) {
            (PaymentOptions::Stripe(stripe), _)
                if stripe.is_live() == Some(false) && !self.server.is_loopback() =>
            {
                "stripe.secret_key is a test key: every visitor can buy credits and plans with a test card, without \
                 money; set the live key and the signing secret of its webhook endpoint"
            }
            (PaymentOptions::Sandbox, None) => {
                "stripe.secret_key is not set: credits and plans are sold in the sandbox, without money, because links \
                 lead to this machine only; checkout.sandbox = false closes it"
            }
            (PaymentOptions::Sandbox, Some(_)) => {
                "checkout.sandbox is true: every caller on this machine gets credits and plans without payment"
            }
            (PaymentOptions::Stripe(_) | PaymentOptions::None, _) => return None,
        };
        Some(warning.to_owned())
    }

    /// Returns the warnings about payments.
    fn payment_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match &self.options.checkout {
            PaymentOptions::None => {
                warnings.push("stripe.secret_key is not set: payments are not configured".to_owned());
                if self.server.is_loopback() && self.sandbox.is_none() {
                    let why = match self.server.is_local_only() {
                        true => {
                            "server.trusted_proxies is set, so other machines reach this server: the sandbox is \
                             closed unless checkout.sandbox is true, and serves this machine only"
                        }
                        false => {
                            "server.listen is not a loopback address, so other machines may reach this server: the \
                             sandbox is closed"
                        }
                    };
                    warnings.push(why.to_owned());
                }
            }
            PaymentOptions::Sandbox => warnings.extend(self.free_sales_warning()),
            PaymentOptions::Stripe(_) => {
                warnings.extend(self.free_sales_warning());
                if self.server.is_loopback() {
                    warnings.push(
                        "stripe.secret_key is set, but links lead to this machine only: Stripe's events do not \
                         arrive, and payments are polled every half hour"
                            .to_owned(),
                    );
                }
                if self.sandbox == Some(true) {
                    warnings.push(
                        "checkout.sandbox is true, but stripe.secret_key is set: the sandbox stays closed"
                            .to_owned(),
                    );
                }
                for plan in Plan::ALL {
                    if plan != Plan::Free && self.options.accounts.plans.terms(plan).price_cents.is_none() {
                        let plan = plan.as_str();
                        warnings.push(format!(
                            "plans.{plan}.price_usd is not set: the plan {plan} is not for sale"
                        ));
                    }
                }
            }
        }
        warnings
    }
}
