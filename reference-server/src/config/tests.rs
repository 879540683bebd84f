use super::*;

fn load(toml: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v.toml");
    std::fs::write(&file, toml).unwrap();
    let sources = Sources {
        data: "/data".into(),
        file: Some(file),
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        flags: flags.iter().map(|(name, value)| ((*name).into(), "--flag".into(), (*value).into())).collect(),
    };
    let cut = |problem: Problem| problem.to_string().replace(&format!("{}/", folder.path().display()), "");
    Settings::load(sources).map_err(cut)
}

#[test]
fn without_anything_the_defaults_hold() {
    let settings = load("", &[], &[]).unwrap();
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.server.base_url_at(settings.server.listen), "http://127.0.0.1:8080");
    let shown = settings.report();
    let shown = shown.lines().find(|line| line.starts_with("server.base_url")).unwrap_or_default();
    assert!(shown.ends_with("= \"http://127.0.0.1:8080\"  # default"), "{shown}");
    assert_eq!(settings.storage.archive_url, StoreUrl::Sqlite("/data/archive.db".into()));
    assert_eq!(settings.limits.free_per_month, 25);
    assert_eq!(settings.limits.wait.as_secs(), 25);
    assert_eq!(settings.absence.login.as_secs(), 900);
    assert_eq!(settings.plans.plans[3].credits, 50_000);
    assert_eq!(settings.speech.max_bytes, 25_000_000);
    let video_site = transcript_core::video::Platform::VideoSite;
    assert_eq!(settings.suppliers.of(video_site), [SupplierName::YoutubeCaptions]);
    let short_video = transcript_core::video::Platform::ShortVideo;
    assert_eq!(settings.suppliers.of(short_video), [SupplierName::TiktokCaptions]);
    let microblog = transcript_core::video::Platform::Microblog;
    assert_eq!(settings.suppliers.of(microblog), [SupplierName::XCaptions]);
    assert_eq!(settings.suppliers.of(transcript_core::video::Platform::Reels), []);
    assert!(settings.effective.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn who_listens_is_asked_last() {
    use transcript_core::video::Platform;
    let settings = load("[speech]\nbase_url = \"https://s.example/v1\"\nmodel = \"m\"", &[], &[]).unwrap();
    let of = |platform| settings.suppliers.of(platform).to_vec();
    let listener = SupplierName::SpeechToText;
    assert_eq!(of(Platform::VideoSite), [SupplierName::YoutubeCaptions, listener]);
    assert_eq!(of(Platform::ShortVideo), [SupplierName::TiktokCaptions, listener]);
    assert_eq!(of(Platform::Microblog), [SupplierName::XCaptions, listener]);
    assert_eq!(of(Platform::Reels), [listener]);
    let unset = load("suppliers.reels = [\"speech-to-text\"]", &[], &[]).unwrap_err();
    assert!(unset.contains("its own settings are missing"), "{unset}");
}

#[test]
fn how_suppliers_are_treated_can_be_set() {
    let settings = load("", &[], &[]).unwrap().suppliers;
    assert_eq!((settings.rest_after, settings.rest.as_secs(), settings.rest_max.as_secs()), (5, 30, 900));
    assert_eq!(settings.videos(SupplierName::SpeechToText), 4);
    let file = "suppliers.rest_after = 0\nsuppliers.rest = \"1m\"\nytdlp.videos = 7\ntiktok.videos = 1";
    let settings = load(file, &[("VERBATIM_SPEECH__VIDEOS", "1")], &[]).unwrap().suppliers;
    assert_eq!((settings.rest_after, settings.rest.as_secs()), (0, 60));
    let videos = [
        SupplierName::Ytdlp,
        SupplierName::TiktokCaptions,
        SupplierName::SpeechToText,
        SupplierName::XCaptions,
    ];
    assert_eq!(videos.map(|supplier| settings.videos(supplier)), [7, 1, 1, 32]);
    for (wrong, named) in [
        ("suppliers.rest = \"1h\"", "longer than suppliers.rest_max"),
        ("suppliers.rest_max = \"2d\"", "suppliers.rest_max: \"2d\" is not allowed"),
        ("suppliers.rest_after = -1", "suppliers.rest_after"),
        ("x.videos = 0", "it must be from 1 to 1024"),
    ] {
        let problem = load(wrong, &[], &[]).unwrap_err();
        assert!(problem.contains(named), "{problem}");
    }
}

#[test]
fn every_setting_is_documented_as_it_is() {
    let document = include_str!("../../../docs/settings.md");
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split(" | ").collect()).collect();
    let load = |environment| {
        Settings::load(Sources { data: "DATA".into(), file: None, environment, flags: Vec::new() })
    };
    // What is too much for every number, duration and size is refused with the bounds.
    let bounds = |variable: &str| {
        ["18446744073709551615", "9999y", "9999999GB"].iter().find_map(|far| {
            let problem = load(vec![(variable.into(), far.into())]).err()?.to_string();
            let (_, bounds) = problem.split_once("; it must be from ")?;
            let (from, to) = bounds.lines().next()?.split_once(" to ")?;
            Some(format!("`{from}` to `{to}`"))
        })
    };
    let settings = load(Vec::new()).unwrap().effective;
    let documented: Vec<&str> = rows.iter().filter_map(|row| row[0].split('`').nth(1)).collect();
    let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(documented, names, "docs/settings.md has other settings, or another order");
    for (row, setting) in rows.iter().zip(settings) {
        let [first, default, allowed, meaning] = row.as_slice() else { panic!("{row:?} has no four cells") };
        let (name, variable) = (setting.name, first.split('`').nth(3).unwrap());
        assert_eq!(variable, layers::variable(&name));
        assert_eq!(
            *default,
            setting.value.map_or("not set".to_owned(), |value| format!("`{value}`")),
            "{name}"
        );
        match bounds(variable) {
            Some(bounds) => assert_eq!(*allowed, bounds, "{name}"),
            None => assert!(!allowed.contains("` to `"), "{name}: {allowed}"),
        }
        assert!(meaning.len() > 3, "{name}: {meaning}");
    }
}

#[test]
fn the_example_has_every_setting_with_its_default() {
    let example = include_str!("../../../deploy/verbatim.toml");
    assert_eq!(load(example, &[], &[]).unwrap().effective, load("", &[], &[]).unwrap().effective);
    let rows: Vec<(&str, &str)> = example
        .lines()
        .filter(|line| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1)
        .map(|line| line.trim_start_matches('#').split_once(" = ").unwrap())
        .collect();
    let sources = Sources { data: "DATA".into(), file: None, environment: Vec::new(), flags: Vec::new() };
    let settings = Settings::load(sources).unwrap().effective;
    let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
    let told: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(told, names, "deploy/verbatim.toml has other settings, or another order");
    for ((name, shown), setting) in rows.iter().zip(&settings) {
        match &setting.value {
            Some(value) => assert_eq!(shown, value, "{name}"),
            None => assert!(example.contains(&format!("# (not set)\n#{name} = ")), "{name}"),
        }
    }
    // Taken all together they are allowed.
    let all: Vec<String> = rows
        .iter()
        .filter(|(name, _)| cfg!(feature = "otel") || *name != "traces.endpoint")
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    // A file that is there, and what belongs to a setting that has no example of its own.
    let all =
        all.join("\n").replace("/etc/verbatim/roots.pem", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let settings = load(&all, &[("VERBATIM_STRIPE__WEBHOOK_SECRETS", "whsec_example")], &[]).unwrap();
    assert!(settings.effective.iter().all(|one| one.value.is_some() || one.name == "traces.endpoint"));
}

#[test]
fn later_layers_cover_earlier_ones() {
    let file = "[limits]\nwait = \"1s\"\nplus_per_day = 1\nfree_per_month = 1\n[server]\nlisten = \"[::]:1\"";
    let environment = [("VERBATIM_LIMITS__WAIT", "2s"), ("VERBATIM_LIMITS__PLUS_PER_DAY", "2")];
    let settings = load(file, &environment, &[("limits.plus_per_day", "3")]).unwrap();
    let limits = &settings.limits;
    assert_eq!((limits.free_per_month, limits.wait.as_secs(), limits.plus_per_day), (1, 2, 3));
    let report = settings.report();
    assert!(report.contains("= 1  # "), "{report}");
    assert!(report.contains("= \"2s\"  # environment variable VERBATIM_LIMITS__WAIT\n"), "{report}");
    assert!(report.contains("= 3  # flag --flag\n"), "{report}");
    assert!(toml::from_str::<toml::Table>(&report).is_ok(), "{report}");
}

#[test]
fn every_setting_has_a_variable_of_the_environment() {
    let environment = [
        ("VERBATIM_PLANS__FREE__CREDITS", "7"),
        ("VERBATIM_SUPPLIERS__VIDEO_SITE", ""),
        ("VERBATIM_SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("VERBATIM_SPEECH__API_KEY", ""),
        ("VERBATIM_RECORDINGS", "/somewhere"),
        ("VERBATIM_DATA", "/elsewhere"),
    ];
    let settings = load("", &environment, &[]).unwrap();
    assert_eq!(settings.plans.plans[0].credits, 7);
    assert_eq!(settings.suppliers.of(transcript_core::video::Platform::VideoSite), []);
    assert_eq!(settings.server.trusted_proxies.len(), 2);
    assert_eq!(settings.speech.api_key, None);
}

#[test]
fn what_is_wrong_is_named_with_its_origin_and_what_is_allowed() {
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
         127.0.0.1:8080 or [::]:8080",
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
        "suppliers.reels: youtube-captions cannot be asked: it has no transcripts of this platform's videos \
         (v.toml, line 2); leave it out",
    );
    wrong(
        "[suppliers]\nreels = [\"yt-dlp\"]",
        &[],
        &[],
        "suppliers.reels: yt-dlp cannot be asked: its own settings are missing (v.toml, line 2); leave it out",
    );
    wrong(
        "[server]\ncors_origins = [\"https://a.example\", \"*\"]",
        &[],
        &[],
        "server.cors_origins: this list is not allowed: \"*\" is none (v.toml, line 2); give origins such as \
         https://app.example.org (no path, and not *)",
    );
}

#[test]
fn a_covered_wrong_name_is_still_named() {
    let problem = load("server.lisen = \"x\"", &[("VERBATIM_SERVER__LISEN", "y")], &[]).unwrap_err();
    assert_eq!(problem.lines().count(), 2, "{problem}");
}

#[test]
fn a_missing_file_is_named() {
    let sources = Sources {
        data: "/data".into(),
        file: Some("/nowhere/v.toml".into()),
        environment: Vec::new(),
        flags: Vec::new(),
    };
    let problem = Settings::load(sources).unwrap_err().to_string();
    assert!(problem.starts_with("the settings file /nowhere/v.toml cannot be read: "), "{problem}");
}

#[test]
fn secrets_appear_nowhere() {
    let file = "[upstream]\nproxy = \"http://me:hush@proxy:1\"\n[speech]\nbase_url = \"https://s.example/v1\"\nmodel = \
                \"m\"\napi_key = \"hush\"\n[storage]\nurl = \"postgres://me:hush@db/v\"\n[stripe]\nsecret_key = \
                \"hush\"\nwebhook_secrets = [\"whsec_hush\"]\n[mail]\nsmtp_url = \"smtp://me:hush@mail\"\nfrom = \
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
fn the_operator_is_warned() {
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
    assert!(warnings("server.base_url = \"http://v.example\"").contains("in the clear"));
    assert!(!warnings("server.base_url = \"https://v.example\"").contains("in the clear"));
    assert!(warnings("entitlement.issuer = \"me\"").contains("entitlement.keys is not set"));
    assert!(warnings("chat.timeout = \"9s\"").contains("chat.base_url is not set"));
    let chat = "[chat]\nbase_url = \"http://c.example/v1\"\nmodel = \"m\"";
    assert!(warnings(chat).contains("chat.base_url is http"));
    assert!(!warnings(&chat.replace("http:", "https:")).contains("chat") && !warnings("").contains("chat"));
    assert!(warnings("").contains("mails are written to /data/outbox"));
    let mail = |url: &str| format!("[mail]\nsmtp_url = \"{url}\"\nfrom = \"a@b.example\"");
    assert!(warnings(&mail("smtp://mail.example")).contains("mail.smtp_url: mails, and a password"));
    assert!(!warnings(&mail("smtps://mail.example")).contains("mail"));
    assert!(warnings("suppliers.video_site = []").contains("suppliers.video_site is empty"));
    let metrics = |address: &str| warnings(&format!("metrics.listen = \"{address}\""));
    assert!(metrics("0.0.0.0:9464").contains("metrics.listen may be reached by other machines"));
    assert!(!metrics("127.0.0.1:9464").contains("metrics"));
}

#[test]
fn who_takes_the_money_is_told() {
    let check = |toml: &str, till: Till, route: &str, warnings: &[&str]| {
        let settings = load(toml, &[], &[]).unwrap();
        assert_eq!(settings.till(), till, "{toml}");
        assert!(settings.report().ends_with(&format!("\n# payments: {route}\n")), "{}", settings.report());
        let told = settings.warnings().join("\n");
        for warning in warnings {
            assert!(told.contains(warning), "{warning}: {told}");
        }
        assert!(!format!("{told}{}", settings.report()).contains("hush"));
    };
    let sandbox = "in the sandbox: nobody pays, and everybody gets what they order";
    check("", Till::Sandbox, sandbox, &["sold in the sandbox, where nobody pays"]);
    for here in ["http://localhost:8080", "http://[::1]", "https://v.localhost"] {
        check(&format!("server.base_url = \"{here}\""), Till::Sandbox, sandbox, &[]);
    }
    let none = "not configured: nothing is sold";
    let behind = "server.trusted_proxies = [\"127.0.0.1/32\"]";
    check(behind, Till::None, none, &["server.trusted_proxies is set, so others reach this server"]);
    check(&format!("{behind}\ncheckout.sandbox = true"), Till::Sandbox, sandbox, &["gets credits and plans"]);
    check("checkout.sandbox = false", Till::None, none, &["payments are not configured"]);
    let unset = "stripe.secret_key is not set: payments are not configured";
    for elsewhere in ["server.base_url = \"https://v.example\"", "server.listen = \"0.0.0.0:80\""] {
        check(elsewhere, Till::None, none, &[unset]);
        let open = format!("{elsewhere}\ncheckout.sandbox = true");
        check(&open, Till::Sandbox, sandbox, &["whoever has an account gets credits and plans for nothing"]);
    }
    let stripe = "stripe.secret_key = \"sk_hush\"\nstripe.webhook_secrets = [\"whsec_hush\"]\n";
    let to = "by Stripe, whose events are to be sent to";
    check(
        &format!("{stripe}server.base_url = \"https://v.example\"\ncheckout.sandbox = true"),
        Till::Stripe,
        &format!("{to} https://v.example/api/v1/webhooks/stripe"),
        &["the sandbox stays closed", "plans.pro.price_usd is not set: the plan pro is not sold"],
    );
    check(
        stripe,
        Till::Stripe,
        &format!("{to} http://127.0.0.1:8080/api/v1/webhooks/stripe"),
        &["Stripe's events cannot get here"],
    );
}

#[test]
fn lists_of_signing_secrets_are_written_as_the_environment_writes_lists() {
    let load = |secrets: &str| {
        let key = ("VERBATIM_STRIPE__SECRET_KEY", "sk_hush");
        load("", &[key, ("VERBATIM_STRIPE__WEBHOOK_SECRETS", secrets)], &[])
    };
    let good = load("whsec_hush,whsec_hush2").unwrap().payment.webhook_secrets;
    assert_eq!(good.len(), 2);
    for junk in ["[\"whsec_hush\"]", "whsec_hush,hush", "\"whsec_hush\""] {
        let problem = load(junk).unwrap_err();
        assert!(problem.contains("whsec_…,whsec_… without brackets and quotes"), "{problem}");
        assert!(!problem.contains("hush"), "{problem}");
    }
}

#[test]
fn where_mails_go_is_told() {
    let route = |toml: &str| load(toml, &[], &[]).unwrap().report();
    assert!(route("").contains("\n# mail: into the folder /data/outbox\n"));
    let server =
        route("[mail]\nsmtp_url = \"smtp://me:hush@mail.example?tls=required\"\nfrom = \"a@b.example\"");
    let line =
        "# mail: by SMTP to mail.example, port 587, with STARTTLS, or not at all, as me; from a@b.example\n";
    assert!(server.contains(line) && !server.contains("hush"), "{server}");
    let problem = load("mail.smtp_url = \"smtp://me:hush@mail.example\"", &[], &[]).unwrap_err();
    assert!(problem.contains("mail.from: it is not set") && !problem.contains("hush"), "{problem}");
}
