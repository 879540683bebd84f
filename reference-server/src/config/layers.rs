//! Where settings come from: the file, the environment and the flags, each value with its origin.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::problem::Problem;

/// What a variable of the environment begins with to be a setting.
const PREFIX: &str = "VERBATIM_";
/// Variables with that prefix that are no settings: the folder of recordings that tests read, and what
/// the flags `--data` and `--config` default to.
const NOT_SETTINGS: [&str; 3] = ["VERBATIM_RECORDINGS", "VERBATIM_DATA", "VERBATIM_CONFIG"];
/// The largest settings file that is read, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In the settings file, on this line.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// In this variable of the environment.
    Environment(String),
    /// By this flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A value as it was given, before anyone asked what it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// Text, as everything in the environment is.
    Text(String),
    /// A number or a truth value of the file, as it is written there.
    Bare(String),
    /// A list of the file.
    List(Vec<Raw>),
}

/// A value and where it was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The value.
    pub raw: Raw,
    /// Where it was given.
    pub origin: Origin,
}

/// All values that were given, by the names of their settings; later layers cover earlier ones.
#[derive(Debug, Default)]
pub struct Layers {
    top: BTreeMap<String, Given>,
    /// Every name in every layer, also where a later layer covers it: an unknown one is never let pass.
    names: Vec<(String, Origin)>,
}

impl Layers {
    /// Adds a value on top of what is there.
    pub fn add(&mut self, name: impl Into<String>, raw: Raw, origin: Origin) {
        let name = name.into();
        self.names.push((name.clone(), origin.clone()));
        self.top.insert(name, Given { raw, origin });
    }

    /// The value of a setting, where one was given.
    pub fn find(&self, name: &str) -> Option<&Given> {
        self.top.get(name)
    }

    /// Every name that was given, in the order of the layers.
    pub fn names(&self) -> &[(String, Origin)] {
        &self.names
    }

    /// Adds the settings of a TOML file.
    ///
    /// # Errors
    /// The file cannot be read, is too large or is no TOML; the problem says where.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Problem> {
        let unreadable = |why: &dyn fmt::Display| {
            Problem::new(format!("the settings file {} cannot be read: {why}", path.display()))
        };
        let size = std::fs::metadata(path).map_err(|error| unreadable(&error))?.len();
        if size > FILE_MAX {
            return Err(unreadable(&format!("it has {size} bytes, and at most {FILE_MAX} are read")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
        self.add_toml(path, &text)
    }

    fn add_toml(&mut self, path: &Path, text: &str) -> Result<(), Problem> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            Problem::new(format!("{}, line {line}: {}", path.display(), error.message()))
        })?;
        let origin = |at: usize| Origin::File { path: path.to_owned(), line: line_of(text, at) };
        self.add_table("", table.get_ref(), &origin);
        Ok(())
    }

    fn add_table(&mut self, under: &str, table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) {
        for (key, value) in table {
            let name = match under {
                "" => key.get_ref().to_string(),
                under => format!("{under}.{}", key.get_ref()),
            };
            match value.get_ref() {
                DeValue::Table(table) => self.add_table(&name, table, origin),
                value => self.add(name, raw(value), origin(key.span().start)),
            }
        }
    }

    /// Adds the variables of an environment that begin with `VERBATIM_`: every `__` is a dot.
    ///
    /// # Errors
    /// A variable with the prefix is not valid Unicode.
    pub fn add_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(), Problem> {
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
            if NOT_SETTINGS.contains(&name) {
                continue;
            }
            let Some(value) = value.to_str() else {
                return Err(Problem::new(format!("environment variable {name} is not valid Unicode")));
            };
            let setting = name[PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            self.add(setting, Raw::Text(value.to_owned()), Origin::Environment(name.to_owned()));
        }
        Ok(())
    }
}

/// The variable of the environment that gives a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("{PREFIX}{}", setting.to_ascii_uppercase().replace('.', "__"))
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => Raw::Bare(number.to_string()),
        DeValue::Float(number) => Raw::Bare(number.to_string()),
        DeValue::Boolean(truth) => Raw::Bare(truth.to_string()),
        DeValue::Datetime(moment) => Raw::Bare(moment.to_string()),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        // A table inside a list: no setting is made of them, so its value is refused wherever it is.
        DeValue::Table(_) => Raw::List(vec![Raw::List(Vec::new())]),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_flattened_to_dotted_names() {
        let mut layers = Layers::default();
        let text = "[server]\nlisten = \"[::1]:1\"\n\n[plans.free]\ncredits = 5\n[suppliers]\nreels = [\"a\", 'b']\n";
        layers.add_toml(Path::new("v.toml"), text).unwrap();
        let credits = layers.find("plans.free.credits").unwrap();
        assert_eq!(credits.raw, Raw::Bare("5".to_owned()));
        assert_eq!(credits.origin.to_string(), "v.toml, line 5");
        let reels = layers.find("suppliers.reels").unwrap();
        assert_eq!(reels.raw, Raw::List(vec![Raw::Text("a".to_owned()), Raw::Text("b".to_owned())]));
    }

    #[test]
    fn broken_toml_names_file_and_line() {
        let problem = Layers::default().add_toml(Path::new("v.toml"), "[server]\nlisten = \n").unwrap_err();
        assert!(problem.to_string().starts_with("v.toml, line 2: "), "{problem}");
    }

    #[test]
    fn the_environment_names_settings_in_capitals() {
        let mut layers = Layers::default();
        let variables = [
            ("VERBATIM_PLANS__FREE__CREDITS", "7"),
            ("VERBATIM_RECORDINGS", "/nowhere"),
            ("HOME", "/root"),
            ("VERBATIM_LIMITS__WAIT", "3s"),
        ];
        layers.add_environment(variables.map(|(name, value)| (name.into(), value.into()))).unwrap();
        let names: Vec<_> = layers.names().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["plans.free.credits", "limits.wait"]);
        assert_eq!(variable("plans.free.credits"), "VERBATIM_PLANS__FREE__CREDITS");
    }
}
