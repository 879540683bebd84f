//! Table of all settings: name, place in [`Settings`], kind, bounds and description of each.
//!
//! Settings are read in the order of this table, which is also the order of `check-config`, `docs/settings.md` and the
//! sample file. The default is the value in the place.

mod apis;
mod checks;
mod operation;
mod sources;

use std::{ops::RangeInclusive, time::Duration};

use super::{Settings, reader::SettingsReader};

/// All sections, in order.
pub(super) const SECTIONS: [Section; 19] = [
    section("Server", sources::SERVER, checks::check_server),
    section("Shared caches", sources::SHARED_CACHES, checks::check_cdn),
    section("Storage", sources::STORAGE, checks::check_storage),
    section("Requests to platforms", sources::REQUESTS_TO_PLATFORMS, checks::check_requests),
    section("Another Verbatim server", sources::ANOTHER_VERBATIM_SERVER, checks::check_service),
    section("Speech-to-text", sources::SPEECH_TO_TEXT, checks::check_speech),
    section("Suppliers", sources::SUPPLIERS, checks::check_suppliers),
    section("Chat", apis::CHAT, checks::check_chat),
    section("Search", apis::SEARCH, NO_CHECK),
    section("Mail", apis::MAIL, checks::check_mail),
    section("Webhooks", apis::WEBHOOKS, NO_CHECK),
    section("Payments", apis::PAYMENTS, checks::check_payments),
    section("Plus keys", apis::PLUS_KEYS, checks::check_entitlements),
    section("Limits", apis::LIMITS, NO_CHECK),
    Section {
        note: "How long an absence is stored; 0 stores nothing.",
        ..section("Absences", apis::ABSENCES, NO_CHECK)
    },
    section("Plans and prices", apis::PLANS_AND_PRICES, NO_CHECK),
    section("Admin API", operation::ADMIN_API, NO_CHECK),
    section("Web pages", operation::WEB_PAGES, NO_CHECK),
    section("Logs, metrics and traces", operation::LOGS, checks::check_listeners),
];

/// Checks several settings.
type CheckSettings = fn(&mut SettingsReader<'_>, &mut Settings);

const NO_CHECK: CheckSettings = |_, _| {};

/// Related settings.
#[cfg_attr(not(test), expect(dead_code, reason = "a test writes the documents"))]
pub(super) struct Section {
    /// Title in the documents.
    pub(super) title: &'static str,
    /// What all settings of the section have in common, for the sample file; may be empty.
    pub(super) note: &'static str,
    pub(super) settings: &'static [Setting],
    /// Checks that concern several settings, after all of the section are read.
    pub(super) check: CheckSettings,
}

/// Section without a note.
const fn section(title: &'static str, settings: &'static [Setting], check: CheckSettings) -> Section {
    Section { title, note: "", settings, check }
}

#[cfg_attr(not(test), expect(dead_code, reason = "a test writes the documents"))]
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// Reads the value into its place; the reader's method is the kind of the setting.
    pub(super) read: fn(&mut SettingsReader<'_>, &mut Settings),
    /// Allowed values; empty if the kind has bounds.
    pub(super) allowed: &'static str,
    /// Description, in Markdown.
    pub(super) description: &'static str,
    /// Example as TOML, for a setting that is not set by default.
    pub(super) example: &'static str,
    /// Whether a reload changes it in a running server.
    pub(super) is_reloadable: bool,
}

impl Setting {
    /// The setting, changed by a reload.
    const fn reloadable(self) -> Self {
        Self { is_reloadable: true, ..self }
    }
}

/// All settings, in order.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

/// Setting with a default and bounds.
const fn bounded(
    name: &'static str,
    read: fn(&mut SettingsReader<'_>, &mut Settings),
    description: &'static str,
) -> Setting {
    Setting { name, read, allowed: "", description, example: "", is_reloadable: false }
}

/// Setting with a default.
const fn setting(
    name: &'static str,
    read: fn(&mut SettingsReader<'_>, &mut Settings),
    allowed: &'static str,
    description: &'static str,
) -> Setting {
    Setting { name, read, allowed, description, example: "", is_reloadable: false }
}

/// Setting that is not set by default.
const fn unset(
    name: &'static str,
    read: fn(&mut SettingsReader<'_>, &mut Settings),
    allowed: &'static str,
    description: &'static str,
    example: &'static str,
) -> Setting {
    Setting { name, read, allowed, description, example, is_reloadable: false }
}

const NOTHING: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// Bounds of an allowance.
const ALLOWANCE: RangeInclusive<u64> = 0..=1_000_000_000;
/// Bounds of a rate limit. The maximum is that of the core's limiter.
const RATE: RangeInclusive<u32> = 1..=transcript_core::limits::LIMIT_MAX;
/// Bounds of concurrent videos of a supplier.
const VIDEOS: RangeInclusive<u32> = 1..=1_024;
