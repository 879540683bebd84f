//! Reads settings by name: parsing, bounds and reporting in one place.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive, time::Duration};

use super::{
    errors::ConfigErrors,
    layers::{RawSettings, SettingLayers, SettingOrigin, variable},
    value::{ByteSize, DurationValue, OptionalDuration, ParseSetting, quoted},
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

/// Settings that a build may lack: how their names begin, the feature, and whether this build has it.
const OPTIONAL_SETTINGS: [(&str, &str, bool); 3] = [
    ("chat.embedding_model", "static-embeddings", cfg!(feature = "static-embeddings")),
    ("chat.", "chat-model", cfg!(feature = "chat-model")),
    ("speech.", "speech", cfg!(feature = "speech")),
];

/// Names of platforms, each with the setting that has its suppliers.
const PLATFORMS: [(&str, &str); 5] = [
    ("suppliers.youtube", "suppliers.video_site"),
    ("suppliers.tiktok", "suppliers.short_video"),
    ("suppliers.instagram", "suppliers.reels"),
    ("suppliers.x", "suppliers.microblog"),
    ("suppliers.twitter", "suppliers.microblog"),
];

/// A setting with its effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EffectiveSetting {
    pub(crate) name: &'static str,
    /// Value as TOML, or a placeholder for a secret; `None` if it is not set.
    pub(crate) value: Option<String>,
    /// Origin of the value.
    pub(crate) origin: SettingOrigin,
    /// Smallest and largest allowed value as TOML, if the setting has bounds.
    pub(crate) bounds: Option<(String, String)>,
    /// Whether the value, if it is not the default, may be hidden in part.
    pub(crate) is_secret: bool,
}

/// Reads settings from the layers and collects known names, effective values and errors.
///
/// Each method is a kind of setting and reads the one that [`SettingsReader::begin`] selected. Reading never fails:
/// an invalid value is recorded and replaced by the default, so that one start reports all errors.
/// [`SettingsReader::finish`] returns them.
#[derive(Debug)]
pub(super) struct SettingsReader<'a> {
    layers: &'a SettingLayers,
    name: &'static str,
    /// Whether a value was given, and may be secret.
    is_secret: bool,
    effective: Vec<EffectiveSetting>,
    wrong: Vec<String>,
}

impl<'a> SettingsReader<'a> {
    /// Creates a reader of these layers.
    pub(super) fn new(layers: &'a SettingLayers) -> Self {
        Self { layers, name: "", is_secret: false, effective: Vec::new(), wrong: Vec::new() }
    }

    /// Selects the setting that is read next.
    pub(super) fn begin(&mut self, name: &'static str) {
        self.name = name;
        self.is_secret = false;
    }

    /// Reads a setting whose default is in its place.
    pub(super) fn value<T: ParseSetting>(&mut self, place: &mut T) {
        let origin = match self.given::<T>() {
            Some((value, origin)) => {
                *place = value;
                origin
            }
            None => SettingOrigin::Default,
        };
        self.record(Some(place.show()), origin);
    }

    /// Reads a list and stores its items as texts.
    pub(super) fn texts<T: ParseSetting + Into<String>>(&mut self, place: &mut Vec<String>) {
        match self.given::<Vec<T>>() {
            Some((items, origin)) => {
                self.record(Some(items.show()), origin);
                *place = items.into_iter().map(Into::into).collect();
            }
            None => self.record(Some(place.show()), SettingOrigin::Default),
        }
    }

    /// Reads a setting that may be unset. An empty text counts as unset.
    pub(super) fn optional<T: ParseSetting>(&mut self) -> Option<T> {
        self.optional_or(None)
    }

    /// Reads a text that may be unset: it is empty then.
    pub(super) fn text<T: ParseSetting + Into<String>>(&mut self) -> String {
        self.optional::<T>().map(Into::into).unwrap_or_default()
    }

    /// Reads a setting that may be unset; `absent` is reported as its value then.
    pub(super) fn optional_or<T: ParseSetting>(&mut self, absent: Option<String>) -> Option<T> {
        let absent = absent.map(|absent| absent.show());
        let empty = |raw: &RawSettings| matches!(raw, RawSettings::Text(text) if text.trim().is_empty());
        if self.layers.find(self.name).is_some_and(|given| empty(&given.raw)) {
            self.record(absent, SettingOrigin::Default);
            return None;
        }
        let (value, origin) = self.given::<T>().unzip();
        self.record(
            value.as_ref().map(ParseSetting::show).or(absent),
            origin.unwrap_or(SettingOrigin::Default),
        );
        value
    }

    /// Reads a whole number within bounds.
    pub(super) fn number(&mut self, place: &mut u64, bounds: RangeInclusive<u64>) {
        self.within(place, &bounds);
    }

    /// Reads a whole number within 32-bit bounds.
    pub(super) fn small(&mut self, place: &mut u32, bounds: RangeInclusive<u32>) {
        let mut value = u64::from(*place);
        self.within(&mut value, &(u64::from(*bounds.start())..=u64::from(*bounds.end())));
        *place = u32::try_from(value).unwrap_or(*place);
    }

    /// Reads a duration within bounds.
    pub(super) fn duration(&mut self, place: &mut Duration, bounds: RangeInclusive<Duration>) {
        let mut value = DurationValue(*place);
        self.within(&mut value, &(DurationValue(*bounds.start())..=DurationValue(*bounds.end())));
        *place = value.0;
    }

    /// Reads a duration within bounds, or `off`.
    pub(super) fn optional_duration(
        &mut self,
        place: &mut Option<Duration>,
        bounds: RangeInclusive<Duration>,
    ) {
        let default = *place;
        let mut value = OptionalDuration(default);
        self.value(&mut value);
        *place = value.0;
        if place.is_some_and(|duration| !bounds.contains(&duration)) {
            let bounds = [bounds.start(), bounds.end()].map(|bound| DurationValue(*bound).show());
            let [from, to] = bounds;
            self.refuse_this(
                &format!("{} is not allowed", value.show()),
                &format!("it must be \"off\", or from {from} to {to}"),
            );
            *place = default;
        }
    }

    /// Reads a number of bytes within bounds.
    pub(super) fn size(&mut self, place: &mut u64, bounds: RangeInclusive<u64>) {
        let mut value = ByteSize(*place);
        self.within(&mut value, &(ByteSize(*bounds.start())..=ByteSize(*bounds.end())));
        *place = value.0;
    }

    /// Reads a share from 0 to 1.
    pub(super) fn ratio(&mut self, place: &mut f64) {
        let default = *place;
        self.value(place);
        if !(0.0..=1.0).contains(place) {
            // The bounds as in docs/settings.md, not as `0.0` and `1.0`.
            self.refuse_this(&format!("{} is not allowed", place.show()), "it must be from 0 to 1");
            *place = default;
        }
        self.record_bounds("0", "1");
    }

    /// Reads a value; one that is out of bounds is an error and replaced by the default.
    fn within<T: ParseSetting + PartialOrd + Copy>(&mut self, place: &mut T, bounds: &RangeInclusive<T>) {
        let default = *place;
        self.value(place);
        let (from, to) = (bounds.start().show(), bounds.end().show());
        if !bounds.contains(place) {
            self.refuse_this(
                &format!("{} is not allowed", place.show()),
                &format!("it must be from {from} to {to}"),
            );
            *place = default;
        }
        self.record_bounds(&from, &to);
    }

    /// Records an error of the setting that was read last.
    pub(super) fn refuse_this(&mut self, what: &dyn fmt::Display, allowed: &str) {
        self.refuse(self.name, what, allowed);
    }

    /// Records an error of a setting.
    pub(super) fn refuse(&mut self, name: &str, what: &dyn fmt::Display, allowed: &str) {
        let origin = self.layers.find(name).map_or(SettingOrigin::Default, |given| given.origin.clone());
        self.wrong.push(format!("{name}: {what} ({origin}); {allowed}"));
    }

    /// Records that a setting is not set although it is needed, unless it is set to a value that was refused.
    pub(super) fn refuse_unset(&mut self, name: &str, what: &dyn fmt::Display, allowed: &str) {
        let has_error =
            |sentence: &String| sentence.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        if !self.wrong.iter().any(has_error) {
            self.refuse(name, what, allowed);
        }
    }

    /// Records an error if `one` is set and `other`, which it requires, is not.
    pub(super) fn needs(&mut self, (one, is_set): (&str, bool), (other, is_there): (&str, bool)) {
        if is_set && !is_there {
            self.refuse_unset(other, &format_args!("it is not set, but {one} is"), "set both or neither");
        }
    }

    /// Records an error if only one of two settings is set, which require each other.
    pub(super) fn needs_both(&mut self, one: (&str, bool), other: (&str, bool)) {
        self.needs(one, other);
        self.needs(other, one);
    }

    /// Returns the effective settings.
    ///
    /// # Errors
    /// All invalid values and unknown names.
    pub(super) fn finish(mut self) -> Result<Vec<EffectiveSetting>, ConfigErrors> {
        let known: BTreeSet<&str> = self.effective.iter().map(|setting| setting.name).collect();
        for (name, origin) in self.layers.names() {
            if let Some((_, new)) = RENAMED.iter().find(|(old, _)| old == name) {
                let new = match origin {
                    SettingOrigin::Environment(_) => variable(new),
                    _ => (*new).to_owned(),
                };
                self.wrong.push(format!("{} was renamed ({origin}): use {new}", quoted(name)));
            } else if known.contains(name.as_str()) {
                continue;
            } else if let Some(feature) = missing_feature(name, &OPTIONAL_SETTINGS) {
                self.wrong.push(format!(
                    "{} needs the feature {feature}, which this build lacks ({origin}); leave it out, or build the \
                     command with --features {feature}",
                    quoted(name)
                ));
            } else {
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

    fn given<T: ParseSetting>(&mut self) -> Option<(T, SettingOrigin)> {
        let given = self.layers.find(self.name)?;
        self.is_secret = T::SECRET;
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
                self.refuse_this(&format!("{what}{detail}"), &format!("give {}", T::ALLOWED));
                None
            }
        }
    }

    fn record(&mut self, value: Option<String>, origin: SettingOrigin) {
        let (name, is_secret) = (self.name, self.is_secret);
        self.effective.push(EffectiveSetting { name, value, origin, bounds: None, is_secret });
    }

    fn record_bounds(&mut self, from: &str, to: &str) {
        if let Some(setting) = self.effective.last_mut() {
            setting.bounds = Some((from.to_owned(), to.to_owned()));
        }
    }
}

/// Returns the feature that a setting needs, if it is one of these and not built.
fn missing_feature(name: &str, settings: &[(&str, &'static str, bool)]) -> Option<&'static str> {
    let missing = settings.iter().find(|(start, _, is_built)| name.starts_with(start) && !is_built);
    missing.map(|(_, feature, _)| *feature)
}

/// Returns the known name that is most similar to an unknown one, if similar enough.
fn nearest<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if let Some((_, near)) = PLATFORMS.iter().find(|(platform, _)| *platform == name) {
        return Some(near);
    }
    let (likeness, near) = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known).max(tail_likeness(name, known)), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.85).then_some(near)
}

/// Similarity of names without the section, `listen` and `server.listen`, or without the last words.
fn tail_likeness(name: &str, known: &str) -> f64 {
    if known.strip_prefix(name).is_some_and(|end| end.starts_with('_')) {
        return 1.0;
    }
    let tail = known.rsplit('.').next().unwrap_or(known);
    // Slightly below an exact match.
    if name.replace('_', ".").ends_with(&known.replace('_', ".")) || name == tail { 0.9 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_without_its_feature_names_feature() {
        let settings = |is_built| OPTIONAL_SETTINGS.map(|(start, feature, _)| (start, feature, is_built));
        for (name, feature) in [
            ("chat.base_url", Some("chat-model")),
            ("chat.embeddings_model", Some("chat-model")),
            ("chat.embedding_model", Some("static-embeddings")),
            ("speech.max_concurrent_videos", Some("speech")),
            ("chatter.base_url", None),
            ("chat", None),
        ] {
            assert_eq!(missing_feature(name, &settings(false)), feature, "{name}");
            assert_eq!(missing_feature(name, &settings(true)), None, "{name}");
        }
    }
}
