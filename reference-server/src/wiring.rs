//! From the settings to the options of the parts.

use transcript_core::{
    accounts::{AccountsOptions, PlanTable, PlanTerms},
    engine::{AbsencePolicy, HealthPolicy},
    lookup::LookupOptions,
    video::Platform,
};
use verbatim::{
    AtOnceOptions, ChatModelOptions, CheckoutOptions, DatabaseOptions, EntitlementOptions, Options, OwnParts,
    ServiceOptions, SoundFormat, SpeechOptions, StorageOptions, StripeAccount, SupplierOptions,
    UpstreamOptions, XOptions, YouTubeOptions, YtDlpOptions,
};

use crate::config::{Format, Problem, SecretUrl, Settings, Storage, StoreUrl, SupplierName, Till};

/// The options that these settings mean, with links that begin with `base_url`.
///
/// # Errors
/// A database that this version cannot use.
pub(crate) fn options(settings: &Settings, base_url: String) -> Result<Options, Problem> {
    let limits = &settings.limits;
    let suppliers = |platform| {
        settings.suppliers.of(platform).iter().map(|supplier| supplier.as_str().to_owned()).collect()
    };
    Ok(Options {
        storage: storage(&settings.storage)?,
        suppliers: SupplierOptions {
            video_site: suppliers(Platform::VideoSite),
            short_video: suppliers(Platform::ShortVideo),
            reels: suppliers(Platform::Reels),
            microblog: suppliers(Platform::Microblog),
        },
        upstream: UpstreamOptions {
            proxies: settings.upstream.proxies.iter().map(|proxy| proxy.0.reveal().to_owned()).collect(),
            ca_file: settings.upstream.ca_file.clone(),
            timeout: settings.upstream.timeout,
            retries: settings.upstream.retries,
            concurrency: settings.upstream.concurrency,
        },
        youtube: YouTubeOptions { clients: settings.youtube.clients.clone().unwrap_or_default() },
        x: XOptions { query_id: settings.x.query_id.clone(), features: settings.x.features.clone() },
        ytdlp: YtDlpOptions { program: settings.ytdlp.program.clone() },
        speech: speech(settings),
        chat: chat(settings),
        service: service(settings),
        at_once: at_once(settings),
        health: HealthPolicy {
            failures: settings.suppliers.rest_after,
            rest: settings.suppliers.rest,
            rest_max: settings.suppliers.rest_max,
        },
        observer: None,
        outlives: true,
        own: OwnParts::default(),
        wait: limits.wait,
        absence: AbsencePolicy {
            no_captions: settings.absence.no_captions,
            gone: settings.absence.gone,
            login: settings.absence.login,
        },
        accounts: accounts(settings, base_url.clone()),
        checkout: checkout(settings),
        lookup: LookupOptions {
            base_url,
            free_per_month: limits.free_per_month,
            plus_per_day: limits.plus_per_day,
            plus_keys_per_subject: limits.plus_keys_per_subject,
            visitor_per_day: limits.visitor_per_day,
            visitor_per_network_per_day: limits.visitor_per_network_per_day,
            service_per_day: limits.service_per_day,
            misses_per_network_per_minute: limits.misses_per_network_per_minute,
            attempts_per_key_per_hour: limits.attempts_per_key_per_hour,
            mint_per_network_per_day: limits.mint_per_network_per_day,
        },
        entitlement: settings.entitlement.keys.as_ref().map(|keys| EntitlementOptions {
            keys: keys.json().to_owned(),
            audience: settings.entitlement.audience.clone(),
            issuer: settings.entitlement.issuer.clone(),
        }),
    })
}

/// With how many videos at once each supplier works.
fn at_once(settings: &Settings) -> AtOnceOptions {
    let videos = |supplier| settings.suppliers.videos(supplier);
    AtOnceOptions {
        youtube_captions: videos(SupplierName::YoutubeCaptions),
        tiktok_captions: videos(SupplierName::TiktokCaptions),
        x_captions: videos(SupplierName::XCaptions),
        ytdlp: videos(SupplierName::Ytdlp),
        verbatim_service: videos(SupplierName::VerbatimService),
        speech_to_text: videos(SupplierName::SpeechToText),
    }
}

/// Who listens to videos.
fn speech(settings: &Settings) -> Option<SpeechOptions> {
    let speech = &settings.speech;
    let (base_url, model) = speech.base_url.as_ref().zip(speech.model.as_ref())?;
    Some(SpeechOptions {
        api_key: speech.api_key.as_ref().map(|key| key.reveal().to_owned()),
        max_duration: speech.max_duration,
        max_bytes: speech.max_bytes,
        max_download: speech.max_download,
        part: speech.part,
        format: match speech.format {
            Format::Ogg => SoundFormat::Ogg,
            Format::Flac => SoundFormat::Flac,
            Format::Wav => SoundFormat::Wav,
        },
        timeout: speech.timeout,
        retries: speech.retries,
        concurrency: speech.concurrency,
        ffmpeg: speech.ffmpeg.clone(),
        ..SpeechOptions::new(base_url.as_str(), model)
    })
}

/// The other server that is asked.
fn service(settings: &Settings) -> Option<ServiceOptions> {
    let service = &settings.service;
    let (base_url, key) = service.base_url.as_ref().zip(service.api_key.as_ref())?;
    Some(ServiceOptions { timeout: service.timeout, ..ServiceOptions::new(base_url.as_str(), key.reveal()) })
}

/// Which model answers questions about videos.
fn chat(settings: &Settings) -> Option<ChatModelOptions> {
    let chat = &settings.chat;
    let (base_url, model) = chat.base_url.as_ref().zip(chat.model.as_ref())?;
    Some(ChatModelOptions {
        api_key: chat.api_key.as_ref().map(|key| key.reveal().to_owned()),
        context_tokens: u32::try_from(chat.context_tokens).unwrap_or(u32::MAX),
        timeout: chat.timeout,
        ..ChatModelOptions::new(base_url.as_str(), model)
    })
}

/// The settings of Surface B.
fn accounts(settings: &Settings, base_url: String) -> AccountsOptions {
    let mut plans = PlanTable::default();
    for plan in &settings.plans.plans {
        *plans.of_mut(plan.plan) = PlanTerms {
            credits: plan.credits,
            requests_per_minute: plan.requests_per_minute,
            price_cents: plan.price.map(|price| price.cents),
        };
    }
    AccountsOptions {
        base_url,
        plans,
        credits_per_transcript: settings.plans.per_transcript,
        credits_per_message: settings.plans.per_message,
        grace: settings.payment.grace,
        register_per_network_per_hour: settings.limits.register_per_network_per_hour,
        ..AccountsOptions::default()
    }
}

/// Who takes the money.
fn checkout(settings: &Settings) -> CheckoutOptions {
    let payment = &settings.payment;
    match (settings.till(), &payment.secret_key) {
        (Till::Stripe, Some(key)) => CheckoutOptions::Stripe(StripeAccount {
            secret_key: key.reveal().to_owned(),
            webhook_secrets: payment.webhook_secrets.iter().map(|one| one.reveal().to_owned()).collect(),
            api_url: payment.api_url.as_ref().map(|url| url.as_str().to_owned()),
        }),
        (Till::Sandbox, _) => CheckoutOptions::Sandbox,
        (Till::Stripe | Till::None, _) => CheckoutOptions::None,
    }
}

pub(crate) fn storage(settings: &Storage) -> Result<StorageOptions, Problem> {
    let database = |url: &SecretUrl| DatabaseOptions {
        url: url.reveal().to_owned(),
        connections: settings.connections,
        connect_timeout: settings.connect_timeout,
        timeout: settings.timeout,
        pooler: settings.pooler,
    };
    match (&settings.url, &settings.archive_url) {
        (StoreUrl::Sqlite(main), StoreUrl::Sqlite(archive)) => {
            Ok(StorageOptions::Files { main: main.clone(), archive: archive.clone() })
        }
        (StoreUrl::Postgres(main), StoreUrl::Postgres(archive)) => {
            Ok(StorageOptions::Postgres { main: database(main), archive: database(archive) })
        }
        _ => Err(Problem::new(
            "storage.archive_url: it must be of the same kind as storage.url: sqlite:// or postgres:// for both",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn load(environment: &[(&str, &str)]) -> Settings {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Settings::load(Sources { data: "/data".into(), file: None, environment, flags: Vec::new() }).unwrap()
    }

    #[test]
    fn the_defaults_of_the_settings_are_those_of_the_library() {
        let library = Options::default();
        let server = options(&load(&[]), library.lookup.base_url.clone()).unwrap();
        let files =
            StorageOptions::Files { main: "/data/verbatim.db".into(), archive: "/data/archive.db".into() };
        assert_eq!(server.storage, files);
        assert_eq!(
            // A server that only this machine reaches lets payments be tried out.
            format!("{:?}", Options { storage: StorageOptions::Memory, ..server }),
            format!("{:?}", Options { checkout: CheckoutOptions::Sandbox, ..library })
        );
    }

    #[test]
    fn two_databases_are_of_one_kind() {
        let settings = load(&[
            ("VERBATIM_STORAGE__URL", "postgres://me:hush@db/v"),
            ("VERBATIM_STORAGE__ARCHIVE_URL", "sqlite:///data/archive.db"),
        ]);
        let problem = options(&settings, String::new()).unwrap_err().to_string();
        assert!(problem.starts_with("storage.archive_url: ") && !problem.contains("hush"), "{problem}");
    }

    #[test]
    fn one_address_is_enough_for_a_database_server() {
        let settings = load(&[
            ("VERBATIM_STORAGE__URL", "postgres://me:hush@db/v"),
            ("VERBATIM_STORAGE__CONNECTIONS", "7"),
            ("VERBATIM_STORAGE__POOLER", "true"),
        ]);
        let storage = options(&settings, String::new()).unwrap().storage;
        let database = || DatabaseOptions {
            connections: 7,
            pooler: true,
            ..DatabaseOptions::new("postgres://me:hush@db/v")
        };
        assert_eq!(storage, StorageOptions::Postgres { main: database(), archive: database() });
        assert!(!format!("{storage:?}").contains("hush"), "{storage:?}");
    }
}
