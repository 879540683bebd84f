//! Settings of allowances, rate limits and absences.

use std::{ops::RangeInclusive, time::Duration};

use super::reader::SettingsReader;

/// Bounds of an allowance.
const ALLOWANCE: RangeInclusive<u64> = 0..=1_000_000_000;
/// Bounds of a rate limit. The maximum is that of the core's limiter.
const RATE: RangeInclusive<u32> = 1..=transcript_core::limits::LIMIT_MAX;

/// `limits.*`
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// `limits.free_per_month`: new transcripts per free key and month.
    pub free_per_month: u64,
    /// `limits.plus_per_day`: new transcripts per plus key and day.
    pub plus_per_day: u64,
    /// `limits.plus_keys_per_subject`: live plus keys per subscriber.
    pub plus_keys_per_subject: u32,
    /// `limits.visitor_per_day`: new transcripts per verified visitor of the watch page and day.
    pub visitor_per_day: u64,
    /// `limits.visitor_per_network_per_day`: the same limit per visitor's network.
    pub visitor_per_network_per_day: u64,
    /// `limits.service_per_day`: new transcripts per day of all callers together.
    pub service_per_day: u64,
    /// `limits.misses_per_network_per_minute`: lookups without a key that miss the archive, per network.
    pub misses_per_network_per_minute: u32,
    /// `limits.attempts_per_key_per_hour`: failed attempts per API key.
    pub attempts_per_key_per_hour: u32,
    /// `limits.mint_per_network_per_day`: new keys per network.
    pub mint_per_network_per_day: u32,
    /// `limits.register_per_network_per_hour`: registrations per network.
    pub register_per_network_per_hour: u32,
    /// `limits.wait`: how long a request waits for a new transcript.
    pub wait: Duration,
}

impl LimitSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self {
            free_per_month: reader.number("limits.free_per_month", 25, ALLOWANCE),
            plus_per_day: reader.number("limits.plus_per_day", 100, ALLOWANCE),
            plus_keys_per_subject: reader.small("limits.plus_keys_per_subject", 3, 0..=1_000),
            visitor_per_day: reader.number("limits.visitor_per_day", 3, ALLOWANCE),
            visitor_per_network_per_day: reader.number("limits.visitor_per_network_per_day", 30, ALLOWANCE),
            service_per_day: reader.number("limits.service_per_day", 10_000, ALLOWANCE),
            misses_per_network_per_minute: reader.small("limits.misses_per_network_per_minute", 60, RATE),
            attempts_per_key_per_hour: reader.small("limits.attempts_per_key_per_hour", 60, RATE),
            mint_per_network_per_day: reader.small("limits.mint_per_network_per_day", 5, RATE),
            register_per_network_per_hour: reader.small("limits.register_per_network_per_hour", 5, RATE),
            wait: reader.duration(
                "limits.wait",
                Duration::from_secs(25),
                Duration::from_millis(100)..=Duration::from_secs(300),
            ),
        }
    }
}

/// `absence.*`: how long an absence is stored.
#[derive(Clone, Debug)]
pub struct AbsenceSettings {
    /// `absence.no_captions`: no captions, no speech.
    pub no_captions: Duration,
    /// `absence.gone`: private or removed.
    pub gone: Duration,
    /// `absence.login`: login or age limit.
    pub login: Duration,
}

impl AbsenceSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        let bounds = Duration::ZERO..=hours(24 * 365);
        Self {
            no_captions: reader.duration("absence.no_captions", hours(6), bounds.clone()),
            gone: reader.duration("absence.gone", hours(24), bounds.clone()),
            login: reader.duration("absence.login", Duration::from_secs(900), bounds),
        }
    }
}
