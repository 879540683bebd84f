//! Settings of payments and entitlements.

use std::time::Duration;

use serde_json::Value;

use super::{
    layers::RawSettings,
    reader::SettingsReader,
    server::ServerSettings,
    value::{BaseUrl, ParseSetting, Secret},
};

/// One day.
const DAY: Duration = Duration::from_secs(86_400);

/// Prefix of Stripe's signing secrets.
const WEBHOOK_SECRET: &str = "whsec_";

/// `stripe.*` and `checkout.*`
#[derive(Clone, Debug)]
pub struct PaymentSettings {
    /// `stripe.secret_key`: Stripe's secret key. If unset, nothing is for sale except in the sandbox.
    pub secret_key: Option<Secret>,
    /// `stripe.webhook_secrets`: signing secrets of webhook events; several during a rotation.
    pub webhook_secrets: Vec<Secret>,
    /// `stripe.api_url`: address of Stripe's API, for tests.
    pub api_url: Option<BaseUrl>,
    /// `checkout.sandbox`: whether the sandbox checkout is open to all callers.
    ///
    /// If unset, it is open while links lead to this machine only and `server.trusted_proxies` is empty.
    pub sandbox: Option<bool>,
    /// `checkout.grace`: how long a paid plan continues after a failed payment.
    pub grace: Duration,
}

impl PaymentSettings {
    /// Reads both sections.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let payment = Self {
            secret_key: reader.optional("stripe.secret_key"),
            webhook_secrets: reader.value("stripe.webhook_secrets", Vec::new()),
            api_url: reader.optional("stripe.api_url"),
            sandbox: reader.optional("checkout.sandbox"),
            grace: reader.duration("checkout.grace", 7 * DAY, Duration::ZERO..=90 * DAY),
        };
        if payment.secret_key.is_some() && payment.webhook_secrets.is_empty() {
            let what = "none is set, but stripe.secret_key is: payments could not be confirmed";
            reader.refuse("stripe.webhook_secrets", &what, "set both or neither");
        }
        if !payment.webhook_secrets.iter().all(|secret| secret.reveal().starts_with(WEBHOOK_SECRET)) {
            let what = "a secret does not begin with whsec_";
            let allowed = "write [\"whsec_…\", \"whsec_…\"] in the settings file, and whsec_…,whsec_… without \
                           brackets and quotes in the environment";
            reader.refuse("stripe.webhook_secrets", &what, allowed);
        }
        payment
    }
}

/// Active payment provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentBackend {
    /// Stripe.
    Stripe,
    /// The sandbox checkout, which takes no money.
    Sandbox,
    /// None: nothing is for sale.
    None,
}

impl PaymentBackend {
    /// Selects the provider.
    ///
    /// Stripe if it is set, otherwise the sandbox if the operator opened it, or did not close it and only this
    /// machine can reach the server.
    pub fn for_settings(payment: &PaymentSettings, server: &ServerSettings) -> Self {
        let is_private = server.is_loopback() && server.trusted_proxies.is_empty();
        match (&payment.secret_key, payment.sandbox.unwrap_or(is_private)) {
            (Some(_), _) => Self::Stripe,
            (None, true) => Self::Sandbox,
            (None, false) => Self::None,
        }
    }
}

/// `entitlement.*`
#[derive(Clone, Debug)]
pub struct EntitlementSettings {
    /// `entitlement.keys`: keys that verify entitlements. If unset, entitlements are not accepted.
    pub keys: Option<JwkSet>,
    /// `entitlement.audience`: required `aud` of an entitlement.
    pub audience: Option<String>,
    /// `entitlement.issuer`: required `iss` of an entitlement.
    pub issuer: Option<String>,
}

impl EntitlementSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self {
            keys: reader.optional("entitlement.keys"),
            audience: reader.optional("entitlement.audience"),
            issuer: reader.optional("entitlement.issuer"),
        }
    }
}

/// A JSON Web Key Set, inline or the path of a file that contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct JwkSet(String);

impl JwkSet {
    /// Returns the set as JSON.
    pub fn json(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for JwkSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JwkSet(not shown)")
    }
}

impl ParseSetting for JwkSet {
    const ALLOWED: &'static str =
        "a JSON Web Key Set such as {\"keys\": [{…}]}, or the path of a file that has one";
    // A set may contain a secret key.
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let given = String::read(raw)?;
        let json = if given.starts_with('{') {
            given
        } else {
            std::fs::read_to_string(given)
                .map_err(|error| Some(format!("the file cannot be read: {error}")))?
        };
        let set: Value = serde_json::from_str(&json).map_err(|_| Some("it is not JSON".to_owned()))?;
        let keys = set.get("keys").and_then(Value::as_array);
        match keys.is_some_and(|keys| !keys.is_empty() && keys.iter().all(Value::is_object)) {
            true => Ok(Self(json)),
            false => Err(Some("it has no keys".to_owned())),
        }
    }

    fn show(&self) -> String {
        "\"(not shown)\"".to_owned()
    }
}
