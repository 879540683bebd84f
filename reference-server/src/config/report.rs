//! What `verbatim check-config` prints.

use std::fmt::Write as _;

use transcript_core::{directory::Plan, video::Platform};

use super::{BaseUrl, Origin, Settings, SmtpSecurity, Till, mail::OUTBOX_FOLDER};

impl Settings {
    /// Every setting in effect with where it was given, as TOML; secrets are not shown.
    pub fn report(&self) -> String {
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

    /// Who takes the money for packs and plans.
    pub fn till(&self) -> Till {
        Till::of(&self.payment, &self.server)
    }

    /// Who takes the money, in words.
    fn payment_route(&self) -> String {
        match self.till() {
            Till::Stripe => {
                let base_url = self.server.base_url_at(self.server.listen);
                format!("by Stripe, whose events are to be sent to {base_url}/api/v1/webhooks/stripe")
            }
            Till::Sandbox => "in the sandbox: nobody pays, and everybody gets what they order".to_owned(),
            Till::None => "not configured: nothing is sold".to_owned(),
        }
    }

    /// Where mails go, in words.
    pub fn mail_route(&self) -> String {
        let Some(url) = &self.mail.smtp_url else {
            return format!("into the folder {}", self.data.join(OUTBOX_FOLDER).display());
        };
        let security = match url.security {
            SmtpSecurity::Tls => "with TLS",
            SmtpSecurity::StartTls => "with STARTTLS, or not at all",
            SmtpSecurity::StartTlsIfOffered => "with STARTTLS where the server offers it",
            SmtpSecurity::None => "in the clear",
        };
        let user = match &url.credentials {
            Some((user, _)) => format!("as {user}"),
            None => "without authentication".to_owned(),
        };
        let (host, port, from) = (&url.host, url.port, self.mail.sender());
        format!("by SMTP to {host}, port {port}, {security}, {user}; from {from}")
    }

    /// What an operator should know about these settings: one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match &self.server.base_url {
            Some(url) if url.is_exposed() => warnings.push(format!(
                "server.base_url is {}: keys travel in the clear unless it begins with https",
                url.as_str()
            )),
            None if !self.server.listen.ip().is_loopback() => warnings.push(
                "server.base_url is not set: links in answers begin with the address that the server listens \
                 at, which others may not reach"
                    .to_owned(),
            ),
            _ => {}
        }
        for platform in Platform::ALL {
            if self.suppliers.of(platform).is_empty() {
                warnings.push(format!(
                    "suppliers.{platform} is empty: new {} transcripts are answered with config_error",
                    platform.name()
                ));
            }
        }
        match &self.speech.base_url {
            None => warnings
                .push("speech.base_url is not set: videos without captions get no transcript".to_owned()),
            Some(_) if !self.speech.has_ffmpeg() => warnings.push(format!(
                "speech.ffmpeg: there is no program {}: nobody can listen to videos",
                self.speech.ffmpeg.display()
            )),
            Some(url) if url.is_exposed() && self.speech.api_key.is_some() => {
                warnings.push("speech.base_url is http: the key travels in the clear".to_owned())
            }
            Some(_) => {}
        }
        if self.service.base_url.as_ref().is_some_and(BaseUrl::is_exposed) {
            warnings.push("service.base_url is http: the key travels in the clear".to_owned());
        }
        warnings.extend(self.payment_warnings());
        match &self.mail.smtp_url {
            None => {
                let outbox = self.data.join(OUTBOX_FOLDER);
                warnings.push(format!(
                    "mail.smtp_url is not set: mails are written to {}, and nobody gets them",
                    outbox.display()
                ));
            }
            Some(url) if url.is_exposed() => warnings.push(
                "mail.smtp_url: mails, and a password, may travel in the clear: give smtps://…, or \
                 ?tls=required"
                    .to_owned(),
            ),
            Some(_) => {}
        }
        let entitlement = &self.entitlement;
        if entitlement.keys.is_none() && (entitlement.audience.is_some() || entitlement.issuer.is_some()) {
            warnings.push(
                "entitlement.keys is not set: no entitlement is believed, every key is free".to_owned(),
            );
        }
        let set = |section: &str| {
            let within = |name: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
            self.effective.iter().any(|one| within(&one.name) && one.origin != Origin::Default)
        };
        warnings.extend(self.chat_warning(set("chat")));
        warnings.extend(self.metrics_warning());
        warnings
    }

    /// What an operator should know of the figures, which have no password.
    fn metrics_warning(&self) -> Option<String> {
        let is_open = self.log.metrics.is_some_and(|address| !address.ip().is_loopback());
        is_open.then(|| {
            "metrics.listen may be reached by other machines: whoever reaches it sees how much is asked for and sold"
                .to_owned()
        })
    }

    /// What an operator should know of the chat, whose settings are the defaults or not.
    fn chat_warning(&self, is_set: bool) -> Option<String> {
        let warning = match &self.chat.base_url {
            None if is_set => "chat.base_url is not set: answers are passages of the transcript",
            Some(url) if url.is_exposed() => {
                "chat.base_url is http: questions, and a key, travel in the clear"
            }
            None | Some(_) => return None,
        };
        Some(warning.to_owned())
    }

    /// What an operator should know while nobody pays; one of [`Settings::warnings`], and the gravest.
    pub fn sandbox_warning(&self) -> Option<String> {
        let warning = match (self.till(), self.payment.sandbox) {
            (Till::Sandbox, None) => {
                "stripe.secret_key is not set: credits and plans are sold in the sandbox, where nobody pays, since \
                 links lead to this machine only; checkout.sandbox = false closes it"
            }
            (Till::Sandbox, Some(_)) => {
                "checkout.sandbox is true: whoever has an account gets credits and plans for nothing"
            }
            (Till::Stripe | Till::None, _) => return None,
        };
        Some(warning.to_owned())
    }

    /// What an operator should know about how things are sold.
    fn payment_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match self.till() {
            Till::None => {
                warnings.push("stripe.secret_key is not set: payments are not configured".to_owned());
                if self.server.is_here() && self.payment.sandbox.is_none() {
                    warnings.push(
                        "server.trusted_proxies is set, so others reach this server: the sandbox is closed unless \
                         checkout.sandbox is true"
                            .to_owned(),
                    );
                }
            }
            Till::Sandbox => warnings.extend(self.sandbox_warning()),
            Till::Stripe => {
                if self.server.is_here() {
                    warnings.push(
                        "stripe.secret_key is set, but links lead to this machine only: Stripe's events cannot \
                         get here, and payments are noticed by asking every half hour"
                            .to_owned(),
                    );
                }
                if self.payment.sandbox == Some(true) {
                    warnings.push(
                        "checkout.sandbox is true, but stripe.secret_key is set: the sandbox stays closed"
                            .to_owned(),
                    );
                }
                for terms in &self.plans.plans {
                    if terms.plan != Plan::Free && terms.price.is_none() {
                        let plan = terms.plan.as_str();
                        warnings
                            .push(format!("plans.{plan}.price_usd is not set: the plan {plan} is not sold"));
                    }
                }
            }
        }
        warnings
    }
}
