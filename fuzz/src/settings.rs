//! The settings file and the environment.

use std::{
    env, fs, process,
    sync::atomic::{AtomicU32, Ordering},
};

use reference_server::fuzzing::load_settings;

use crate::seeds;

/// The settings file, then a line `---` and lines `NAME=value` of the environment.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    // A setting may name a file with keys: devices have no end.
    if ["/dev", "/proc"].iter().any(|folder| text.contains(folder)) {
        return;
    }
    match load(&text) {
        Ok(_) if has_secret_elsewhere(&text) => {}
        Ok((report, debug)) => {
            assert!(!report.contains("sk_secret"), "a secret is in the report: {report}");
            assert!(!debug.contains("sk_secret"), "a secret is in the debug output");
        }
        Err(sentences) => {
            assert!(sentences.lines().all(|line| !line.trim().is_empty()), "{sentences:?}");
        }
    }
}

fn load(text: &str) -> Result<(String, String), String> {
    let (file, environment) = text.split_once("\n---\n").unwrap_or((text, ""));
    // The tests of this crate load several at the same time.
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = env::temp_dir().join(format!("verbatim-fuzz-{}-{number}.toml", process::id()));
    fs::write(&path, file).expect("the temporary folder is writable");
    let variables = environment.lines().filter_map(|line| line.split_once('='));
    let loaded = load_settings(&path, variables.map(|(name, value)| (name.into(), value.into())).collect());
    fs::remove_file(path).expect("the temporary folder is writable");
    loaded
}

/// Whether the text has the secret where a setting is public, to which the fuzzer may have copied it.
fn has_secret_elsewhere(text: &str) -> bool {
    let is_secret = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let is_key = ["api_key", "secret_key", "webhook_secrets"].contains(&name.trim());
        // Of a URL only the password is secret.
        let before_password =
            value.split_once(":sk_secret@").and_then(|(before, _)| before.split_once("://"));
        let is_password = before_password.is_some_and(|(_, user)| !user.contains(['/', '?', '#', '@', '\\']));
        is_key || is_password && value.matches("sk_secret").count() == 1
    };
    text.lines().any(|line| line.contains("sk_secret") && !is_secret(line))
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        "",
        "server.listen = \"127.0.0.1:0\"\nserver.base_url = \"https://v.example\"\n[suppliers]\nvideo_site = \
         [\"youtube-captions\"]\n",
        "[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\ncors_origins = [\"https://a.example\"]\n[upstream]\n\
         proxy = [\"socks5h://u:sk_secret@127.0.0.1:1080\"]\ntimeout = \"10s\"\n",
        "[speech]\nbase_url = \"https://s.example/v1\"\nmodel = \"m\"\napi_key = \"sk_secret\"\nmax_duration \
         = \"4h\"\n\
         [chat]\nbase_url = \"https://s.example/v1\"\nmodel = \"m\"\napi_key = \"sk_secret\"\ncontext_tokens = \
         8192\n",
        "[mail]\nsmtp_url = \"smtps://user:sk_secret@mail.example:465\"\nfrom = \"Ann <ann@v.example>\"\n",
        "[stripe]\nsecret_key = \"sk_secret\"\nwebhook_secrets = [\"whsec_sk_secret\"]\n[plans.starter]\nprice_usd = \
         9.00\n",
        "entitlement.keys = '{\"keys\":[{\"kty\":\"oct\",\"k\":\"YSBzZWNyZXQgb2YgdGhlIGZ1enogdGFyZ2V0IG9ubHk\"}]}'\n",
        "storage.url = \"postgres://u:sk_secret@127.0.0.1/v\"\nlog.format = \"json\"\nlog.level = \"debug\"\n",
        "\n---\nVERBATIM_SERVER__LISTEN=[::1]:8080\nVERBATIM_SUPPLIERS__VIDEO_SITE=youtube-captions\nVERBATIM_UPSTREAM__PROXY=http://127.0.0.1:1\n",
        "serber.listen = 1\nlookup = { free_per_month = -1 }\na = [[1], {b = 2}]\n",
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_but_the_invalid_one_are_settings() {
        let seeds = seeds();
        let (_, valid) = seeds.split_last().unwrap();
        for seed in valid {
            let seed = String::from_utf8_lossy(seed);
            load(&seed).unwrap_or_else(|errors| panic!("{seed}: {errors}"));
        }
    }
}
