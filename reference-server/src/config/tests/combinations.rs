//! Settings that have a meaning only together, and variables that are no settings.

use std::{collections::BTreeSet, fs, path::Path};

use super::*;

/// Checks that each of these settings alone is refused with this error.
fn check_refused(settings: &[(&str, &str)]) {
    for (file, expect) in settings {
        let problem = load(file, &[], &[]).unwrap_err();
        assert!(problem.starts_with(expect) && problem.lines().count() == 1, "{file}: {problem}");
        assert!(problem.contains("set both") && !problem.contains("hush"), "{file}: {problem}");
    }
}

#[test]
fn settings_that_require_each_other_are_refused_alone() {
    check_refused(&[
        (
            "stripe.webhook_secrets = [\"whsec_hush\"]",
            "stripe.secret_key: it is not set, but stripe.webhook_secrets is",
        ),
        ("stripe.secret_key = \"sk_hush\"", "stripe.webhook_secrets: none is set, but stripe.secret_key is"),
        ("mail.smtp_url = \"smtp://mail.example\"", "mail.from: it is not set, but mail.smtp_url is"),
    ]);
    // An empty variable is a secret that was lost; its name is in the error.
    let lost = [("VERBATIM_STRIPE__SECRET_KEY", ""), ("VERBATIM_STRIPE__WEBHOOK_SECRETS", "whsec_hush")];
    let problem = load("", &lost, &[]).unwrap_err();
    assert!(problem.contains("(environment variable VERBATIM_STRIPE__SECRET_KEY)"), "{problem}");
}

#[test]
fn refused_value_is_not_reported_as_unset() {
    for (file, expect) in [
        ("mail.smtp_url = \"smtp://h\"\nmail.from = \"foo\"", "mail.from: "),
        ("speech.base_url = \"ftp://h\"\nspeech.model = \"m\"", "speech.base_url: "),
        ("cdn.purge_url = \"ftp://h\"\ncdn.purge_secret = \"hush\"", "cdn.purge_url: "),
        ("server.listen = \"unix:/run/v\"\nserver.base_url = \"h\"", "server.base_url: "),
        ("stripe.secret_key = \"sk_hush\"\nstripe.webhook_secrets = [\"a b\"]", "stripe.webhook_secrets: "),
    ] {
        let problem = load(file, &[], &[]).unwrap_err();
        assert!(problem.starts_with(expect) && problem.lines().count() == 1, "{file}: {problem}");
        assert!(problem.contains("not allowed") && !problem.contains("is not set"), "{file}: {problem}");
    }
}

#[test]
fn stripe_secrets_that_are_none_are_refused() {
    let load = |key: &str, secret: &str| {
        let file =
            format!("[stripe]\nsecret_key = \"{key}\"\nwebhook_secrets = [\"whsec_hush\", \"{secret}\"]");
        load(&file, &[], &[])
    };
    for key in ["sk_live_hush", "sk_test_hush", "rk_live_hush"] {
        load(key, "whsec_hush2").unwrap();
    }
    for key in ["pk_live_hush", "sk_", "rk_", "hush", "whsec_hush", "SK_hush"] {
        let problem = load(key, "whsec_hush2").unwrap_err();
        assert!(problem.starts_with("stripe.secret_key: it does not begin with sk_ or rk_"), "{problem}");
        assert!(problem.lines().count() == 1 && !problem.contains("hush"), "{problem}");
    }
    for secret in ["whsec_", "sk_hush"] {
        let problem = load("sk_hush", secret).unwrap_err();
        assert!(
            problem.starts_with("stripe.webhook_secrets: a secret does not begin with whsec_"),
            "{problem}"
        );
        assert!(problem.lines().count() == 1 && !problem.contains("hush"), "{problem}");
    }
}

#[test]
fn stripe_test_key_on_public_server_is_warned_of() {
    for (key, base_url, in_test_mode, warns) in [
        ("sk_test_hush", "https://v.example", true, true),
        ("rk_test_hush", "https://v.example", true, true),
        ("sk_test_hush", "http://localhost:8080", true, false),
        ("sk_live_hush", "https://v.example", false, false),
        ("sk_hush", "https://v.example", false, false),
    ] {
        let stripe = format!("secret_key = \"{key}\"\nwebhook_secrets = [\"whsec_hush\"]");
        let file = format!("[server]\nbase_url = \"{base_url}\"\n[stripe]\n{stripe}");
        let settings = load(&file, &[], &[]).unwrap();
        let mode = "\n# payments: Stripe in test mode: no money is taken; send its webhook events to ";
        assert_eq!(settings.report().contains(mode), in_test_mode, "{file}: {}", settings.report());
        let warning = settings.free_sales_warning();
        assert_eq!(warning.is_some(), warns, "{file}: {warning:?}");
        assert_eq!(settings.warnings().iter().any(|one| one.contains("test card")), warns, "{file}");
    }
}

#[test]
fn model_without_address_is_refused() {
    check_refused(&[
        ("speech.model = \"m\"", "speech.base_url: it is not set, but speech.model is"),
        ("speech.base_url = \"https://s.example\"", "speech.model: it is not set, but speech.base_url is"),
        ("chat.model = \"m\"", "chat.base_url: it is not set, but chat.model is"),
        ("chat.embeddings_model = \"m\"", "chat.embeddings_url: it is not set, but chat.embeddings_model is"),
    ]);
    // A key may stay while its service is not used.
    let keys = "[speech]\napi_key = \"hush\"\n[chat]\napi_key = \"hush\"\nembeddings_api_key = \"hush\"";
    load(keys, &[], &[]).unwrap();
}

#[test]
fn warnings_name_open_doors_and_missing_database() {
    let warnings = |toml: &str| load(toml, &[], &[]).unwrap().warnings().join("\n");
    let everyone = "server.trusted_proxies contains every address";
    for (networks, warns) in
        [("0.0.0.0/0", true), ("::/0", true), ("::ffff:0:0/96", true), ("10.0.0.0/8", false)]
    {
        let listed = warnings(&format!("server.trusted_proxies = [\"{networks}\"]"));
        assert_eq!(listed.contains(everyone), warns, "{networks}: {listed}");
    }
    let database = "storage.pooler is set, but storage.url is no PostgreSQL server";
    assert!(warnings("storage.pooler = true").contains(database));
    assert!(!warnings("storage.pooler = true\nstorage.url = \"postgres://db/v\"").contains(database));
    assert!(!warnings("").contains("storage."));
    let private = "webhooks.allow_private is true";
    let public = "webhooks.allow_private = true\nserver.base_url = \"https://v.example\"";
    assert!(warnings(public).contains(private));
    assert!(!warnings("webhooks.allow_private = true").contains(private));
}

/// The names with the prefix of settings in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let rest = text.split("VERBATIM_").skip(1);
    let is_end = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let names = rest.map(|rest| rest.split(is_end).next().unwrap_or_default());
    names.filter(|name| !name.is_empty()).map(|name| format!("VERBATIM_{name}")).collect()
}

#[test]
fn variables_of_documentation_are_no_unknown_settings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let single = ["README.md", "CONTRIBUTING.md", "docs/openapi.json", "tests/README.md"];
    let mut files = single.map(|name| root.join(name)).to_vec();
    for folder in ["docs", "reference-server/src/docs/guides"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let names: BTreeSet<String> = texts.flat_map(|text| variables(&text)).collect();
    // The dot of a setting is `__`.
    let samples: Vec<_> = names.iter().filter(|name| !name.contains("__")).collect();
    assert!(samples.len() > 8 && samples.iter().any(|name| *name == "VERBATIM_ACCOUNT_KEY"), "{samples:?}");
    // `VERBATIM_PORT` is one of Kubernetes only if it has an address.
    let environment: Vec<_> = samples.iter().map(|name| (name.as_str(), "tcp://10.0.0.1:80")).collect();
    let settings = load("", &environment, &[]).unwrap();
    assert!(settings.effective.iter().all(|setting| setting.origin == SettingOrigin::Default));
    // A misspelt setting is still reported.
    for (name, near) in [
        ("VERBATIM_LIMIT_WAIT", "VERBATIM_LIMITS__WAIT"),
        ("VERBATIM_SERVER_LISTEN", "VERBATIM_SERVER__LISTEN"),
        ("VERBATIM_SUPPLIERS__YOUTUBE", "VERBATIM_SUPPLIERS__VIDEO_SITE"),
        ("VERBATIM_SUPPLIERS__TIKTOK", "VERBATIM_SUPPLIERS__SHORT_VIDEO"),
        ("VERBATIM_SUPPLIERS__X", "VERBATIM_SUPPLIERS__MICROBLOG"),
        ("VERBATIM_LIMITS__FREE", "VERBATIM_LIMITS__FREE_PER_MONTH"),
    ] {
        let problem = load("", &[(name, "1")], &[]).unwrap_err();
        assert!(problem.contains(&format!("did you mean {near}?")), "{problem}");
    }
}
