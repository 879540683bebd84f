//! Maps settings to the options of the library.

use transcript_core::{
    accounts::{AccountsOptions, PlanTable, PlanTerms},
    engine::{AbsencePolicy, BreakerPolicy},
    lookup::LookupOptions,
    video::Platform,
};
use verbatim::{
    ChatModelOptions, ConcurrencyOptions, CustomPorts, DatabaseOptions, EntitlementOptions, Options,
    PaymentOptions, ServiceOptions, SoundFormat, SpeechOptions, StorageOptions, StripeAccount,
    SupplierOptions, UpstreamOptions, XOptions, YouTubeOptions, YtDlpOptions,
};

use crate::config::{
    ConfigErrors, PaymentBackend, SecretUrl, Settings, SpeechFormat, StorageSettings, StoreUrl, SupplierName,
};

/// Returns the options for these settings; links begin with `base_url`.
///
/// # Errors
/// The two databases are of different kinds.
pub(crate) fn options(settings: &Settings, base_url: String) -> Result<Options, ConfigErrors> {
    let limits = &settings.limits;
    let suppliers = |platform| {
        settings
            .suppliers
            .for_platform(platform)
            .iter()
            .map(|supplier| supplier.as_str().to_owned())
            .collect()
    };
    Ok(Options {
        storage: storage(&settings.storage)?,
        suppliers: SupplierOptions {
            youtube: suppliers(Platform::YouTube),
            tiktok: suppliers(Platform::TikTok),
            instagram: suppliers(Platform::Instagram),
            x: suppliers(Platform::X),
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
        concurrency: concurrency(settings),
        breaker: BreakerPolicy {
            failures: settings.suppliers.breaker_threshold,
            cooldown: settings.suppliers.breaker_cooldown,
            cooldown_max: settings.suppliers.breaker_cooldown_max,
        },
        observer: None,
        detach_unpaid: true,
        custom: CustomPorts::default(),
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

/// Maximum number of concurrent videos of each supplier.
fn concurrency(settings: &Settings) -> ConcurrencyOptions {
    let videos = |supplier| settings.suppliers.max_concurrent_videos(supplier);
    ConcurrencyOptions {
        youtube_captions: videos(SupplierName::YoutubeCaptions),
        tiktok_captions: videos(SupplierName::TiktokCaptions),
        x_captions: videos(SupplierName::XCaptions),
        ytdlp: videos(SupplierName::Ytdlp),
        verbatim_service: videos(SupplierName::VerbatimService),
        speech_to_text: videos(SupplierName::SpeechToText),
    }
}

/// Speech-to-text options.
fn speech(settings: &Settings) -> Option<SpeechOptions> {
    let speech = &settings.speech;
    let (base_url, model) = speech.base_url.as_ref().zip(speech.model.as_ref())?;
    Some(SpeechOptions {
        api_key: speech.api_key.as_ref().map(|key| key.reveal().to_owned()),
        max_duration: speech.max_duration,
        max_bytes: speech.max_bytes,
        max_download: speech.max_download,
        part: speech.chunk_duration,
        format: match speech.format {
            SpeechFormat::Ogg => SoundFormat::Ogg,
            SpeechFormat::Flac => SoundFormat::Flac,
            SpeechFormat::Wav => SoundFormat::Wav,
        },
        timeout: speech.timeout,
        retries: speech.retries,
        concurrency: speech.concurrency,
        ffmpeg: speech.ffmpeg.clone(),
        ..SpeechOptions::new(base_url.as_str(), model)
    })
}

/// Options of the other Verbatim server.
fn service(settings: &Settings) -> Option<ServiceOptions> {
    let service = &settings.service;
    let (base_url, key) = service.base_url.as_ref().zip(service.api_key.as_ref())?;
    Some(ServiceOptions { timeout: service.timeout, ..ServiceOptions::new(base_url.as_str(), key.reveal()) })
}

/// Chat model options.
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

/// Options of the v1 API.
fn accounts(settings: &Settings, base_url: String) -> AccountsOptions {
    let mut plans = PlanTable::default();
    for plan in &settings.plans.plans {
        *plans.terms_mut(plan.plan) = PlanTerms {
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

/// Payment options.
fn checkout(settings: &Settings) -> PaymentOptions {
    let payment = &settings.payment;
    match (settings.payment_backend(), &payment.secret_key) {
        (PaymentBackend::Stripe, Some(key)) => PaymentOptions::Stripe(StripeAccount {
            secret_key: key.reveal().to_owned(),
            webhook_secrets: payment.webhook_secrets.iter().map(|one| one.reveal().to_owned()).collect(),
            api_url: payment.api_url.as_ref().map(|url| url.as_str().to_owned()),
        }),
        (PaymentBackend::Sandbox, _) => PaymentOptions::Sandbox,
        (PaymentBackend::Stripe | PaymentBackend::None, _) => PaymentOptions::None,
    }
}

pub(crate) fn storage(settings: &StorageSettings) -> Result<StorageOptions, ConfigErrors> {
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
        _ => Err(ConfigErrors::new(
            "storage.archive_url: it must be of the same kind as storage.url: sqlite:// or postgres:// for both",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingSources;

    fn load(environment: &[(&str, &str)]) -> Settings {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Settings::load(SettingSources { data: "/data".into(), file: None, environment, flags: Vec::new() })
            .unwrap()
    }

    #[test]
    fn options_default_settings_equal_library_defaults() {
        let library = Options::default();
        let server = options(&load(&[]), library.lookup.base_url.clone()).unwrap();
        let files =
            StorageOptions::Files { main: "/data/verbatim.db".into(), archive: "/data/archive.db".into() };
        assert_eq!(server.storage, files);
        assert_eq!(
            // The sandbox is open while links lead to this machine.
            format!("{:?}", Options { storage: StorageOptions::Memory, ..server }),
            format!("{:?}", Options { checkout: PaymentOptions::Sandbox, ..library })
        );
    }

    #[test]
    fn storage_mixed_databases_are_refused() {
        let settings = load(&[
            ("VERBATIM_STORAGE__URL", "postgres://me:hush@db/v"),
            ("VERBATIM_STORAGE__ARCHIVE_URL", "sqlite:///data/archive.db"),
        ]);
        let problem = options(&settings, String::new()).unwrap_err().to_string();
        assert!(problem.starts_with("storage.archive_url: ") && !problem.contains("hush"), "{problem}");
    }

    #[test]
    fn storage_archive_url_defaults_to_postgres_url() {
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
