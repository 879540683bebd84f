//! Reads settings by name: parsing, bounds and reporting in one place.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive, time::Duration};

use super::{
    errors::ConfigErrors,
    layers::{RawSettings, SettingLayers, SettingOrigin, variable},
    value::{DurationValue, ParseSetting, quoted},
};

/// Settings renamed before the first release: old name and new name.
const RENAMED: [(&str, &str); 11] = [
    ("suppliers.rest_after", "suppliers.breaker_threshold"),
    ("suppliers.rest", "suppliers.breaker_cooldown"),
    ("suppliers.rest_max", "suppliers.breaker_cooldown_max"),
    ("youtube.videos", "youtube.max_concurrent_videos"),
    ("tiktok.videos", "tiktok.max_concurrent_videos"),
    ("x.videos", "x.max_concurrent_videos"),
    ("ytdlp.videos", "ytdlp.max_concurrent_videos"),
    ("service.videos", "service.max_concurrent_videos"),
    ("speech.videos", "speech.max_concurrent_videos"),
    ("speech.part", "speech.chunk_duration"),
    ("traces.one_in", "traces.sample_ratio"),
];

/// A setting with its effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// Name.
    pub name: String,
    /// Value as TOML, or a placeholder for a secret; `None` if it is not set.
    pub value: Option<String>,
    /// Origin of the value.
    pub origin: SettingOrigin,
}

/// Reads settings from the layers and collects known names, effective values and errors.
///
/// Reading never fails: an invalid value is recorded and replaced by the default, so that one start reports all
/// errors. [`SettingsReader::finish`] returns them.
#[derive(Debug)]
pub struct SettingsReader<'a> {
    layers: &'a SettingLayers,
    effective: Vec<EffectiveSetting>,
    wrong: Vec<String>,
}

impl<'a> SettingsReader<'a> {
    /// Creates a reader of these layers.
    pub fn new(layers: &'a SettingLayers) -> Self {
        Self { layers, effective: Vec::new(), wrong: Vec::new() }
    }

    /// Reads a setting that has a default.
    pub fn value<T: ParseSetting>(&mut self, name: &str, default: T) -> T {
        let (value, origin) = match self.given::<T>(name) {
            Some((value, origin)) => (value, origin),
            None => (default, SettingOrigin::Default),
        };
        self.record(name, Some(value.show()), origin);
        value
    }

    /// Reads a setting that may be unset. An empty text counts as unset.
    pub fn optional<T: ParseSetting>(&mut self, name: &str) -> Option<T> {
        self.read_optional(name, None)
    }

    /// Reads a setting that may be unset; `absent` is reported as its value then.
    pub fn optional_or<T: ParseSetting>(&mut self, name: &str, absent: Option<String>) -> Option<T> {
        self.read_optional(name, absent.map(|absent| absent.show()))
    }

    fn read_optional<T: ParseSetting>(&mut self, name: &str, absent: Option<String>) -> Option<T> {
        let empty = |raw: &RawSettings| matches!(raw, RawSettings::Text(text) if text.trim().is_empty());
        if self.layers.find(name).is_some_and(|given| empty(&given.raw)) {
            self.record(name, absent, SettingOrigin::Default);
            return None;
        }
        let given = self.given::<T>(name);
        let (value, origin) = match given {
            Some((value, origin)) => (Some(value), origin),
            None => (None, SettingOrigin::Default),
        };
        self.record(name, value.as_ref().map(ParseSetting::show).or(absent), origin);
        value
    }

    /// Reads a whole number within bounds.
    pub fn number(&mut self, name: &str, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let value = self.value(name, default);
        self.within(name, value, default, &bounds)
    }

    /// Reads a whole number within 32-bit bounds.
    pub fn small(&mut self, name: &str, default: u32, bounds: RangeInclusive<u32>) -> u32 {
        let bounds = u64::from(*bounds.start())..=u64::from(*bounds.end());
        u32::try_from(self.number(name, u64::from(default), bounds)).unwrap_or(default)
    }

    /// Reads a duration within bounds.
    pub fn duration(&mut self, name: &str, default: Duration, bounds: RangeInclusive<Duration>) -> Duration {
        let value = self.value(name, DurationValue(default));
        let bounds = DurationValue(*bounds.start())..=DurationValue(*bounds.end());
        self.within(name, value, DurationValue(default), &bounds).0
    }

    /// Reads a share from 0 to 1.
    pub fn ratio(&mut self, name: &str, default: f64) -> f64 {
        let value = self.value(name, default);
        if (0.0..=1.0).contains(&value) {
            return value;
        }
        // The bounds as in docs/settings.md, not as `0.0` and `1.0`.
        self.refuse(name, &format!("{} is not allowed", value.show()), "it must be from 0 to 1");
        default
    }

    /// Returns the value if it is within bounds, otherwise records an error and returns the default.
    pub fn within<T: ParseSetting + PartialOrd + Copy>(
        &mut self,
        name: &str,
        value: T,
        default: T,
        bounds: &RangeInclusive<T>,
    ) -> T {
        if bounds.contains(&value) {
            return value;
        }
        let allowed = format!("it must be from {} to {}", bounds.start().show(), bounds.end().show());
        self.refuse(name, &format!("{} is not allowed", value.show()), &allowed);
        default
    }

    /// Records an error of a setting.
    pub fn refuse(&mut self, name: &str, what: &dyn fmt::Display, allowed: &str) {
        let origin = self.layers.find(name).map_or(SettingOrigin::Default, |given| given.origin.clone());
        self.wrong.push(format!("{name}: {what} ({origin}); {allowed}"));
    }

    /// Records an error if `one` is set and `other`, which it requires, is not.
    pub fn needs(&mut self, (one, is_set): (&str, bool), (other, is_there): (&str, bool)) {
        if is_set && !is_there {
            self.refuse(other, &format_args!("it is not set, but {one} is"), "set both or neither");
        }
    }

    /// Returns the effective settings.
    ///
    /// # Errors
    /// All invalid values and unknown names.
    pub fn finish(mut self) -> Result<Vec<EffectiveSetting>, ConfigErrors> {
        let known: BTreeSet<&str> = self.effective.iter().map(|setting| setting.name.as_str()).collect();
        for (name, origin) in self.layers.names() {
            if let Some((_, new)) = RENAMED.iter().find(|(old, _)| old == name) {
                let new = match origin {
                    SettingOrigin::Environment(_) => variable(new),
                    _ => (*new).to_owned(),
                };
                self.wrong.push(format!("{} was renamed ({origin}): use {new}", quoted(name)));
            } else if !known.contains(name.as_str()) {
                let hint = nearest(name, &known).map_or(String::new(), |near| match origin {
                    SettingOrigin::Environment(_) => format!("; did you mean {}?", variable(near)),
                    _ => format!("; did you mean {near}?"),
                });
                self.wrong.push(format!("{} is not a setting ({origin}){hint}", quoted(name)));
            }
        }
        match ConfigErrors::all(self.wrong) {
            Some(problem) => Err(problem),
            None => Ok(self.effective),
        }
    }

    fn given<T: ParseSetting>(&mut self, name: &str) -> Option<(T, SettingOrigin)> {
        let given = self.layers.find(name)?;
        match T::read(&given.raw) {
            Ok(value) => Some((value, given.origin.clone())),
            Err(detail) => {
                let what = match &given.raw {
                    _ if T::SECRET => "its value (not shown) is not allowed".to_owned(),
                    RawSettings::Text(text) | RawSettings::Bare(text) => {
                        format!("{} is not allowed", quoted(text))
                    }
                    RawSettings::List(_) => "this list is not allowed".to_owned(),
                };
                let detail = detail.map_or(String::new(), |detail| format!(": {detail}"));
                self.refuse(name, &format!("{what}{detail}"), &format!("give {}", T::ALLOWED));
                None
            }
        }
    }

    fn record(&mut self, name: &str, value: Option<String>, origin: SettingOrigin) {
        self.effective.push(EffectiveSetting { name: name.to_owned(), value, origin });
    }
}

/// Returns the known name that is most similar to an unknown one, if similar enough.
fn nearest<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let (likeness, near) = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known).max(tail_likeness(name, known)), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.85).then_some(near)
}

/// Similarity of names without the section: `listen` and `server.listen`.
fn tail_likeness(name: &str, known: &str) -> f64 {
    let tail = known.rsplit('.').next().unwrap_or(known);
    // Slightly below an exact match.
    if name.replace('_', ".").ends_with(&known.replace('_', ".")) || name == tail { 0.9 } else { 0.0 }
}
