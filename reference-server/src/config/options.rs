//! Options of the library.

use verbatim::Options;

use super::{ConfigErrors, Settings};

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
