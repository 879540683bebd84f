//! Targets of the coverage-guided fuzzer: one for each group of parsers that read foreign bytes.
//!
//! A target runs production code on one input and asserts what must hold for every input. libFuzzer reports a panic,
//! an input that takes longer than its limit, and one that exceeds its memory limit.

mod captions;
mod entitlements;
mod imports;
mod links;
mod platforms;
mod quotes;
mod requests;
mod runtime;
mod search;
mod seeds;
mod services;
mod settings;

use std::{fs, io, path::Path};

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// The name, for `run.sh`.
    pub name: &'static str,
    /// Runs the parsers on one input. Panics on a finding.
    pub run: fn(&[u8]),
    /// The inputs that the fuzzer starts from.
    seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[FuzzTarget] = &[
    target("captions", captions::run, captions::seeds),
    target("chat-model", services::chat_model, services::chat_model_seeds),
    target("entitlements", entitlements::run, entitlements::seeds),
    target("imports", imports::run, imports::seeds),
    target("instagram", platforms::instagram, platforms::instagram_seeds),
    target("links", links::run, links::seeds),
    target("mcp", requests::mcp, requests::mcp_seeds),
    target("peers", services::peers, services::peer_seeds),
    target("playlists", platforms::playlists, platforms::playlist_seeds),
    target("quotes", quotes::run, quotes::seeds),
    target("requests", requests::run, requests::seeds),
    target("search", search::run, search::seeds),
    target("settings", settings::run, settings::seeds),
    target("speech", services::speech, services::speech_seeds),
    target("stripe", services::stripe, services::stripe_seeds),
    target("tiktok", platforms::tiktok, platforms::tiktok_seeds),
    target("x", platforms::x, platforms::x_seeds),
    target("youtube", platforms::youtube, platforms::youtube_seeds),
    target("youtube-lists", platforms::youtube_lists, platforms::youtube_list_seeds),
    target("yt-dlp", platforms::ytdlp, platforms::ytdlp_seeds),
];

const fn target(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> FuzzTarget {
    FuzzTarget { name, run, seeds }
}

impl FuzzTarget {
    /// Writes the seeds into a folder, which is created.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn write_seeds(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (number, seed) in (self.seeds)().into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_accept_their_seeds() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{} has no seed", target.name);
            for seed in seeds {
                (target.run)(&seed);
            }
        }
    }

    #[test]
    fn targets_accept_empty_and_binary_input() {
        for target in TARGETS {
            (target.run)(b"");
            (target.run)(&[0, 255, 10, 0, 10, 200]);
        }
    }
}
