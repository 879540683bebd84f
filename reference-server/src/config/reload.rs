//! Reload of the settings of a running server.

use super::{ConfigErrors, EffectiveSetting, SettingOrigin, SettingSources, Settings, table};

/// Settings after a reload, and what they change.
#[derive(Clone, Debug)]
pub(crate) struct ReloadedSettings {
    /// The new settings.
    pub(crate) settings: Settings,
    /// The settings of the sources, with which the next start begins.
    pub(crate) loaded: Settings,
    /// Names of the settings that changed.
    pub(crate) changed: Vec<&'static str>,
    /// Names of the settings that were changed in the sources but require a restart. They keep their values.
    pub(crate) refused: Vec<&'static str>,
}

impl Settings {
    /// Reads the sources again. Settings that are not reloadable keep the values that they have here.
    ///
    /// # Errors
    /// As [`Settings::load`]; nothing is changed.
    pub(crate) fn reload(&self, sources: SettingSources) -> Result<ReloadedSettings, ConfigErrors> {
        // At the start it may be a pipe, which has no content any more.
        if let Some(file) = sources.file.as_ref().filter(|file| file.exists() && !file.is_file()) {
            let why = "is not a regular file, so it is read at the start only";
            return Err(ConfigErrors::new(format!("the settings file {} {why}", file.display())));
        }
        let loaded = Self::load(sources)?;
        let is_reloadable =
            |name: &str| table::settings().any(|setting| setting.name == name && setting.is_reloadable);
        let layers = self.layers.replaced_by(&loaded.layers, is_reloadable);
        let settings = Self::read(&layers, self.data.clone())?;
        let changed = self.changes(&settings);
        let refused = settings.changes(&loaded);
        Ok(ReloadedSettings { settings, loaded, changed, refused })
    }

    /// Names of the settings with different values, without those whose default follows another setting.
    fn changes(&self, other: &Self) -> Vec<&'static str> {
        let given = |settings: &Self, name| settings.layers.find(name).map(|given| given.raw.clone());
        let pairs = self.effective.iter().zip(&other.effective);
        let is_given = |setting: &EffectiveSetting| setting.origin != SettingOrigin::Default;
        pairs
            .filter(|(old, new)| {
                let is_hidden = old.is_secret && new.is_secret;
                (is_given(old) || is_given(new)) && old.value != new.value
                    || is_hidden && given(self, old.name) != given(other, old.name)
            })
            .map(|(old, _)| old.name)
            .collect()
    }
}
