//! Checks that concern several settings.

use std::path::{Path, absolute};

use verbatim::{PaymentOptions, StripeOptions};

use crate::config::{Settings, StoreUrl, reader::SettingsReader, value::quoted};

/// Prefix of Stripe's signing secrets.
const WEBHOOK_SECRET: &str = "whsec_";
/// Prefixes of Stripe's secret keys: those of the account, and restricted ones.
const SECRET_KEY_PREFIXES: [&str; 2] = ["sk_", "rk_"];

pub(super) fn check_server(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    if all.server.listen.path().is_some() && all.server.base_url.is_none() {
        let what = "it is not set, but server.listen is a unix socket, which has no address for links";
        reader.refuse_unset("server.base_url", &what, "give the address that clients use");
    }
}

pub(super) fn check_cdn(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    if all.cdn.purge_secret.is_some() && all.cdn.purge_url.is_none() {
        let what = "it is not set, but cdn.purge_secret is";
        reader.refuse_unset("cdn.purge_url", &what, "set both, or only cdn.purge_url");
    }
}

pub(super) fn check_storage(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let (StoreUrl::Sqlite(main), StoreUrl::Sqlite(archive)) = (&all.storage.url, &all.storage.archive_url)
    else {
        return;
    };
    let absolute = |path: &Path| absolute(path).unwrap_or_else(|_| path.to_owned());
    if absolute(main) == absolute(archive) {
        let what = "it is the file of storage.url";
        reader.refuse("storage.archive_url", &what, "give each database its own file");
    }
}

pub(super) fn check_requests(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    if let Some(file) = all.options.upstream.ca_file.as_ref().filter(|file| !file.is_file()) {
        let what = format!("there is no file {}", quoted(&file.display().to_string()));
        reader.refuse("upstream.ca_file", &what, "give the path of a PEM file");
    }
}

pub(super) fn check_service(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let address = ("service.base_url", !all.service.base_url.is_empty());
    let key = ("service.api_key", all.service.api_key.is_some());
    reader.needs_both(address, key);
    all.options.service = address.1.then(|| all.service.clone());
}

/// The named suppliers are the default of every platform's.
#[cfg(not(feature = "speech"))]
pub(super) fn check_speech(_: &mut SettingsReader<'_>, all: &mut Settings) {
    all.options.add_named_sources();
}

#[cfg(feature = "speech")]
pub(super) fn check_speech(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let address = ("speech.base_url", !all.speech.base_url.is_empty());
    let model = ("speech.model", !all.speech.model.is_empty());
    reader.needs_both(address, model);
    all.options.speech = address.1.then(|| all.speech.clone());
    // The default of every platform's suppliers.
    all.options.add_named_sources();
}

pub(super) fn check_suppliers(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    if all.options.breaker.cooldown > all.options.breaker.cooldown_max {
        reader.refuse(
            "suppliers.breaker_cooldown",
            &"it is longer than suppliers.breaker_cooldown_max",
            "give a shorter time",
        );
    }
}

#[cfg(not(feature = "chat-model"))]
pub(super) fn check_chat(_: &mut SettingsReader<'_>, _: &mut Settings) {}

#[cfg(feature = "chat-model")]
pub(super) fn check_chat(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let address = ("chat.base_url", !all.chat.base_url.is_empty());
    let model = ("chat.model", !all.chat.model.is_empty());
    reader.needs_both(address, model);
    all.options.chat = address.1.then(|| all.chat.clone());
    check_embeddings(reader, all);
}

#[cfg(feature = "chat-model")]
fn check_embeddings(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let address = ("chat.embeddings_url", !all.embeddings.base_url.is_empty());
    let model = ("chat.embeddings_model", !all.embeddings.model.is_empty());
    reader.needs_both(address, model);
    all.options.embeddings = address.1.then(|| all.embeddings.clone());
    let Some(folder) = all.embedding_model.clone() else { return };
    if address.1 {
        let what = "it is set, and chat.embeddings_url too";
        reader.refuse("chat.embedding_model", &what, "set one of both");
    }
    #[cfg(feature = "static-embeddings")]
    {
        all.options.embedding_model = Some(folder);
    }
    #[cfg(not(feature = "static-embeddings"))]
    {
        let what = format!(
            "{} cannot be read: this build lacks the feature static-embeddings",
            quoted(&folder.display().to_string())
        );
        let allowed = "leave it out, or build the command with --features static-embeddings";
        reader.refuse("chat.embedding_model", &what, allowed);
    }
}

pub(super) fn check_mail(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    reader.needs(("mail.smtp_url", all.mail.smtp_url.is_some()), ("mail.from", all.mail.from.is_some()));
}

pub(super) fn check_payments(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let StripeOptions { secret_key, webhook_secrets, .. } = &all.stripe;
    if !secret_key.is_empty() && webhook_secrets.is_empty() {
        let what = "none is set, but stripe.secret_key is: payments could not be confirmed";
        reader.refuse_unset("stripe.webhook_secrets", &what, "set both or neither");
    }
    // Without the key nothing would be for sale, and a local server would open the sandbox.
    reader.needs(
        ("stripe.webhook_secrets", !webhook_secrets.is_empty()),
        ("stripe.secret_key", !secret_key.is_empty()),
    );
    let has_rest = |text: &str, prefix: &str| text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
    if !secret_key.is_empty() && !SECRET_KEY_PREFIXES.into_iter().any(|prefix| has_rest(secret_key, prefix)) {
        let what = "it does not begin with sk_ or rk_, or has nothing after it";
        reader.refuse("stripe.secret_key", &what, "give a secret key of Stripe, such as sk_live_…");
    }
    if !webhook_secrets.iter().all(|secret| has_rest(secret, WEBHOOK_SECRET)) {
        let what = "a secret does not begin with whsec_, or has nothing after it";
        let allowed = "write [\"whsec_…\", \"whsec_…\"] in the settings file, and whsec_…,whsec_… without \
                       brackets and quotes in the environment";
        reader.refuse("stripe.webhook_secrets", &what, allowed);
    }
    // Stripe if it is set, otherwise the sandbox if the operator opened it, or did not close it and no proxy is set. It
    // gives credits away, so only this machine may reach it.
    let is_local = all.server.is_local_only();
    if secret_key.is_empty() && all.sandbox == Some(true) && !is_local {
        let what = match all.server.ip().is_loopback() {
            true => "it is true, but server.base_url is not a loopback address",
            false => "it is true, but server.listen is not a loopback address",
        };
        let allowed = "give server.listen and server.base_url addresses such as 127.0.0.1:8080 and \
                       http://127.0.0.1:8080, or leave checkout.sandbox out and set stripe.secret_key";
        reader.refuse("checkout.sandbox", &what, allowed);
    }
    let is_private = is_local && all.server.trusted_proxies.is_empty();
    all.options.checkout = match (secret_key.is_empty(), all.sandbox.unwrap_or(is_private)) {
        (false, _) => PaymentOptions::Stripe(Box::new(all.stripe.clone())),
        (true, true) => PaymentOptions::Sandbox,
        (true, false) => PaymentOptions::None,
    };
}

pub(super) fn check_entitlements(_: &mut SettingsReader<'_>, all: &mut Settings) {
    all.options.entitlement = (!all.entitlement.keys.is_empty()).then(|| all.entitlement.clone());
}

/// Two listeners cannot have one address, unless the system selects their ports.
pub(super) fn check_listeners(reader: &mut SettingsReader<'_>, all: &mut Settings) {
    let server = ("server.listen", Some(all.server.listen.socket_address()));
    let admin = ("admin.listen", all.server.admin.map(|address| address.0));
    let metrics = ("metrics.listen", all.log.metrics);
    for ((name, address), (other, taken)) in [(admin, server), (metrics, server), (metrics, admin)] {
        if address == taken && address.is_some_and(|address| address.port() != 0) {
            reader.refuse(name, &format_args!("it is the address of {other}"), "give another port");
        }
    }
}

pub(super) fn check_traces(reader: &mut SettingsReader<'_>, all: &Settings) {
    let Some(endpoint) = &all.log.traces else { return };
    if !cfg!(feature = "otel") {
        let missing = "this build has no traces: it lacks the feature otel";
        let allowed = "leave it out, or build the command with --features otel";
        reader.refuse("traces.endpoint", &missing, allowed);
    }
    if !endpoint.as_str().starts_with("http://") {
        let allowed = "use a local collector that forwards them";
        reader.refuse("traces.endpoint", &"traces are sent over http only", allowed);
    }
}
