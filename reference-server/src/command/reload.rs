//! Reload of the settings while the server runs.

use std::sync::Arc;

use verbatim::Verbatim;

use super::{
    CommandError, check_config,
    service_builder::{AdminServiceBuilder, MetricsServiceBuilder, ServiceBuilder},
};
use crate::{
    config::{ReloadedSettings, SettingSources, Settings},
    log::LogLevelControl,
    metrics::{Metrics, ReloadResult},
    serve::{ControlSignal, ControlSignals, CurrentService},
};

/// Reads the settings again on a signal, and replaces the services.
#[derive(Debug)]
pub(super) struct SettingsReloader {
    pub(super) sources: SettingSources,
    /// The settings in use.
    pub(super) settings: Settings,
    /// Prefix of links, which is not reloadable.
    pub(super) base_url: String,
    pub(super) verbatim: Verbatim,
    pub(super) builder: ServiceBuilder,
    pub(super) service: CurrentService,
    /// The metrics listener, if there is one.
    pub(super) metrics_service: Option<(MetricsServiceBuilder, CurrentService)>,
    /// The admin listener, if there is one.
    pub(super) admin_service: Option<(AdminServiceBuilder, CurrentService)>,
    pub(super) log_level: LogLevelControl,
    pub(super) metrics: Arc<Metrics>,
}

impl SettingsReloader {
    /// Obeys signals until it is dropped.
    pub(super) async fn run(mut self, mut signals: ControlSignals) {
        let mut is_debug = false;
        loop {
            match signals.next().await {
                ControlSignal::Reload => {
                    self.reload().await;
                    is_debug = false;
                }
                ControlSignal::ToggleDebugLog => is_debug = self.toggle_debug_log(is_debug),
            }
        }
    }

    /// Switches between the level `debug` and that of the settings; returns whether it is `debug` now.
    fn toggle_debug_log(&self, is_debug: bool) -> bool {
        let level = if is_debug { self.settings.log.level.0 } else { tracing::Level::DEBUG };
        self.log_level.set(level);
        tracing::info!(%level, "log level changed by a signal");
        !is_debug
    }

    async fn reload(&mut self) {
        let result = match self.apply().await {
            Ok(refused) if refused.is_empty() => ReloadResult::Done,
            Ok(refused) => {
                for name in refused {
                    tracing::warn!("{name} was changed, but needs a restart: its old value is still used");
                }
                ReloadResult::Partial
            }
            Err(error) => {
                for sentence in error.to_string().lines() {
                    tracing::error!("settings were not reloaded: {sentence}");
                }
                ReloadResult::Failed
            }
        };
        // It ends what SIGUSR1 began, also if the settings are invalid.
        self.log_level.set(self.settings.log.level.0);
        if result != ReloadResult::Failed {
            tracing::info!("settings reloaded");
        }
        self.metrics.count_reload(result);
    }

    /// Applies the settings of the sources; returns the names of those that need a restart.
    async fn apply(&mut self) -> Result<Vec<&'static str>, CommandError> {
        let (settings, sources) = (self.settings.clone(), self.sources.clone());
        let read = tokio::task::spawn_blocking(move || {
            let reloaded = settings.reload(sources)?;
            // Those that need a restart too: the next start must not fail.
            check_config::check(&reloaded.loaded)?;
            Ok::<_, CommandError>(reloaded)
        });
        let reloaded =
            read.await.map_err(|_| CommandError::Fault("reading the settings panicked".to_owned()))??;
        let ReloadedSettings { settings, changed, refused, .. } = reloaded;
        let options = settings.options(&self.base_url)?;
        let verbatim =
            self.verbatim.with_api_options(&options).map_err(|error| settings.with_origin(error))?;
        self.service.replace(self.builder.build(&settings.server, &verbatim));
        if let Some((builder, service)) = &self.metrics_service {
            service.replace(builder.build(&settings));
        }
        if let Some((builder, service)) = &self.admin_service {
            service.replace(builder.build(&settings, &verbatim));
        }
        self.settings = settings;
        if !changed.is_empty() {
            tracing::info!(settings = changed.join(", "), "settings changed");
        }
        Ok(refused)
    }
}
