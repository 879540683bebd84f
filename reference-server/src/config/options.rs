//! Options of the library.

use transcript_core::Error;
use verbatim::Options;

use super::{ConfigErrors, EffectiveSetting, SettingOrigin, Settings};

impl Settings {
    /// Returns the options of the library; links begin with `base_url`.
    ///
    /// # Errors
    /// The two databases are of different kinds.
    pub(crate) fn options(&self, base_url: &str) -> Result<Options, ConfigErrors> {
        let mut options = Options { storage: self.storage.options()?, ..self.options.clone() };
        options.set_base_url(base_url);
        Ok(options)
    }

    /// Adds the origin of the setting with whose name the message begins, unless it has its default.
    pub(crate) fn with_origin(&self, error: Error) -> Error {
        let is_named = |setting: &&EffectiveSetting| {
            error.message().strip_prefix(setting.name).is_some_and(|rest| rest.starts_with([':', ' ']))
        };
        let origin = self.effective.iter().find(is_named).map(|setting| &setting.origin);
        match origin.filter(|origin| **origin != SettingOrigin::Default) {
            Some(origin) => {
                let message = format!("{error} ({origin})");
                error.with_message(message)
            }
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use verbatim::{DatabaseOptions, PaymentOptions, StorageOptions};

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
        let server = load(&[]).options(&library.lookup.base_url).unwrap();
        let files =
            StorageOptions::Files { main: "/data/verbatim.db".into(), archive: "/data/archive.db".into() };
        assert_eq!(server.storage, files);
        assert_eq!(
            // The sandbox is open while links lead to this machine.
            format!("{:?}", Options { storage: StorageOptions::Memory, ..server }),
            format!("{:?}", Options { checkout: PaymentOptions::Sandbox, ..library })
        );
    }

    #[tokio::test]
    async fn library_error_names_origin_of_setting() {
        let settings = load(&[("VERBATIM_YOUTUBE__CLIENTS", "tv"), ("VERBATIM_X__FEATURES", "a b")]);
        let options = settings.options("http://127.0.0.1:8080").unwrap();
        let refused = settings.with_origin(options.check().unwrap_err()).to_string();
        assert!(refused.starts_with("youtube.clients: unknown client; "), "{refused}");
        assert!(refused.ends_with(" (environment variable VERBATIM_YOUTUBE__CLIENTS)"), "{refused}");
        for (message, expected) in [
            ("x.features takes names", "x.features takes names (environment variable VERBATIM_X__FEATURES)"),
            // Defaults, other names, and no names.
            ("ytdlp.program: not found", "ytdlp.program: not found"),
            ("x.featureset is odd", "x.featureset is odd"),
            ("the disk is full", "the disk is full"),
        ] {
            assert_eq!(settings.with_origin(Error::invalid(message)).message(), expected);
        }
    }

    #[test]
    fn storage_mixed_databases_are_refused() {
        let settings = load(&[
            ("VERBATIM_STORAGE__URL", "postgres://me:hush@db/v"),
            ("VERBATIM_STORAGE__ARCHIVE_URL", "sqlite:///data/archive.db"),
        ]);
        let problem = settings.options("").unwrap_err().to_string();
        assert!(problem.starts_with("storage.archive_url: ") && !problem.contains("hush"), "{problem}");
    }

    #[test]
    fn storage_archive_url_defaults_to_postgres_url() {
        let settings = load(&[
            ("VERBATIM_STORAGE__URL", "postgres://me:hush@db/v"),
            ("VERBATIM_STORAGE__CONNECTIONS", "7"),
            ("VERBATIM_STORAGE__POOLER", "true"),
        ]);
        let storage = settings.options("").unwrap().storage;
        let database = || DatabaseOptions {
            connections: 7,
            pooler: true,
            ..DatabaseOptions::new("postgres://me:hush@db/v")
        };
        assert_eq!(storage, StorageOptions::Postgres { main: database(), archive: database() });
        assert!(!format!("{storage:?}").contains("hush"), "{storage:?}");
    }
}
