//! Reloads of settings.

use super::*;

/// Reloads settings that were read from one file with another one; returns the names of changed and refused settings.
fn reload(before: &str, after: &str) -> (Settings, Vec<&'static str>, Vec<&'static str>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v.toml");
    let environment = vec![("VERBATIM_LIMITS__PLUS_PER_DAY".into(), "9".into())];
    let sources =
        SettingSources { data: "/data".into(), file: Some(file.clone()), environment, flags: Vec::new() };
    std::fs::write(&file, before).unwrap();
    let settings = Settings::load(sources.clone()).unwrap();
    std::fs::write(&file, after).unwrap();
    let ReloadedSettings { settings, changed, refused, .. } = settings.reload(sources).unwrap();
    (settings, changed, refused)
}

#[test]
fn reload_changes_reloadable_settings_only() {
    let before = "limits.wait = \"7s\"\nlimits.plus_per_day = 1\nplans.pro.credits = 1\nlog.level = \"warn\"";
    let after =
        "limits.wait = \"8s\"\nlimits.plus_per_day = 2\nlog.level = \"warn\"\ncheckout.grace = \"1d\"";
    let (settings, changed, refused) = reload(before, after);
    assert_eq!(changed, ["checkout.grace", "plans.pro.credits"]);
    assert_eq!(refused, ["limits.wait"]);
    let Settings { options, log, .. } = &settings;
    assert_eq!((options.wait.as_secs(), options.lookup.plus_per_day), (7, 9));
    assert_eq!((options.accounts.plans.pro.credits, log.level.0), (10_000, tracing::Level::WARN));
    // A line that moves, and a value that is written in another way, are no changes.
    let (_, changed, refused) = reload("limits.wait = \"60s\"", "\n\nlimits.wait = \"1m\"");
    assert!(changed.is_empty() && refused.is_empty(), "{changed:?} {refused:?}");
}

#[test]
fn reload_names_changed_secrets_and_no_derived_defaults() {
    // The default of storage.archive_url is this database.
    let file = |key: &str, database: &str| {
        let stripe = format!("stripe.secret_key = \"{key}\"\nstripe.webhook_secrets = [\"whsec_1\"]");
        format!("{stripe}\nstorage.url = \"postgres://db/{database}\"")
    };
    let (settings, changed, refused) = reload(&file("sk_1", "one"), &file("sk_2", "two"));
    assert_eq!((changed.len(), refused), (0, vec!["storage.url", "stripe.secret_key"]));
    assert_eq!(settings.stripe.secret_key, "sk_1");
    let shown = format!("{settings:?}");
    assert!(!shown.contains("sk_") && !shown.contains("whsec_"), "{shown}");
}

#[test]
fn reloadable_settings_are_those_that_services_take_at_run_time() {
    let names: Vec<_> =
        table::settings().filter(|setting| setting.is_reloadable).map(|one| one.name).collect();
    let groups = ["limits.", "plans.", "credits.", "entitlement.", "search.", "webhooks."];
    let single = ["checkout.grace", "log.level", "server.allowed_hosts", "server.cors_origins"];
    let fits = |name: &str| groups.iter().any(|group| name.starts_with(group)) || single.contains(&name);
    assert!(names.iter().all(|name| fits(name)), "{names:?}");
    let kept = table::settings().filter(|one| !one.is_reloadable && fits(one.name)).map(|one| one.name);
    assert!(kept.eq(["search.access", "limits.fetches", "limits.wait"]));
}
