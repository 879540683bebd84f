//! How plans and credits are paid for, and how a paid plan elsewhere is proven.

use std::time::Duration;

use serde_json::Value;

use super::{
    layers::Raw,
    reader::Reader,
    server::Server,
    value::{BaseUrl, Secret, Setting},
};

/// One day.
const DAY: Duration = Duration::from_secs(86_400);

/// What Stripe's signing secrets begin with.
const WEBHOOK_SECRET: &str = "whsec_";

/// `stripe.*` and `checkout.*`
#[derive(Clone, Debug)]
pub struct Payment {
    /// `stripe.secret_key`: the key of the payment provider; when absent, nothing is sold but in the sandbox.
    pub secret_key: Option<Secret>,
    /// `stripe.webhook_secrets`: what its events are signed with; several during a rotation.
    pub webhook_secrets: Vec<Secret>,
    /// `stripe.api_url`: where its interface is, when it is not the provider's own.
    pub api_url: Option<BaseUrl>,
    /// `checkout.sandbox`: whether the plainly marked test checkout is open, to whoever reaches the server. When
    /// not set, it is where links lead to this machine only and no `server.trusted_proxies` bring others here.
    pub sandbox: Option<bool>,
    /// `checkout.grace`: how long a paid plan goes on when its payment fails.
    pub grace: Duration,
}

impl Payment {
    /// Reads both sections.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let payment = Self {
            secret_key: reader.optional("stripe.secret_key"),
            webhook_secrets: reader.value("stripe.webhook_secrets", Vec::new()),
            api_url: reader.optional("stripe.api_url"),
            sandbox: reader.optional("checkout.sandbox"),
            grace: reader.duration("checkout.grace", 7 * DAY, Duration::ZERO..=90 * DAY),
        };
        if payment.secret_key.is_some() && payment.webhook_secrets.is_empty() {
            let what = "none is set, but stripe.secret_key is: payments would never arrive";
            reader.refuse("stripe.webhook_secrets", &what, "set both or neither");
        }
        if !payment.webhook_secrets.iter().all(|secret| secret.reveal().starts_with(WEBHOOK_SECRET)) {
            let what = "one does not begin with whsec_, as Stripe's do";
            let allowed = "write [\"whsec_…\", \"whsec_…\"] in the settings file, and whsec_…,whsec_… without \
                           brackets and quotes in the environment";
            reader.refuse("stripe.webhook_secrets", &what, allowed);
        }
        payment
    }
}

/// Who takes the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Till {
    /// Stripe.
    Stripe,
    /// Our own test checkout, in which nobody pays.
    Sandbox,
    /// Nobody: nothing is sold.
    None,
}

impl Till {
    /// Who takes the money under these settings: Stripe, where it is set up; else the sandbox, where the operator
    /// opened it, or said nothing and nobody but this machine's own people can reach it.
    pub fn of(payment: &Payment, server: &Server) -> Self {
        let is_private = server.is_here() && server.trusted_proxies.is_empty();
        match (&payment.secret_key, payment.sandbox.unwrap_or(is_private)) {
            (Some(_), _) => Self::Stripe,
            (None, true) => Self::Sandbox,
            (None, false) => Self::None,
        }
    }
}

/// `entitlement.*`
#[derive(Clone, Debug)]
pub struct Entitlement {
    /// `entitlement.keys`: the keys that may sign entitlements; when absent, none is believed.
    pub keys: Option<KeySet>,
    /// `entitlement.audience`: whom an entitlement must be for.
    pub audience: Option<String>,
    /// `entitlement.issuer`: whom it must come from.
    pub issuer: Option<String>,
}

impl Entitlement {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            keys: reader.optional("entitlement.keys"),
            audience: reader.optional("entitlement.audience"),
            issuer: reader.optional("entitlement.issuer"),
        }
    }
}

/// A JSON Web Key Set, given as such or as the path of a file that has it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySet(String);

impl KeySet {
    /// The set as JSON.
    pub fn json(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySet(not shown)")
    }
}

impl Setting for KeySet {
    const ALLOWED: &'static str =
        "a JSON Web Key Set such as {\"keys\": [{…}]}, or the path of a file that has one";
    // A set may hold a secret key.
    const SECRET: bool = true;

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        let given = String::read(raw)?;
        let json = if given.starts_with('{') {
            given
        } else {
            std::fs::read_to_string(given)
                .map_err(|error| Some(format!("the file cannot be read: {error}")))?
        };
        let set: Value = serde_json::from_str(&json).map_err(|_| Some("it is no JSON".to_owned()))?;
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
