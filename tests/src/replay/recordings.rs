//! Folders of recordings: what the platforms answer, and what must come of it, as data.
//!
//! A folder holds bodies and an `index.toml`. The index names the endpoints once, and then one row per
//! recording: the video, the exchanges that are expected, and what the code under test is to make of
//! them. Adding a case is adding a row; no test changes.
//!
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
//! A path may name the video too, as `{video}`.
//!
//! An answer is the name of a file in the folder, or a table with any of `status`, `headers`, `file`,
//! `body` and `manner`; several answers are given in turn, and the last one repeats. A recording without
//! a `video` answers no matter which video is asked for.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Rule, Script};

/// A folder of recordings, read and checked.
#[derive(Clone, Debug)]
pub struct Recordings {
    folder: PathBuf,
    index: Index,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    #[serde(default)]
    endpoints: BTreeMap<String, Endpoint>,
    #[serde(default)]
    recording: Vec<Recording>,
}

/// Where requests of one kind go, and where they name their video.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    method: String,
    hosts: Vec<String>,
    /// In it, `{video}` stands for the video.
    path: String,
    video_in_json: Option<String>,
    video_in_query: Option<String>,
    /// A parameter of the query that is JSON, and a field in it: `variables/tweetId`.
    video_in_query_json: Option<String>,
}

/// One recording: what is exchanged about one video, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The recording's name, unique in its folder.
    pub name: String,
    /// The video's identifier on its platform.
    pub video: Option<String>,
    /// What the recording shows, in a sentence.
    pub about: String,
    exchanges: Vec<Exchange>,
    /// What is asked, one after the other, each of a client that knows nothing yet.
    #[serde(default)]
    pub asks: Vec<Expectation>,
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
    answers: Vec<Answered>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Answered {
    File(String),
    Described(Described),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    file: Option<String>,
    body: Option<String>,
    #[serde(default)]
    manner: Option<Behaviour>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Behaviour {
    Never,
    Closed,
    Endless,
    CutAfter(usize),
    DelayMs(u64),
}

/// What the code under test is asked about a recording, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The language that is wished; the default transcript when absent.
    pub lang: Option<String>,
    /// The transcript that must come, or
    pub transcript: Option<ExpectedTranscript>,
    /// the lasting name of the reason why none comes.
    pub failure: Option<String>,
    /// How many requests the answer may take, exactly.
    pub requests: Option<usize>,
}

/// What is said about an expected transcript; what is absent is not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTranscript {
    /// The track's language tag.
    pub language: String,
    /// `human`, `generated` or `translated`.
    pub kind: String,
    /// How many segments there are.
    pub segments: usize,
    /// The text that the first segment begins with.
    pub first: String,
    /// When the first segment starts, in milliseconds.
    pub start_ms: Option<u64>,
    /// When the last segment ends, in milliseconds.
    pub end_ms: Option<u64>,
    /// The video's title.
    pub title: Option<String>,
    /// The tags of all tracks that the video has, in its order.
    pub tracks: Option<Vec<String>>,
}

impl Recordings {
    /// Reads the index of a folder, and checks that it fits what lies beside it.
    ///
    /// # Errors
    /// The index cannot be read or understood, names an endpoint or file that is not there, repeats a
    /// name, or expects both or neither of a transcript and a failure.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("index.toml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let index = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        let recordings = Self { folder: folder.to_owned(), index };
        for (place, recording) in recordings.index.recording.iter().enumerate() {
            let name = &recording.name;
            let earlier = recordings.index.recording.iter().take(place);
            ensure!(earlier.into_iter().all(|other| other.name != *name), "two recordings are named {name}");
            recordings.check(recording).with_context(|| format!("in recording {name}"))?;
        }
        Ok(recordings)
    }

    fn check(&self, recording: &Recording) -> Result<()> {
        for ask in &recording.asks {
            ensure!(
                ask.transcript.is_some() != ask.failure.is_some(),
                "an ask expects a transcript or a failure"
            );
        }
        self.rules(recording).map(drop)
    }

    /// The recordings, in the index's order.
    pub fn all(&self) -> &[Recording] {
        &self.index.recording
    }

    /// The recording with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(&self, name: &str) -> Result<&Recording> {
        self.all()
            .iter()
            .find(|recording| recording.name == name)
            .with_context(|| format!("no recording is named {name}"))
    }

    /// A script that plays one recording.
    ///
    /// # Errors
    /// A body can no longer be read.
    pub fn script_of(&self, recording: &Recording) -> Result<Script> {
        Ok(Script::new().rules(self.rules(recording)?))
    }

    /// A script that plays all recordings at once, by their videos.
    ///
    /// # Errors
    /// A body can no longer be read.
    pub fn script(&self) -> Result<Script> {
        let mut rules = Vec::new();
        // What answers for any video must come after what answers for one.
        for recording in self.all().iter().filter(|recording| recording.video.is_some()) {
            rules.extend(self.rules(recording)?);
        }
        for recording in self.all().iter().filter(|recording| recording.video.is_none()) {
            rules.extend(self.rules(recording)?);
        }
        Ok(Script::new().rules(rules))
    }

    /// The bytes of a file in the folder.
    ///
    /// # Errors
    /// The name leads out of the folder, or the file cannot be read.
    pub fn body(&self, name: &str) -> Result<Vec<u8>> {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside, "{name} leads out of the folder");
        let path = self.folder.join(name);
        std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))
    }

    /// The rules that play one recording.
    ///
    /// # Errors
    /// A body can no longer be read.
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
                endpoint.video_in_query_json.as_deref().and_then(|place| place.split_once('/'))
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
        for answered in &exchange.answers {
            rule = rule.answer(self.answer(answered)?);
        }
        Ok(rule)
    }

    fn answer(&self, answered: &Answered) -> Result<Answer> {
        let described = match answered {
            Answered::File(name) => &Described { file: Some(name.clone()), ..Described::default() },
            Answered::Described(described) => described,
        };
        let mut answer = match (&described.file, &described.body) {
            (Some(name), None) => Answer::bytes(content_type(name), self.body(name)?),
            (None, Some(text)) => Answer::text(text.clone()),
            (None, None) => Answer::status(200),
            (Some(_), Some(_)) => bail!("an answer has a file or a body, not both"),
        };
        if let Some(status) = described.status {
            answer = answer.with_status(status);
        }
        for (name, value) in &described.headers {
            answer = answer.header(name, value);
        }
        Ok(match described.manner {
            None => answer,
            Some(Behaviour::Never) => Answer::never(),
            Some(Behaviour::Closed) => Answer::closed(),
            Some(Behaviour::Endless) => answer.endlessly(),
            Some(Behaviour::CutAfter(bytes)) => answer.cut_after(bytes),
            Some(Behaviour::DelayMs(millis)) => answer.after(Duration::from_millis(millis)),
        })
    }
}

/// The content type that goes with a file's name.
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
    fn a_faulty_index_is_refused_with_the_reason() {
        let check = |rows: &str, expect: &str| {
            let error = format!("{:#}", open(rows).unwrap_err());
            assert!(error.contains(expect), "{error:?} does not contain {expect:?}");
        };
        let row = |exchanges: &str, asks: &str| {
            format!(
                "[[recording]]\nname = \"a\"\nabout = \"b\"\nexchanges = [{exchanges}]\nasks = [{asks}]\n"
            )
        };
        check(&row("{ to = \"page\", answers = [\"none.html\"] }", ""), "none.html cannot be read");
        check(&row("{ to = \"page\", answers = [\"../secret\"] }", ""), "leads out of the folder");
        check(&row("{ to = \"elsewhere\", answers = [] }", ""), "no endpoint is named elsewhere");
        check(&row("{ to = \"page\", answer = [] }", ""), "unknown field `answer`");
        check(&row("", "{ requests = 1 }"), "a transcript or a failure");
        check(&format!("{0}{0}", row("", "")), "two recordings are named a");
        assert_eq!(open(&row("", "{ failure = \"gone\" }")).unwrap().all().len(), 1);
    }
}
