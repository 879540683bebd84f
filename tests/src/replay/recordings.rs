//! Folders of recordings: responses of the platforms, and the expected outcomes, as data.
//!
//! A folder contains bodies and an `index.toml`. The index names each endpoint once, and has one row per recording: the
//! video, the expected exchanges, and the outcome of the code under test. A new case is a new row; no test changes.
//! ```toml
//! [endpoints.player]
//! method = "POST"
//! hosts = ["www.youtube.com"]
//! path = "/youtubei/v1/player"
//! video_in_json = "/videoId"          # where a request names its video
//!
//! [[recording]]
//! name = "bot-check"
//! video = "vb-botcheck"
//! about = "The platform wants a proof that we are human."
//! exchanges = [{ to = "player", answers = ["player/bot-check.json"] }]
//! asks = [{ failure = "bot_check", requests = 1 }]
//! ```
//!
//! A path may contain the video too, as `{video}`.
//!
//! A response (`answers`) is the name of a file in the folder, or a table with any of `status`, `headers`, `file`,
//! `body` and `manner`; several responses are sent in order, and the last one repeats. A recording without a `video`
//! matches requests for every video.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::{ReplayResponse, Rule, Script};

/// A folder of recordings, loaded and checked.
#[derive(Clone, Debug)]
pub struct Recordings {
    folder: PathBuf,
    index: RecordingIndex,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingIndex {
    #[serde(default)]
    endpoints: BTreeMap<String, RecordedEndpoint>,
    #[serde(default)]
    recording: Vec<Recording>,
}

/// The requests of one endpoint, and where they name their video.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedEndpoint {
    method: String,
    hosts: Vec<String>,
    /// The path; `{video}` stands for the video.
    path: String,
    video_in_json: Option<String>,
    video_in_query: Option<String>,
    /// A JSON parameter of the query and a field in it: `variables/tweetId`.
    video_in_query_json: Option<String>,
}

/// One recording: the exchanges about one video, and the expected outcomes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The recording's name, unique in its folder.
    pub name: String,
    /// The video's identifier on its platform.
    pub video: Option<String>,
    /// One sentence about the recorded case.
    pub about: String,
    exchanges: Vec<Exchange>,
    /// The fetches of the test in order, each by a new client, with their expected outcomes.
    #[serde(default, rename = "asks")]
    pub expectations: Vec<Expectation>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    to: String,
    #[serde(default)]
    query: BTreeMap<String, String>,
    #[serde(default)]
    without_query: Vec<String>,
    #[serde(default)]
    json: BTreeMap<String, Value>,
    answers: Vec<RecordedResponse>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum RecordedResponse {
    File(String),
    Described(RecordingDescription),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingDescription {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    file: Option<String>,
    body: Option<String>,
    #[serde(default)]
    manner: Option<RecordingBehavior>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RecordingBehavior {
    Never,
    Closed,
    Endless,
    CutAfter(usize),
    DelayMs(u64),
}

/// One fetch of the code under test, and its expected outcome: a transcript or a failure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The requested language; `None` for the default track.
    pub lang: Option<String>,
    /// The expected transcript.
    pub transcript: Option<ExpectedTranscript>,
    /// The wire name of the expected failure.
    pub failure: Option<String>,
    /// The exact number of requests that the fetch may take.
    pub requests: Option<usize>,
}

/// The expected properties of a transcript; absent ones are not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTranscript {
    /// The track's language tag.
    pub language: String,
    /// `human`, `generated` or `translated`.
    pub kind: String,
    /// The number of segments.
    pub segments: usize,
    /// The start of the first segment's text.
    pub first: String,
    /// When the first segment starts, in milliseconds.
    pub start_ms: Option<u64>,
    /// When the last segment ends, in milliseconds.
    pub end_ms: Option<u64>,
    /// The video's title.
    pub title: Option<String>,
    /// The language tags of all tracks of the video, in its order.
    pub tracks: Option<Vec<String>>,
}

impl Recordings {
    /// Reads the index of a folder and checks it against the files in the folder.
    ///
    /// # Errors
    /// The index cannot be read or parsed, names an unknown endpoint or a missing file, repeats a name, or expects both
    /// or neither of a transcript and a failure.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("index.toml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let index = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        let recordings = Self { folder: folder.to_owned(), index };
        for (index, recording) in recordings.index.recording.iter().enumerate() {
            let name = &recording.name;
            let earlier = recordings.index.recording.iter().take(index);
            ensure!(earlier.into_iter().all(|other| other.name != *name), "two recordings are named {name}");
            recordings.check(recording).with_context(|| format!("in recording {name}"))?;
        }
        Ok(recordings)
    }

    fn check(&self, recording: &Recording) -> Result<()> {
        for expectation in &recording.expectations {
            ensure!(
                expectation.transcript.is_some() != expectation.failure.is_some(),
                "a row of `asks` needs either `transcript` or `failure`"
            );
        }
        self.rules(recording).map(drop)
    }

    /// The recordings in the order of the index.
    pub fn all(&self) -> &[Recording] {
        &self.index.recording
    }

    /// The recording with this name.
    ///
    /// # Errors
    /// No recording has this name.
    pub fn find(&self, name: &str) -> Result<&Recording> {
        self.all()
            .iter()
            .find(|recording| recording.name == name)
            .with_context(|| format!("no recording is named {name}"))
    }

    /// A script that plays one recording.
    ///
    /// # Errors
    /// A body cannot be read any more.
    pub fn script_for(&self, recording: &Recording) -> Result<Script> {
        Ok(Script::new().rules(self.rules(recording)?))
    }

    /// A script that plays all recordings at once, by their videos.
    ///
    /// # Errors
    /// A body cannot be read any more.
    pub fn script(&self) -> Result<Script> {
        Ok(Script::new().rules(self.all_rules()?))
    }

    /// The rules that play all recordings.
    ///
    /// # Errors
    /// A body cannot be read any more.
    pub fn all_rules(&self) -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        // Rules for every video must come after the rules for one video.
        for recording in self.all().iter().filter(|recording| recording.video.is_some()) {
            rules.extend(self.rules(recording)?);
        }
        for recording in self.all().iter().filter(|recording| recording.video.is_none()) {
            rules.extend(self.rules(recording)?);
        }
        Ok(rules)
    }

    /// The bytes of a file in the folder.
    ///
    /// # Errors
    /// The name is outside the folder, or the file cannot be read.
    pub fn body(&self, name: &str) -> Result<Vec<u8>> {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside, "{name} is outside the folder");
        let path = self.folder.join(name);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// The rules that play one recording.
    ///
    /// # Errors
    /// A body cannot be read any more.
    pub fn rules(&self, recording: &Recording) -> Result<Vec<Rule>> {
        recording.exchanges.iter().map(|exchange| self.rule(recording, exchange)).collect()
    }

    fn rule(&self, recording: &Recording, exchange: &Exchange) -> Result<Rule> {
        let name = &exchange.to;
        let endpoint =
            self.index.endpoints.get(name).with_context(|| format!("no endpoint is named {name}"))?;
        let Some((first, others)) = endpoint.hosts.split_first() else {
            bail!("endpoint {name} has no hosts");
        };
        let path = endpoint.path.replace("{video}", recording.video.as_deref().unwrap_or("*"));
        let mut rule = Rule::new(&endpoint.method, first, &path);
        for host in others {
            rule = rule.or_host(host);
        }
        if let Some(video) = &recording.video {
            if let Some(pointer) = &endpoint.video_in_json {
                rule = rule.json(pointer, video.as_str());
            }
            if let Some((parameter, field)) =
                endpoint.video_in_query_json.as_deref().and_then(|field_path| field_path.split_once('/'))
            {
                rule = rule.query_json(parameter, &format!("/{field}"), video.as_str());
            }
            if let Some(parameter) = &endpoint.video_in_query {
                rule = rule.query(parameter, video);
            }
        }
        for (parameter, value) in &exchange.query {
            rule = rule.query(parameter, value);
        }
        for parameter in &exchange.without_query {
            rule = rule.without_query(parameter);
        }
        for (pointer, value) in &exchange.json {
            rule = rule.json(pointer, value.clone());
        }
        for recorded in &exchange.answers {
            rule = rule.respond(self.response(recorded)?);
        }
        Ok(rule)
    }

    fn response(&self, recorded: &RecordedResponse) -> Result<ReplayResponse> {
        let description = match recorded {
            RecordedResponse::File(name) => {
                &RecordingDescription { file: Some(name.clone()), ..RecordingDescription::default() }
            }
            RecordedResponse::Described(description) => description,
        };
        let mut response = match (&description.file, &description.body) {
            (Some(name), None) => ReplayResponse::bytes(content_type(name), self.body(name)?),
            (None, Some(text)) => ReplayResponse::text(text.clone()),
            (None, None) => ReplayResponse::status(200),
            (Some(_), Some(_)) => bail!("a response has a file or a body, not both"),
        };
        if let Some(status) = description.status {
            response = response.with_status(status);
        }
        for (name, value) in &description.headers {
            response = response.header(name, value);
        }
        Ok(match description.manner {
            None => response,
            Some(RecordingBehavior::Never) => ReplayResponse::never(),
            Some(RecordingBehavior::Closed) => ReplayResponse::closed(),
            Some(RecordingBehavior::Endless) => response.endlessly(),
            Some(RecordingBehavior::CutAfter(bytes)) => response.cut_after(bytes),
            Some(RecordingBehavior::DelayMs(millis)) => response.after(Duration::from_millis(millis)),
        })
    }
}

/// The content type for a file name.
fn content_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("json" | "json3") => "application/json; charset=UTF-8",
        Some("xml") => "text/xml; charset=UTF-8",
        Some("html") => "text/html; charset=utf-8",
        Some("vtt") => "text/vtt; charset=UTF-8",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: &str = "[endpoints.page]\nmethod = \"GET\"\nhosts = [\"a.test\"]\npath = \"/\"\n";

    fn open(rows: &str) -> Result<Recordings> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("index.toml"), format!("{ENDPOINT}{rows}"))?;
        Recordings::open(folder.path())
    }

    #[test]
    fn recordings_invalid_index_is_rejected_with_reason() {
        let check = |rows: &str, expect: &str| {
            let error = format!("{:#}", open(rows).unwrap_err());
            assert!(error.contains(expect), "{error:?} does not contain {expect:?}");
        };
        let row = |exchanges: &str, expectations: &str| {
            format!(
                "[[recording]]\nname = \"a\"\nabout = \"b\"\nexchanges = [{exchanges}]\nasks = [{expectations}]\n"
            )
        };
        check(&row("{ to = \"page\", answers = [\"none.html\"] }", ""), "cannot read");
        check(&row("{ to = \"page\", answers = [\"../secret\"] }", ""), "is outside the folder");
        check(&row("{ to = \"elsewhere\", answers = [] }", ""), "no endpoint is named elsewhere");
        check(&row("{ to = \"page\", answer = [] }", ""), "unknown field `answer`");
        check(&row("", "{ requests = 1 }"), "needs either `transcript` or `failure`");
        check(&format!("{0}{0}", row("", "")), "two recordings are named a");
        assert_eq!(open(&row("", "{ failure = \"gone\" }")).unwrap().all().len(), 1);
    }
}
