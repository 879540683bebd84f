//! Sources of settings: the file, the environment and the flags, with the origin of each value.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::errors::ConfigErrors;

/// Prefix of environment variables that are settings.
const PREFIX: &str = "VERBATIM_";
/// Variables with that prefix that are not settings.
///
/// They are the defaults of `--data` and `--config`, those that the samples of the documentation read, and those of
/// builds and tests. A person who tries the samples has them in the environment of every command.
const NOT_SETTINGS: [&str; 19] = [
    "VERBATIM_DATA",
    "VERBATIM_CONFIG",
    "VERBATIM_KEY",
    "VERBATIM_ACCOUNT_KEY",
    "VERBATIM_JOB",
    "VERBATIM_ORDER",
    "VERBATIM_ORDER_TOKEN",
    "VERBATIM_TOKEN",
    "VERBATIM_COMMIT",
    "VERBATIM_RECORDINGS",
    "VERBATIM_SEED",
    "VERBATIM_SEEDS",
    "VERBATIM_KILLS",
    "VERBATIM_JOB_ITEMS",
    "VERBATIM_EMBEDDINGS_ALL",
    "VERBATIM_CHAT_QUESTIONS",
    "VERBATIM_TEST_SERVER",
    "VERBATIM_TEST_PROXY",
    "VERBATIM_TEST_CA",
];
/// Largest settings file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum SettingOrigin {
    #[display("default")]
    Default,
    /// A line of the settings file.
    #[display("{}, line {line}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable.
    #[display("environment variable {_0}")]
    Environment(String),
    /// A command line flag.
    #[display("flag {_0}")]
    Flag(String),
}

/// A value that is not parsed yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RawSettings {
    /// Text, such as every value of the environment.
    Text(String),
    /// A number or boolean of the file, as written.
    Bare(String),
    /// A list of the file.
    List(Vec<RawSettings>),
}

/// A value and its origin.
#[derive(Clone, Debug)]
pub(super) struct GivenSetting {
    /// The value.
    pub(super) raw: RawSettings,
    pub(super) origin: SettingOrigin,
}

/// All values by setting name; later layers override earlier ones.
#[derive(Clone, Default)]
pub(super) struct SettingLayers {
    top: BTreeMap<String, GivenSetting>,
    /// All names in all layers, including overridden ones, so that every unknown name is reported.
    names: Vec<(String, SettingOrigin)>,
}

// Values may be secrets.
transcript_core::debug_fields!(SettingLayers { names });

impl SettingLayers {
    /// The values of these layers, but those of `other` for the settings that `is_replaced` selects.
    pub(super) fn replaced_by(&self, other: &Self, is_replaced: impl Fn(&str) -> bool) -> Self {
        let kept = self.top.iter().filter(|(name, _)| !is_replaced(name));
        let new = other.top.iter().filter(|(name, _)| is_replaced(name));
        let top: BTreeMap<_, _> =
            kept.chain(new).map(|(name, given)| (name.clone(), given.clone())).collect();
        let names = top.iter().map(|(name, given)| (name.clone(), given.origin.clone())).collect();
        Self { top, names }
    }

    /// Adds a value that overrides earlier ones.
    pub(super) fn add(&mut self, name: impl Into<String>, raw: RawSettings, origin: SettingOrigin) {
        let name = name.into();
        self.names.push((name.clone(), origin.clone()));
        self.top.insert(name, GivenSetting { raw, origin });
    }

    /// Returns the value of a setting, if set.
    pub(super) fn find(&self, name: &str) -> Option<&GivenSetting> {
        self.top.get(name)
    }

    /// Returns all names that were set, in layer order.
    pub(super) fn names(&self) -> &[(String, SettingOrigin)] {
        &self.names
    }

    /// Adds the settings of a TOML file.
    ///
    /// # Errors
    /// The file is unreadable, too large or not TOML; the message names the line.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), ConfigErrors> {
        let unreadable = |why: &dyn fmt::Display| {
            ConfigErrors::new(format!("the settings file {} cannot be read: {why}", path.display()))
        };
        // A pipe does not state its size.
        let mut file = File::open(path).map_err(|error| unreadable(&error))?.take(FILE_MAX + 1);
        let mut text = String::new();
        let size = file.read_to_string(&mut text).map_err(|error| unreadable(&error))?;
        if size as u64 > FILE_MAX {
            return Err(unreadable(&format!("it has more than {FILE_MAX} bytes")));
        }
        self.add_toml(path, &text)
    }

    fn add_toml(&mut self, path: &Path, text: &str) -> Result<(), ConfigErrors> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_number(text, error.span().map_or(0, |span| span.start));
            ConfigErrors::new(format!("{}, line {line}: {}", path.display(), error.message()))
        })?;
        let origin = |at: usize| SettingOrigin::File { path: path.to_owned(), line: line_number(text, at) };
        self.add_table("", table.get_ref(), &origin);
        Ok(())
    }

    fn add_table(&mut self, under: &str, table: &DeTable<'_>, origin: &dyn Fn(usize) -> SettingOrigin) {
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

    /// Adds the environment variables that begin with `VERBATIM_`. `__` stands for a dot.
    ///
    /// # Errors
    /// A variable with the prefix is not valid Unicode.
    pub(super) fn add_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(), ConfigErrors> {
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
            if NOT_SETTINGS.contains(&name) || is_service_link(name, &value) {
                continue;
            }
            let Some(value) = value.to_str() else {
                return Err(ConfigErrors::new(format!("environment variable {name} is not valid Unicode")));
            };
            let setting = name[PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            self.add(
                setting,
                RawSettings::Text(value.to_owned()),
                SettingOrigin::Environment(name.to_owned()),
            );
        }
        Ok(())
    }
}

/// Whether Kubernetes sets this variable, for a Service whose name begins with `verbatim`.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT") && value.to_str().is_some_and(|value| value.contains("://"))
        || name.split("_PORT_").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the environment variable of a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("{PREFIX}{}", setting.to_ascii_uppercase().replace('.', "__"))
}

fn raw(value: &DeValue<'_>) -> RawSettings {
    match value {
        DeValue::String(text) => RawSettings::Text(text.to_string()),
        DeValue::Integer(number) => RawSettings::Bare(number.to_string()),
        DeValue::Float(number) => RawSettings::Bare(number.to_string()),
        DeValue::Boolean(truth) => RawSettings::Bare(truth.to_string()),
        DeValue::Datetime(datetime) => RawSettings::Bare(datetime.to_string()),
        DeValue::Array(items) => RawSettings::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        // A table inside a list: no setting has this type, so every parser refuses it.
        DeValue::Table(_) => RawSettings::List(vec![RawSettings::List(Vec::new())]),
    }
}

fn line_number(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_file_yields_dotted_names() {
        let mut layers = SettingLayers::default();
        let text = "[server]\nlisten = \"[::1]:1\"\n\n[plans.free]\ncredits = 5\n[suppliers]\nreels = [\"a\", 'b']\n";
        layers.add_toml(Path::new("v.toml"), text).unwrap();
        let credits = layers.find("plans.free.credits").unwrap();
        assert_eq!(credits.raw, RawSettings::Bare("5".to_owned()));
        assert_eq!(credits.origin.to_string(), "v.toml, line 5");
        let reels = layers.find("suppliers.reels").unwrap();
        assert_eq!(
            reels.raw,
            RawSettings::List(vec![RawSettings::Text("a".to_owned()), RawSettings::Text("b".to_owned())])
        );
    }

    #[test]
    fn toml_invalid_error_has_file_and_line() {
        let problem =
            SettingLayers::default().add_toml(Path::new("v.toml"), "[server]\nlisten = \n").unwrap_err();
        assert!(problem.to_string().starts_with("v.toml, line 2: "), "{problem}");
    }

    #[cfg(unix)]
    #[test]
    fn file_without_end_is_refused() {
        let problem = SettingLayers::default().add_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(problem.ends_with("/dev/zero cannot be read: it has more than 1048576 bytes"), "{problem}");
    }

    #[test]
    fn environment_variable_maps_to_setting_name() {
        let mut layers = SettingLayers::default();
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

    #[test]
    fn environment_service_links_are_no_settings() {
        let mut layers = SettingLayers::default();
        let links = [
            ("VERBATIM_SERVICE_HOST", "10.0.0.1"),
            ("VERBATIM_SERVICE_PORT", "80"),
            ("VERBATIM_SERVICE_PORT_HTTP", "80"),
            ("VERBATIM_PORT", "tcp://10.0.0.1:80"),
            ("VERBATIM_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("VERBATIM_PORT_80_TCP_PROTO", "tcp"),
            ("VERBATIM_PORT_80_TCP_PORT", "80"),
            ("VERBATIM_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("VERBATIM_POSTGRESQL_SERVICE_HOST", "10.0.0.2"),
        ];
        layers.add_environment(links.map(|(name, value)| (name.into(), value.into()))).unwrap();
        assert!(layers.names().is_empty(), "{:?}", layers.names());
        // A wrong name of a setting is reported.
        layers.add_environment([("VERBATIM_SERVER_PORT".into(), "8080".into())]).unwrap();
        assert_eq!(layers.names().len(), 1);
    }
}
