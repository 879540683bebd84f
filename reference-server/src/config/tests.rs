mod combinations;
mod documents;
mod reload;

use super::*;

fn load(toml: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v.toml");
    std::fs::write(&file, toml).unwrap();
    let sources = SettingSources {
        data: "/data".into(),
        file: Some(file),
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        flags: flags.iter().map(|(name, value)| ((*name).into(), "--flag".into(), (*value).into())).collect(),
    };
    let cut =
        |problem: ConfigErrors| problem.to_string().replace(&format!("{}/", folder.path().display()), "");
    Settings::load(sources).map_err(cut)
}

#[test]
fn settings_empty_sources_are_defaults() {
    let settings = load("", &[], &[]).unwrap();
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.server.base_url_at(settings.server.listen.socket_address()), "http://127.0.0.1:8080");
    let shown = settings.report();
    let shown = shown.lines().find(|line| line.starts_with("server.base_url")).unwrap_or_default();
    assert!(shown.ends_with("= \"http://127.0.0.1:8080\"  # default"), "{shown}");
    assert_eq!(settings.storage.archive_url, StoreUrl::Sqlite("/data/archive.db".into()));
    assert_eq!(settings.options.lookup.free_per_month, 25);
    assert_eq!(settings.options.wait.as_secs(), 25);
    assert_eq!(settings.options.absence.login.as_secs(), 900);
    assert_eq!(settings.options.accounts.plans.scale.credits, 50_000);
    assert_eq!(settings.speech.max_bytes, 25_000_000);
    let video_site = transcript_core::video::Platform::YouTube;
    assert_eq!(settings.options.suppliers.for_platform(video_site), ["youtube-captions"]);
    let short_video = transcript_core::video::Platform::TikTok;
    assert_eq!(settings.options.suppliers.for_platform(short_video), ["tiktok-captions"]);
    let microblog = transcript_core::video::Platform::X;
    assert_eq!(settings.options.suppliers.for_platform(microblog), ["x-captions"]);
    assert_eq!(settings.options.suppliers.for_platform(transcript_core::video::Platform::Instagram), [""; 0]);
    assert!(settings.effective.iter().all(|setting| setting.origin == SettingOrigin::Default));
}

#[test]
fn suppliers_speech_to_text_is_last_by_default() {
    use transcript_core::video::Platform;
    let settings = load("[speech]\nbase_url = \"https://s.example/v1\"\nmodel = \"m\"", &[], &[]).unwrap();
    let of = |platform| settings.options.suppliers.for_platform(platform).to_vec();
    let last_supplier = "speech-to-text";
    assert_eq!(of(Platform::YouTube), ["youtube-captions", last_supplier]);
    assert_eq!(of(Platform::TikTok), ["tiktok-captions", last_supplier]);
    assert_eq!(of(Platform::X), ["x-captions", last_supplier]);
    assert_eq!(of(Platform::Instagram), [last_supplier]);
    let unset = load("suppliers.reels = [\"speech-to-text\"]", &[], &[]).unwrap_err();
    assert!(unset.contains("its own settings are missing"), "{unset}");
}

#[test]
fn suppliers_breaker_and_concurrency_are_configurable() {
    let options = load("", &[], &[]).unwrap().options;
    let breaker = options.breaker;
    assert_eq!((breaker.failures, breaker.cooldown.as_secs(), breaker.cooldown_max.as_secs()), (5, 30, 900));
    assert_eq!(options.concurrency.speech_to_text, 4);
    let file = "suppliers.breaker_threshold = 0\nsuppliers.breaker_cooldown = \"1m\"\nytdlp.max_concurrent_videos = 7\ntiktok.max_concurrent_videos = 1";
    let options = load(file, &[("VERBATIM_SPEECH__MAX_CONCURRENT_VIDEOS", "1")], &[]).unwrap().options;
    assert_eq!((options.breaker.failures, options.breaker.cooldown.as_secs()), (0, 60));
    let videos = options.concurrency;
    assert_eq!(
        [videos.ytdlp, videos.tiktok_captions, videos.speech_to_text, videos.x_captions],
        [7, 1, 1, 32]
    );
    for (wrong, named) in [
        ("suppliers.breaker_cooldown = \"1h\"", "longer than suppliers.breaker_cooldown_max"),
        ("suppliers.breaker_cooldown_max = \"2d\"", "suppliers.breaker_cooldown_max: \"2d\" is not allowed"),
        ("suppliers.breaker_threshold = -1", "suppliers.breaker_threshold"),
        ("x.max_concurrent_videos = 0", "it must be from 1 to 1024"),
    ] {
        let problem = load(wrong, &[], &[]).unwrap_err();
        assert!(problem.contains(named), "{problem}");
    }
}

#[test]
fn layers_later_source_overrides_earlier() {
    let file = "[limits]\nwait = \"1s\"\nplus_per_day = 1\nfree_per_month = 1\n[server]\nlisten = \"[::]:1\"";
    let environment = [("VERBATIM_LIMITS__WAIT", "2s"), ("VERBATIM_LIMITS__PLUS_PER_DAY", "2")];
    let settings = load(file, &environment, &[("limits.plus_per_day", "3")]).unwrap();
    let (limits, wait) = (&settings.options.lookup, settings.options.wait);
    assert_eq!((limits.free_per_month, wait.as_secs(), limits.plus_per_day), (1, 2, 3));
    let report = settings.report();
    assert!(report.contains("= 1  # "), "{report}");
    assert!(report.contains("= \"2s\"  # environment variable VERBATIM_LIMITS__WAIT\n"), "{report}");
    assert!(report.contains("= 3  # flag --flag\n"), "{report}");
    assert!(toml::from_str::<toml::Table>(&report).is_ok(), "{report}");
}

#[test]
fn environment_variable_sets_setting() {
    let environment = [
        ("VERBATIM_PLANS__FREE__CREDITS", "7"),
        ("VERBATIM_SUPPLIERS__VIDEO_SITE", ""),
        ("VERBATIM_SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("VERBATIM_SPEECH__API_KEY", ""),
        ("VERBATIM_RECORDINGS", "/somewhere"),
        ("VERBATIM_DATA", "/elsewhere"),
    ];
    let settings = load("", &environment, &[]).unwrap();
    assert_eq!(settings.options.accounts.plans.free.credits, 7);
    assert_eq!(settings.options.suppliers.for_platform(transcript_core::video::Platform::YouTube), [""; 0]);
    assert_eq!(settings.server.trusted_proxies.len(), 2);
    assert_eq!(settings.speech.api_key, None);
}

#[test]
fn unix_socket_requires_base_url() {
    let file = "[server]\nlisten = \"unix:/run/v.sock\"";
    let problem = load(file, &[], &[]).unwrap_err();
    assert!(
        problem.starts_with("server.base_url: it is not set, but server.listen is a unix socket"),
        "{problem}"
    );
    let settings = load(&format!("{file}\nbase_url = \"https://v.example\""), &[], &[]).unwrap();
    assert_eq!(settings.server.listen.to_string(), "unix:/run/v.sock");
    assert!(!settings.server.is_local_only());
}

#[test]
fn allowed_host_that_matches_no_request_is_refused() {
    let read = |hosts: &str| load("", &[("VERBATIM_SERVER__ALLOWED_HOSTS", hosts)], &[]);
    for wrong in ["*", "*.*", "a.*.org", ".example.org", "*..example.org", "example.net..", ".", "*.10.0.0.1"]
    {
        let problem = read(&format!("v.example,{wrong}")).unwrap_err();
        assert!(problem.contains(&format!("{wrong:?} is invalid")), "{problem}");
        assert!(problem.contains("*.example.org for all names below it"), "{problem}");
    }
    assert_eq!(read("EXAMPLE.net.").unwrap().server.allowed_hosts.show(), "[\"example.net\"]");
}

#[test]
fn settings_that_claim_one_file_or_address_are_refused() {
    for (file, expect) in [
        ("storage.url = \"sqlite:///data/archive.db\"", "storage.archive_url: it is the file of storage.url"),
        (
            "storage.url = \"sqlite://a.db\"\nstorage.archive_url = \"sqlite://./a.db\"",
            "storage.archive_url: it is the file of storage.url",
        ),
        ("metrics.listen = \"127.0.0.1:8080\"", "metrics.listen: it is the address of server.listen"),
        ("admin.listen = \"8080\"", "admin.listen: it is the address of server.listen"),
        (
            "admin.listen = \"9465\"\nmetrics.listen = \"127.0.0.1:9465\"",
            "metrics.listen: it is the address of admin.listen",
        ),
    ] {
        let problem = load(file, &[], &[]).unwrap_err();
        assert!(problem.starts_with(expect) && problem.lines().count() == 1, "{problem}");
    }
    let free = "server.listen = \"127.0.0.1:0\"\nadmin.listen = \"0\"\nmetrics.listen = \"127.0.0.1:0\"";
    assert!(load(free, &[], &[]).is_ok());
}

#[test]
fn wrong_value_error_has_origin_and_allowed_values() {
    let wrong = |toml: &str, environment: &[(&str, &str)], flags: &[(&str, &str)], expect: &str| {
        let problem = load(toml, environment, flags).unwrap_err();
        assert_eq!(problem, expect);
    };
    wrong(
        "\n[upstream]\ntimeout = \"20 parsecs\"\n",
        &[],
        &[],
        "upstream.timeout: \"20 parsecs\" is not allowed (v.toml, line 3); give a duration such as 500ms, 20s, 15m, \
         6h or 7d",
    );
    wrong(
        "",
        &[("VERBATIM_LIMITS__WAIT", "1h")],
        &[],
        "limits.wait: \"1h\" is not allowed (environment variable VERBATIM_LIMITS__WAIT); it must be from \
         \"100ms\" to \"5m\"",
    );
    wrong(
        "",
        &[],
        &[("server.listen", "8080")],
        "server.listen: \"8080\" is not allowed (flag --flag); give an IP address and a port, such as \
         127.0.0.1:8080 or [::]:8080, or unix: and an absolute path",
    );
    wrong("speling = 1", &[], &[], "\"speling\" is not a setting (v.toml, line 1)");
    wrong(
        "[upstream]\ntimout = \"1s\"",
        &[],
        &[],
        "\"upstream.timout\" is not a setting (v.toml, line 2); did you mean upstream.timeout?",
    );
    wrong(
        "",
        &[("VERBATIM_SERVER_LISTEN", "[::]:1")],
        &[],
        "\"server_listen\" is not a setting (environment variable VERBATIM_SERVER_LISTEN); did you mean \
         VERBATIM_SERVER__LISTEN?",
    );
    wrong("[server", &[], &[], "v.toml, line 1: unclosed table, expected `]`");
    wrong(
        "[limits]\nwait = 5\nplus_per_day = \"many\"",
        &[],
        &[],
        "limits.plus_per_day: \"many\" is not allowed (v.toml, line 3); give a whole number\nlimits.wait: \"5\" is \
         not allowed (v.toml, line 2); give a duration such as 500ms, 20s, 15m, 6h or 7d",
    );
    wrong(
        "[suppliers]\nreels = [\"youtube-captions\"]",
        &[],
        &[],
        "suppliers.reels: youtube-captions is not usable: it has no transcripts of this platform's videos \
         (v.toml, line 2); leave it out",
    );
    wrong(
        "[suppliers]\nreels = [\"yt-dlp\"]",
        &[],
        &[],
        "suppliers.reels: yt-dlp is not usable: its own settings are missing (v.toml, line 2); leave it out",
    );
    wrong(
        "[server]\ncors_origins = [\"https://a.example\", \"*\"]",
        &[],
        &[],
        "server.cors_origins: this list is not allowed: \"*\" is invalid (v.toml, line 2); give origins such as \
         https://app.example.org (no path, and not *)",
    );
}

#[test]
fn sample_ratio_out_of_bounds_is_refused() {
    for (value, shown) in [("-0.5", "-0.5"), ("1.5", "1.5"), ("100", "100.0")] {
        let problem = load(&format!("traces.sample_ratio = {value}"), &[], &[]).unwrap_err();
        let expect =
            format!("traces.sample_ratio: {shown} is not allowed (v.toml, line 1); it must be from 0 to 1");
        assert_eq!(problem, expect);
    }
    for (value, expect) in [("0", 0.0), ("0.25", 0.25), ("1", 1.0)] {
        let settings = load(&format!("traces.sample_ratio = {value}"), &[], &[]).unwrap();
        assert_eq!(settings.log.traces_sample_ratio, expect);
    }
}

#[test]
fn renamed_setting_is_refused_with_new_name() {
    let problem = load("suppliers.rest_after = 3", &[], &[]).unwrap_err();
    let expect = "\"suppliers.rest_after\" was renamed (v.toml, line 1): use suppliers.breaker_threshold";
    assert_eq!(problem, expect);
    let problem = load("", &[("VERBATIM_SPEECH__PART", "5m")], &[]).unwrap_err();
    let expect = "\"speech.part\" was renamed (environment variable VERBATIM_SPEECH__PART): use \
                  VERBATIM_SPEECH__CHUNK_DURATION";
    assert_eq!(problem, expect);
}

#[test]
fn unknown_name_overridden_is_still_reported() {
    let problem = load("server.lisen = \"x\"", &[("VERBATIM_SERVER__LISEN", "y")], &[]).unwrap_err();
    assert_eq!(problem.lines().count(), 2, "{problem}");
}

#[test]
fn settings_file_missing_error_has_path() {
    let sources = SettingSources {
        data: "/data".into(),
        file: Some("/nowhere/v.toml".into()),
        environment: Vec::new(),
        flags: Vec::new(),
    };
    let problem = Settings::load(sources).unwrap_err().to_string();
    assert!(problem.starts_with("the settings file /nowhere/v.toml cannot be read: "), "{problem}");
}

#[test]
fn secrets_are_not_in_reports_or_errors() {
    let file = "[upstream]\nproxy = \"http://me:hush@proxy:1\"\n[speech]\nbase_url = \"https://s.example/v1\"\nmodel = \
                \"m\"\napi_key = \"hush\"\n[storage]\nurl = \"postgres://me:hush@db/v\"\n[stripe]\nsecret_key = \
                \"sk_hush\"\nwebhook_secrets = [\"whsec_hush\"]\n[mail]\nsmtp_url = \"smtp://me:hush@mail\"\nfrom = \
                \"a@b.example\"\n[entitlement]\nkeys = '{\"keys\": [{\"k\": \"hush\"}]}'";
    let settings = load(file, &[], &[]).unwrap();
    let shown = format!("{settings:?}\n{}\n{:?}", settings.report(), settings.warnings());
    assert!(!shown.contains("hush"), "{shown}");
    for (name, value) in [
        ("VERBATIM_UPSTREAM__PROXY", "ftp://me:hush@proxy"),
        ("VERBATIM_SPEECH__API_KEY", "hush hush"),
        ("VERBATIM_STORAGE__URL", "mysql://me:hush@db"),
        ("VERBATIM_ENTITLEMENT__KEYS", "{\"hush\"}"),
    ] {
        let problem = load("", &[(name, value)], &[]).unwrap_err();
        assert!(problem.contains(name) && !problem.contains("hush"), "{problem}");
    }
}

#[test]
fn refused_value_with_credentials_is_not_shown() {
    let names: Vec<_> = load("", &[], &[]).unwrap().effective.iter().map(|setting| setting.name).collect();
    for value in [
        "https://me:hush@host.example:port/",
        "https://me:hush@host.example/?hush",
        "https://host.example/?key=hush#hush",
        "https://hush@host.example",
        "https:me:hush",
        "http://me:hush@[::1/",
        "postgres://me:hush@db/v",
        "mysql://me:hush@db/v",
        "sqlite://:memory:?key=hush",
        "smtp://me:hush@mail.example?tls=hush",
        "socks4://me:hush@proxy:1080",
        "me:hush@proxy:3128",
        "sk_live_hush",
        "sk-hush",
        "whsec_hush",
        "vbk_hush",
        "Bearer hush",
        "hush0123456789abcdefghij",
    ] {
        let quoted = toml::Value::from(value).to_string();
        let lines = |value: &str| names.iter().map(|name| format!("{name} = {value}\n")).collect::<String>();
        let variables: Vec<_> = names.iter().map(|name| layers::variable(name)).collect();
        let environment: Vec<_> = variables.iter().map(|name| (name.as_str(), value)).collect();
        for outcome in [
            load("", &environment, &[]),
            load(&lines(&quoted), &[], &[]),
            load(&lines(&format!("[{quoted}]")), &[], &[]),
            load(&format!("{quoted} = 1"), &[], &[]),
        ] {
            let problem = outcome.unwrap_err();
            assert!(!problem.contains("hush"), "{value}: {problem}");
        }
    }
}

#[test]
fn refused_address_error_names_its_fault() {
    for (value, fault) in [
        ("example.org", "it has no scheme, or its host or port is wrong"),
        ("https://me:hush@example.org", "it has a user name or a password"),
        ("https://example.org/?key=hush", "it has a query or a fragment"),
        ("ftp://example.org", "its scheme is not http or https"),
    ] {
        for name in
            ["server.base_url", "chat.base_url", "speech.base_url", "service.base_url", "stripe.api_url"]
        {
            let problem = load(&format!("{name} = \"{value}\""), &[], &[]).unwrap_err();
            let expect =
                format!("{name}: its value (not shown) is not allowed: {fault} (v.toml, line 1); give an");
            assert!(problem.contains(&expect), "{problem}");
        }
    }
}

#[test]
fn warnings_name_risky_settings() {
    let warnings = |toml: &str| load(toml, &[], &[]).unwrap().warnings().join("\n");
    assert!(warnings("").contains("speech.base_url is not set"));
    let speech =
        |base_url: &str, more: &str| format!("[speech]\nbase_url = \"{base_url}\"\nmodel = \"m\"\n{more}");
    assert!(
        warnings(&speech("https://s.example/v1", "ffmpeg = \"/no/such\"")).contains("no program /no/such")
    );
    let clear = speech("http://s.example/v1", "api_key = \"k\"\nffmpeg = \"/bin/sh\"");
    assert!(warnings(&clear).contains("speech.base_url is http"));
    assert!(!warnings(&clear.replace("http:", "https:")).contains("speech."));
    assert!(!warnings("").contains("server.base_url"));
    assert!(warnings("server.listen = \"0.0.0.0:80\"").contains("server.base_url is not set"));
    assert!(!warnings("server.listen = \"[::ffff:127.0.0.1]:80\"").contains("server.base_url is not set"));
    assert!(warnings("server.base_url = \"http://v.example\"").contains("unencrypted"));
    assert!(!warnings("server.base_url = \"https://v.example\"").contains("unencrypted"));
    assert!(warnings("entitlement.issuer = \"me\"").contains("entitlement.keys is not set"));
    assert!(warnings("chat.timeout = \"9s\"").contains("chat.base_url is not set"));
    let chat = "[chat]\nbase_url = \"http://c.example/v1\"\nmodel = \"m\"";
    assert!(warnings(chat).contains("chat.base_url is http"));
    assert!(!warnings(&chat.replace("http:", "https:")).contains("chat") && !warnings("").contains("chat"));
    assert!(warnings("").contains("mails are written to /data/outbox"));
    let mail = |url: &str| format!("[mail]\nsmtp_url = \"{url}\"\nfrom = \"a@b.example\"");
    assert!(warnings(&mail("smtp://mail.example")).contains("mail.smtp_url: mails and the password"));
    assert!(!warnings(&mail("smtps://mail.example")).contains("mail"));
    assert!(warnings("suppliers.video_site = []").contains("suppliers.video_site is empty"));
    let metrics = |address: &str| warnings(&format!("metrics.listen = \"{address}\""));
    assert!(metrics("0.0.0.0:9464").contains("metrics.listen may be reached by other machines"));
    assert!(!metrics("[::ffff:127.0.0.1]:9464").contains("metrics.listen may be reached by other machines"));
    assert!(!metrics("127.0.0.1:9464").contains("metrics"));
    let admin = |address: &str| warnings(&format!("admin.listen = \"{address}\""));
    assert!(admin("0.0.0.0:9465").contains("admin.listen may be reached by other machines"));
    for address in ["127.0.0.1:9465", "[::1]:9465", "9465"] {
        assert!(!admin(address).contains("admin"), "{address}");
    }
    let settings = load("admin.listen = \"9465\"", &[], &[]).unwrap();
    assert_eq!(settings.server.admin.map(|address| address.0.to_string()).as_deref(), Some("127.0.0.1:9465"));
    assert!(load("", &[], &[]).unwrap().server.admin.is_none());
    for wrong in ["localhost:9465", "127.0.0.1", "70000"] {
        assert!(load(&format!("admin.listen = \"{wrong}\""), &[], &[]).is_err(), "{wrong}");
    }
}

#[test]
fn warnings_name_stop_that_outlasts_service_managers() {
    let warnings = |toml: &str| load(toml, &[], &[]).unwrap().warnings().join("\n");
    let chat = "[chat]\nbase_url = \"https://c.example/v1\"\nmodel = \"m\"\n";
    for (settings, seconds) in [
        (String::new(), None),
        (format!("server.stop_delay = \"30s\"\n{chat}"), None),
        (format!("server.stop_delay = \"31s\"\n{chat}"), Some(181)),
        (format!("{chat}timeout = \"3m\""), Some(270)),
        ("limits.wait = \"2m\"".to_owned(), Some(210)),
        ("chat.timeout = \"3m\"".to_owned(), None),
    ] {
        let listed = warnings(&settings);
        let expected = seconds.map(|seconds: u32| format!("a stop may take {seconds} seconds"));
        assert_eq!(listed.contains("a stop may take"), expected.is_some(), "{settings}: {listed}");
        assert!(listed.contains(expected.as_deref().unwrap_or_default()), "{settings}: {listed}");
    }
}

#[test]
fn payment_backend_follows_settings() {
    let check = |toml: &str, backend: &str, route: &str, warnings: &[&str]| {
        let settings = load(toml, &[], &[]).unwrap();
        assert!(format!("{:?}", settings.options.checkout).starts_with(backend), "{toml}");
        assert!(settings.report().ends_with(&format!("\n# payments: {route}\n")), "{}", settings.report());
        let listed = settings.warnings().join("\n");
        for warning in warnings {
            assert!(listed.contains(warning), "{warning}: {listed}");
        }
        assert!(!format!("{listed}{}", settings.report()).contains("hush"));
    };
    let sandbox = "sandbox: no money is taken, every order counts as paid";
    check("", "Sandbox", sandbox, &["sold in the sandbox, without money"]);
    for here in ["http://localhost:8080", "http://[::1]", "https://v.localhost"] {
        check(&format!("server.base_url = \"{here}\""), "Sandbox", sandbox, &[]);
    }
    let none = "not configured: nothing is for sale";
    let behind = "server.trusted_proxies = [\"127.0.0.1/32\"]";
    check(behind, "None", none, &["server.trusted_proxies is set, so other machines reach this server"]);
    check(&format!("{behind}\ncheckout.sandbox = true"), "Sandbox", sandbox, &["gets credits and plans"]);
    // Published ports of a container: links lead to this machine, but every machine reaches the server.
    let published = "server.listen = \"0.0.0.0:8080\"\nserver.base_url = \"http://localhost:8080\"";
    check(published, "None", none, &["server.listen is not a loopback address"]);
    check("checkout.sandbox = false", "None", none, &["payments are not configured"]);
    let unset = "stripe.secret_key is not set: payments are not configured";
    for elsewhere in ["server.base_url = \"https://v.example\"", "server.listen = \"0.0.0.0:80\""] {
        check(elsewhere, "None", none, &[unset]);
    }
    for elsewhere in ["server.base_url = \"https://v.example\"", "server.listen = \"0.0.0.0:80\"", published]
    {
        let problem = load(&format!("{elsewhere}\ncheckout.sandbox = true"), &[], &[]).unwrap_err();
        assert!(problem.starts_with("checkout.sandbox: it is true, but server."), "{problem}");
        assert!(problem.contains("give server.listen and server.base_url addresses"), "{problem}");
    }
    let stripe = "stripe.secret_key = \"sk_hush\"\nstripe.webhook_secrets = [\"whsec_hush\"]\n";
    let to = "Stripe; send its webhook events to";
    check(
        &format!("{stripe}server.base_url = \"https://v.example\"\ncheckout.sandbox = true"),
        "Stripe",
        &format!("{to} https://v.example/api/v1/webhooks/stripe"),
        &["the sandbox stays closed", "plans.pro.price_usd is not set: the plan pro is not for sale"],
    );
    check(
        stripe,
        "Stripe",
        &format!("{to} http://127.0.0.1:8080/api/v1/webhooks/stripe"),
        &["Stripe's events do not arrive"],
    );
}

#[test]
fn webhook_secrets_variable_takes_comma_list() {
    let load = |secrets: &str| {
        let key = ("VERBATIM_STRIPE__SECRET_KEY", "sk_hush");
        load("", &[key, ("VERBATIM_STRIPE__WEBHOOK_SECRETS", secrets)], &[])
    };
    let good = load("whsec_hush,whsec_hush2").unwrap().stripe.webhook_secrets;
    assert_eq!(good.len(), 2);
    for junk in ["[\"whsec_hush\"]", "whsec_hush,hush", "\"whsec_hush\""] {
        let problem = load(junk).unwrap_err();
        assert!(problem.contains("whsec_…,whsec_… without brackets and quotes"), "{problem}");
        assert!(!problem.contains("hush"), "{problem}");
    }
}

#[test]
fn report_names_mail_route() {
    let route = |toml: &str| load(toml, &[], &[]).unwrap().report();
    // A sender alone is that of the files.
    for toml in ["", "mail.from = \"a@b.example\""] {
        assert!(route(toml).contains("\n# mail: files in /data/outbox\n"));
    }
    let server =
        route("[mail]\nsmtp_url = \"smtp://me:hush@mail.example?tls=required\"\nfrom = \"a@b.example\"");
    let line =
        "# mail: SMTP server mail.example, port 587, with STARTTLS (required), user me; from a@b.example\n";
    assert!(server.contains(line) && !server.contains("hush"), "{server}");
    let problem = load("mail.smtp_url = \"smtp://me:hush@mail.example\"", &[], &[]).unwrap_err();
    assert!(problem.contains("mail.from: it is not set") && !problem.contains("hush"), "{problem}");
}
