//! Reads settings by name: each is named, bounded and reported in one place.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive, time::Duration};

use super::{
    layers::{Layers, Origin, Raw, variable},
    problem::Problem,
    value::{Setting, Span, quoted},
};

/// A setting as it is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its name.
    pub name: String,
    /// Its value as TOML, or what stands for it when it is a secret; none when it is not set.
    pub value: Option<String>,
    /// Where it was given.
    pub origin: Origin,
}

/// Reads settings from the layers, remembering what is known, in effect and wrong.
///
/// Reading never fails: what is wrong is noted and the default is taken, so that one start names
/// everything that is wrong. [`Reader::finish`] tells.
#[derive(Debug)]
pub struct Reader<'a> {
    layers: &'a Layers,
    effective: Vec<Effective>,
    wrong: Vec<String>,
}

impl<'a> Reader<'a> {
    /// A reader of these layers.
    pub fn new(layers: &'a Layers) -> Self {
        Self { layers, effective: Vec::new(), wrong: Vec::new() }
    }

    /// A setting that has a default.
    pub fn value<T: Setting>(&mut self, name: &str, default: T) -> T {
        let (value, origin) = match self.given::<T>(name) {
            Some((value, origin)) => (value, origin),
            None => (default, Origin::Default),
        };
        self.note(name, Some(value.show()), origin);
        value
    }

    /// A setting that may be absent. An empty text counts as absent.
    pub fn optional<T: Setting>(&mut self, name: &str) -> Option<T> {
        self.found(name, None)
    }

    /// A setting that may be absent, and what is in effect then.
    pub fn optional_or<T: Setting>(&mut self, name: &str, absent: Option<String>) -> Option<T> {
        self.found(name, absent.map(|absent| absent.show()))
    }

    fn found<T: Setting>(&mut self, name: &str, absent: Option<String>) -> Option<T> {
        let empty = |raw: &Raw| matches!(raw, Raw::Text(text) if text.trim().is_empty());
        if self.layers.find(name).is_some_and(|given| empty(&given.raw)) {
            self.note(name, absent, Origin::Default);
            return None;
        }
        let given = self.given::<T>(name);
        let (value, origin) = match given {
            Some((value, origin)) => (Some(value), origin),
            None => (None, Origin::Default),
        };
        self.note(name, value.as_ref().map(Setting::show).or(absent), origin);
        value
    }

    /// A whole number within bounds.
    pub fn number(&mut self, name: &str, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let value = self.value(name, default);
        self.within(name, value, default, &bounds)
    }

    /// A whole number within bounds that fit 32 bits.
    pub fn small(&mut self, name: &str, default: u32, bounds: RangeInclusive<u32>) -> u32 {
        let bounds = u64::from(*bounds.start())..=u64::from(*bounds.end());
        u32::try_from(self.number(name, u64::from(default), bounds)).unwrap_or(default)
    }

    /// A duration within bounds.
    pub fn duration(&mut self, name: &str, default: Duration, bounds: RangeInclusive<Duration>) -> Duration {
        let value = self.value(name, Span(default));
        let bounds = Span(*bounds.start())..=Span(*bounds.end());
        self.within(name, value, Span(default), &bounds).0
    }

    /// The value where it lies within bounds; else that is noted, and the default stands in.
    pub fn within<T: Setting + PartialOrd + Copy>(
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

    /// Notes that the value of a setting is wrong.
    pub fn refuse(&mut self, name: &str, what: &dyn fmt::Display, allowed: &str) {
        let origin = self.layers.find(name).map_or(Origin::Default, |given| given.origin.clone());
        self.wrong.push(format!("{name}: {what} ({origin}); {allowed}"));
    }

    /// Notes that a setting is missing without which another one, which is set, is of no use. Each comes with whether
    /// it is set.
    pub fn needs(&mut self, (one, is_set): (&str, bool), (other, is_there): (&str, bool)) {
        if is_set && !is_there {
            self.refuse(other, &format_args!("it is not set, but {one} is"), "set both or neither");
        }
    }

    /// What is in effect, or everything that is wrong.
    ///
    /// # Errors
    /// A value is wrong, or a name was given that no setting has.
    pub fn finish(mut self) -> Result<Vec<Effective>, Problem> {
        let known: BTreeSet<&str> = self.effective.iter().map(|setting| setting.name.as_str()).collect();
        for (name, origin) in self.layers.names() {
            if !known.contains(name.as_str()) {
                let hint = nearest(name, &known).map_or(String::new(), |near| match origin {
                    Origin::Environment(_) => format!("; did you mean {}?", variable(near)),
                    _ => format!("; did you mean {near}?"),
                });
                self.wrong.push(format!("{} is not a setting ({origin}){hint}", quoted(name)));
            }
        }
        match Problem::all(self.wrong) {
            Some(problem) => Err(problem),
            None => Ok(self.effective),
        }
    }

    fn given<T: Setting>(&mut self, name: &str) -> Option<(T, Origin)> {
        let given = self.layers.find(name)?;
        match T::read(&given.raw) {
            Ok(value) => Some((value, given.origin.clone())),
            Err(detail) => {
                let what = match &given.raw {
                    _ if T::SECRET => "its value (not shown) is not allowed".to_owned(),
                    Raw::Text(text) | Raw::Bare(text) => format!("{} is not allowed", quoted(text)),
                    Raw::List(_) => "this list is not allowed".to_owned(),
                };
                let detail = detail.map_or(String::new(), |detail| format!(": {detail}"));
                self.refuse(name, &format!("{what}{detail}"), &format!("give {}", T::ALLOWED));
                None
            }
        }
    }

    fn note(&mut self, name: &str, value: Option<String>, origin: Origin) {
        self.effective.push(Effective { name: name.to_owned(), value, origin });
    }
}

/// The known name that a wrong one was most likely meant to be.
fn nearest<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let (likeness, near) = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known).max(tail_likeness(name, known)), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.85).then_some(near)
}

/// How alike the names are when the section was forgotten: `listen` for `server.listen`.
fn tail_likeness(name: &str, known: &str) -> f64 {
    let tail = known.rsplit('.').next().unwrap_or(known);
    // Slightly less than a match of the whole name.
    if name.replace('_', ".").ends_with(&known.replace('_', ".")) || name == tail { 0.9 } else { 0.0 }
}
