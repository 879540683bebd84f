//! Options of Stripe: settings `stripe.*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result, accounts::PlanTable};
use url::{Host, Url};

/// Base URL of Stripe's API.
const API_URL: &str = "https://api.stripe.com";

/// Options of [`super::StripeProvider`].
#[derive(Clone, smart_default::SmartDefault)]
pub struct StripeOptions {
    /// The secret key (`stripe.secret_key`).
    pub secret_key: String,
    /// The signing secrets of events (`stripe.webhook_secrets`); several during a rotation.
    pub webhook_secrets: Vec<String>,
    /// Base URL of the API; `None`: Stripe's own (`stripe.api_url`).
    pub api_url: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Base URL of this service's pages, without a trailing slash: buyers return there.
    #[default("http://127.0.0.1:8080")]
    pub base_url: String,
    /// The plans and their prices.
    pub plans: PlanTable,
    /// Timeout of one attempt.
    #[default(Duration::from_secs(10))]
    pub timeout: Duration,
    /// Number of retries after a transient error.
    #[default(2)]
    pub retries: u32,
}

impl StripeOptions {
    /// Whether the secret key is for real money; `None` if its prefix names no mode.
    pub fn is_live(&self) -> Option<bool> {
        let (_, rest) = self.secret_key.split_once('_')?;
        let (mode, _) = rest.split_once('_')?;
        match mode {
            "live" => Some(true),
            "test" => Some(false),
            _ => None,
        }
    }

    /// Validates the options; returns the API's base URL.
    pub(super) fn check(&self) -> Result<Url> {
        let printable = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !printable(&self.secret_key) {
            return Err(Error::invalid("stripe.secret_key must be Stripe's key, such as sk_live_…"));
        }
        if self.webhook_secrets.is_empty() || !self.webhook_secrets.iter().all(|secret| printable(secret)) {
            return Err(Error::invalid("stripe.webhook_secrets must be Stripe's secrets, such as whsec_…"));
        }
        let wrong = || {
            Error::invalid(
                "stripe.api_url must be https://HOST, or http:// on this machine: the secret key goes there",
            )
        };
        let url = Url::parse(self.api_url.as_deref().unwrap_or(API_URL)).map_err(|_| wrong())?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        let is_safe = match (url.scheme(), url.host()) {
            ("https", Some(_)) => true,
            ("http", Some(Host::Domain(name))) => name == "localhost",
            ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
            ("http", Some(Host::Ipv6(address))) => address.is_loopback(),
            _ => false,
        };
        if is_plain && is_safe { Ok(url) } else { Err(wrong()) }
    }
}

// Omits the key and the secrets.
transcript_core::debug_fields!(StripeOptions |this| {
    webhook_secrets: this.webhook_secrets.len(), api_url, base_url, timeout, retries
});

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> StripeOptions {
        StripeOptions {
            secret_key: "sk_test_hush".to_owned(),
            webhook_secrets: vec!["whsec_hush".to_owned()],
            ..StripeOptions::default()
        }
    }

    #[test]
    fn api_url_unsafe_is_rejected() {
        assert_eq!(options().check().unwrap().as_str(), "https://api.stripe.com/");
        for (url, is_safe) in [
            ("https://stripe.example", true),
            ("https://stripe.example:8443/", true),
            ("http://127.0.0.1:12111", true),
            ("http://[::1]:12111", true),
            ("http://localhost:12111", true),
            ("http://stripe.example", false),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1.example.org", false),
            ("https://me@stripe.example", false),
            ("https://stripe.example/v1", false),
            ("https://stripe.example/?a", false),
            ("ftp://stripe.example", false),
            ("stripe.example", false),
        ] {
            let options = StripeOptions { api_url: Some(url.to_owned()), ..options() };
            assert_eq!(options.check().is_ok(), is_safe, "{url}");
        }
    }

    #[test]
    fn stripe_options_missing_value_is_named_without_secret() {
        let no_key = StripeOptions { secret_key: String::new(), ..options() };
        let no_secret = StripeOptions { webhook_secrets: Vec::new(), ..options() };
        let odd = StripeOptions { webhook_secrets: vec!["whsec_\n".to_owned()], ..options() };
        for (options, named) in [(no_key, "secret_key"), (no_secret, "webhook_"), (odd, "webhook_")] {
            assert!(options.check().unwrap_err().message().contains(named), "{named}");
        }
        assert!(!format!("{:?}", options()).contains("hush"));
    }
}
