//! Similarity of meaning: compares the vectors of questions and passages, and ranks with it beside words.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use quick_cache::{Weighter, sync::Cache};
use sha2::{Digest as _, Sha256};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{
    ChatRole, EmbedPurpose, Embedder, Passage, Question, embedder::TextVectors, retrieve::LexicalScores,
    task::run_in_task, vector_archive::VectorArchive,
};
use crate::{
    archive::{Archive, VectorsKey, content_digest},
    error::{Error, Result},
    failure_log::FailureLog,
    retry::{deadline_after, is_over},
    transcript::Transcript,
};

/// Memory for the vectors of transcripts. An hour of speech takes 82 kB with 384 numbers a vector.
const CACHE_BYTES_MAX: u64 = 32 << 20;
/// Expected number of transcripts in it.
const CACHE_ITEMS: usize = 256;
/// Texts of a transcript in one call of the model.
const PASSAGES_MAX: usize = super::EMBED_TEXTS_MAX;
/// Time without calls after a failed one, so that an outage does not delay each answer.
const PAUSE: Duration = Duration::from_secs(30);

/// Words with this share of a question's words decide alone.
pub(super) const COVERAGE_SUFFICIENT: f32 = 0.95;

/// An embedding model with the vectors of recent transcripts. A clone shares the same state.
#[derive(Clone)]
pub(super) struct MeaningSearch {
    embedder: Arc<dyn Embedder>,
    runtime: Handle,
    /// Timeout of a comparison.
    timeout: Duration,
    /// Vectors by the digest of model and passages.
    vectors: Arc<Cache<[u8; 32], Arc<TextVectors>, VectorWeighter>>,
    /// Where vectors stay after a restart; `None`: nowhere.
    archive: Option<VectorArchive>,
    paused_until: Arc<Mutex<Option<Instant>>>,
    failures: Arc<FailureLog>,
}

crate::debug_fields!(MeaningSearch { embedder });

/// Weighs cached vectors by their bytes.
#[derive(Clone, Copy, Debug)]
struct VectorWeighter;

impl Weighter<[u8; 32], Arc<TextVectors>> for VectorWeighter {
    fn weight(&self, key: &[u8; 32], vectors: &Arc<TextVectors>) -> u64 {
        (key.len() as u64).saturating_add(vectors.memory_bytes())
    }
}

/// Similarity of each passage to a question, in passage order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Similarities {
    /// To the question alone.
    own: Vec<f32>,
    /// To the question with the one before it; equal to `own` without one.
    in_context: Vec<f32>,
    /// Whether the model reads words in their context.
    is_contextual: bool,
}

impl MeaningSearch {
    /// The calls of the model and their timers run on `runtime`.
    pub(super) fn new(embedder: Arc<dyn Embedder>, runtime: Handle, timeout: Duration) -> Self {
        let vectors = Cache::with_weighter(CACHE_ITEMS, CACHE_BYTES_MAX, VectorWeighter);
        Self {
            embedder,
            runtime,
            timeout,
            vectors: Arc::new(vectors),
            archive: None,
            paused_until: Arc::default(),
            failures: Arc::new(FailureLog::new()),
        }
    }

    /// Stores vectors in an archive too, unless the model computes them within the process: that takes no longer than
    /// reading them.
    pub(super) fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        let archive = (!self.is_local()).then(|| VectorArchive::new(archive));
        Self { archive, ..self }
    }

    pub(super) fn is_local(&self) -> bool {
        self.embedder.is_local()
    }

    /// Compares a question with the passages of a transcript; `None` if the model fails or failed recently.
    ///
    /// The vectors of the passages are computed once, also for concurrent questions. With the transcript of the
    /// passages, they are read from the archive and stored in it.
    pub(super) async fn similarities(
        &self,
        transcript: Option<&Arc<Transcript>>,
        passages: &Arc<[Passage]>,
        question: &Question,
    ) -> Option<Similarities> {
        if passages.is_empty() || passages.len() > PASSAGES_MAX || self.is_paused() {
            return None;
        }
        match self.compare_in_task(transcript, passages, question).await {
            Ok(similarities) => {
                self.failures.succeeded();
                Some(similarities)
            }
            Err(error) => {
                *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(deadline_after(PAUSE));
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(%error, failures, "embedding failed; passages were searched by words");
                }
                None
            }
        }
    }

    fn is_paused(&self) -> bool {
        let until = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| !is_over(until))
    }

    /// Compares in a separate task: a model that panics, or never returns, must not end the answer.
    async fn compare_in_task(
        &self,
        transcript: Option<&Arc<Transcript>>,
        passages: &Arc<[Passage]>,
        question: &Question,
    ) -> Result<Similarities> {
        let (meaning, transcript) = (self.clone(), transcript.cloned());
        let (passages, question) = (Arc::clone(passages), question.clone());
        let compare = async move { meaning.compare(transcript.as_deref(), &passages, &question).await };
        let timeout = {
            let _guard = self.runtime.enter();
            sleep(self.timeout)
        };
        tokio::select! {
            biased;
            compared = run_in_task(&self.runtime, compare, "the embedding model panicked") => compared,
            () = timeout => Err(Error::unavailable("the embedding model did not answer within the timeout")),
        }
    }

    async fn compare(
        &self,
        transcript: Option<&Transcript>,
        passages: &Arc<[Passage]>,
        question: &Question,
    ) -> Result<Similarities> {
        let mut texts = vec![question.message().to_owned()];
        let earlier = question.history().iter().rev().find(|turn| turn.role == ChatRole::User);
        texts.extend(earlier.map(|turn| format!("{} {}", turn.content, question.message())));
        // Before the passages: the length of its vectors is part of the key of theirs.
        let questions = self.embed(texts, EmbedPurpose::Question).await?;
        let vectors = self.passage_vectors(transcript, passages, questions.dimensions()).await?;
        let mut compared = vectors.similarities(&questions).into_iter();
        let own = compared.next().ok_or_else(different_lengths)?;
        let in_context = compared.next().unwrap_or_else(|| own.clone());
        Ok(Similarities { own, in_context, is_contextual: self.embedder.is_contextual() })
    }

    async fn embed(&self, texts: Vec<String>, purpose: EmbedPurpose) -> Result<TextVectors> {
        let count = texts.len();
        TextVectors::new(&self.embedder.embed(texts, purpose).await?, count)
    }

    async fn passage_vectors(
        &self,
        transcript: Option<&Transcript>,
        passages: &Arc<[Passage]>,
        dimensions: usize,
    ) -> Result<Arc<TextVectors>> {
        let texts_sha256 = digest(self.embedder.model(), dimensions, passages);
        let compute = async {
            let stored = self.archive.as_ref().zip(transcript).map(|(archive, transcript)| {
                let (video, content_sha256) = (transcript.video.clone(), content_digest(transcript));
                (archive, VectorsKey { video, content_sha256, texts_sha256 })
            });
            if let Some((archive, key)) = &stored
                && let Some(vectors) = archive.find(key, passages.len()).await
            {
                return Ok(Arc::new(vectors));
            }
            let texts = passages.iter().map(|passage| passage.text.clone()).collect();
            let vectors = self.embed(texts, EmbedPurpose::Passage).await?;
            if vectors.dimensions() != dimensions {
                return Err(different_lengths());
            }
            if let Some((archive, key)) = &stored {
                archive.put(key, &vectors).await;
            }
            Ok(Arc::new(vectors))
        };
        self.vectors.get_or_insert_async(&texts_sha256, compute).await
    }
}

fn different_lengths() -> Error {
    Error::unexpected("the embedding model returned vectors of different lengths")
}

/// Identifies the texts of passages, the model, and the numbers in its vectors: a service may change what a name means.
fn digest(model: &str, dimensions: usize, passages: &[Passage]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update((dimensions as u64).to_le_bytes());
    for text in std::iter::once(model).chain(passages.iter().map(|passage| passage.text.as_str())) {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

/// Weight of similarity, in standard deviations, beside the best score by words. Both are for a question of which the
/// transcript has no word; the weight falls to 0 as the words are found. Measured on the tuning half of the questions.
const CONTEXTUAL_WEIGHT: f32 = 1.0;
const STATIC_WEIGHT: f32 = 0.1;
/// Largest weight for a question that needs those before it: where the conversation is says more.
const FOLLOW_UP_WEIGHT_MAX: f32 = 0.3;
/// Share of the similarity of both neighbours that a passage gets: an answer often begins in one and ends in the other.
const NEIGHBOUR_WEIGHT: f32 = 0.3;

/// Whether the words of a question leave open which passages answer it.
pub(super) fn needs_meaning(scores: &LexicalScores) -> bool {
    scores.coverage < COVERAGE_SUFFICIENT
}

/// Adds the similarity of each passage to its score by words.
pub(super) fn add_meaning(lexical: &mut LexicalScores, similarities: &Similarities) {
    let similar = if lexical.needs_context { &similarities.in_context } else { &similarities.own };
    let standard = with_neighbours(&standardize(similar));
    let best = lexical.scores.iter().copied().fold(0.0, f32::max).max(f32::MIN_POSITIVE);
    let weight = if similarities.is_contextual { CONTEXTUAL_WEIGHT } else { STATIC_WEIGHT };
    let weight = if lexical.needs_context { weight.min(FOLLOW_UP_WEIGHT_MAX) } else { weight };
    let weight = weight * (1.0 - lexical.coverage);
    // A model that reads words in context says more of a question than the few words of it that are found.
    let is_trusted = similarities.is_contextual && !lexical.needs_context;
    let words_weight = if is_trusted { lexical.coverage } else { 1.0 };
    for (score, similarity) in lexical.scores.iter_mut().zip(standard) {
        *score = words_weight * *score / best + weight * similarity.max(0.0);
    }
}

/// Distance of each value from the mean of all, in standard deviations.
fn standardize(values: &[f32]) -> Vec<f32> {
    let count = (values.len() as f32).max(1.0);
    let mean = values.iter().sum::<f32>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / count;
    let deviation = variance.sqrt().max(1e-6);
    values.iter().map(|value| (value - mean) / deviation).collect()
}

/// Adds a share of both neighbours to each value.
fn with_neighbours(values: &[f32]) -> Vec<f32> {
    let at = |index: Option<usize>| index.and_then(|index| values.get(index)).copied().unwrap_or(0.0);
    let spread = |(index, value): (usize, &f32)| {
        value + NEIGHBOUR_WEIGHT * (at(index.checked_sub(1)) + at(index.checked_add(1)))
    };
    values.iter().enumerate().map(spread).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::{
        archive::{PutRequest, TrackSelector},
        chat::{ChatTurn, passages, tests::transcript_of},
        memory::MemoryArchive,
        time::Timestamp,
        transcript::{Segment, VideoMetadata},
    };

    /// Embeds a text by whether it is about water.
    #[derive(Debug, Default)]
    struct WaterEmbedder {
        model: &'static str,
        calls: AtomicUsize,
        is_failing: AtomicBool,
        /// Zeros after the two numbers of each vector.
        zeros: usize,
    }

    #[async_trait]
    impl Embedder for WaterEmbedder {
        fn model(&self) -> &str {
            self.model
        }

        async fn embed(&self, texts: Vec<String>, _: EmbedPurpose) -> Result<Vec<Vec<f32>>> {
            self.calls.fetch_add(texts.len(), Ordering::Relaxed);
            if self.is_failing.load(Ordering::Relaxed) {
                return Err(Error::unavailable("out of service"));
            }
            let is_wet = |text: &String| ["river", "sea", "wet"].iter().any(|word| text.contains(word));
            let vector = |text| {
                let vector = if is_wet(text) { [1.0, 0.0] } else { [0.0, 1.0] };
                vector.into_iter().chain(std::iter::repeat_n(0.0, self.zeros)).collect()
            };
            Ok(texts.iter().map(vector).collect())
        }
    }

    fn search(embedder: &Arc<WaterEmbedder>) -> MeaningSearch {
        MeaningSearch::new(Arc::clone(embedder) as Arc<dyn Embedder>, Handle::current(), PAUSE)
    }

    fn segments() -> Vec<Segment> {
        let lines = ["The bread rose.", "The bread was sold.", "A river of salt.", "An oven of stone."];
        let segment = |(n, text): (u64, &str)| Segment::new(text, n * 60_000, 5_000);
        (0..).zip(lines).map(segment).collect()
    }

    fn spoken() -> Arc<[Passage]> {
        passages(&segments()).into()
    }

    async fn put(archive: &MemoryArchive, transcript: &Arc<Transcript>) {
        let request = PutRequest {
            video: transcript.video.clone(),
            selectors: vec![TrackSelector::Default],
            transcript: Arc::clone(transcript),
            known_tracks: Vec::new(),
            metadata: VideoMetadata::default(),
            parser_version: 1,
            replace: true,
            now: Timestamp::from_millis(0),
        };
        archive.put(request).await.unwrap();
    }

    /// Texts that an embedder of a process that starts now embeds for a question.
    async fn embedded(
        archive: &MemoryArchive,
        embedder: WaterEmbedder,
        transcript: &Arc<Transcript>,
    ) -> usize {
        let embedder = Arc::new(embedder);
        let meaning = search(&embedder);
        let meaning = meaning.with_archive(Arc::new(archive.clone()));
        let all: Arc<[Passage]> = passages(&transcript.segments).into();
        let found =
            meaning.similarities(Some(transcript), &all, &question("Was it wet?", &[])).await.unwrap();
        assert_eq!(found.own[..3], [0.0, 0.0, 1.0]);
        embedder.calls.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn meaning_vectors_in_archive_are_read_after_restart() {
        let (archive, kept) = (MemoryArchive::default(), transcript_of(segments()));
        let water = || WaterEmbedder { model: "water", ..WaterEmbedder::default() };
        for _ in 0..2 {
            assert_eq!(embedded(&archive, water(), &kept).await, 5, "a transcript that is not archived");
        }
        put(&archive, &kept).await;
        let mut counts = Vec::new();
        for _ in 0..3 {
            counts.push(embedded(&archive, water(), &kept).await);
        }
        assert_eq!(counts, [5, 1, 1]);
        // Another model, and a model of the same name with longer vectors.
        for other in [WaterEmbedder { model: "rain", ..water() }, WaterEmbedder { zeros: 1, ..water() }] {
            assert_eq!(embedded(&archive, other, &kept).await, 5);
        }
        assert_eq!(embedded(&archive, water(), &kept).await, 5, "the other vectors replaced these");
        let mut longer = (*kept).clone();
        longer.segments.push(Segment::new("The stone was hot.", 600_000, 5_000));
        let longer = Arc::new(longer);
        put(&archive, &longer).await;
        assert_eq!(embedded(&archive, water(), &longer).await, 6, "another text");
        assert_eq!(embedded(&archive, water(), &longer).await, 1);
    }

    #[tokio::test]
    async fn meaning_vectors_damaged_in_archive_are_computed() {
        let (archive, kept) = (MemoryArchive::default(), transcript_of(segments()));
        put(&archive, &kept).await;
        let water = || WaterEmbedder { model: "water", ..WaterEmbedder::default() };
        assert_eq!(embedded(&archive, water(), &kept).await, 5);
        let key = VectorsKey {
            video: kept.video.clone(),
            content_sha256: content_digest(&kept),
            texts_sha256: digest("water", 2, &spoken()),
        };
        let sound = archive.vectors(&key).await.unwrap().unwrap();
        for damaged in [Vec::new(), vec![0; sound.len()], sound[1..].to_vec(), vec![255; 1_000]] {
            archive.put_vectors(&key, damaged).await.unwrap();
            assert_eq!(embedded(&archive, water(), &kept).await, 5);
            assert_eq!(archive.vectors(&key).await.unwrap().unwrap(), sound);
        }
    }

    fn question(text: &str, earlier: &[&str]) -> Question {
        let turn = |text: &&str| ChatTurn { role: ChatRole::User, content: (*text).to_owned() };
        Question::new(text, earlier.iter().map(turn).collect()).unwrap()
    }

    #[tokio::test]
    async fn meaning_vectors_of_passages_are_computed_once() {
        let embedder = Arc::new(WaterEmbedder::default());
        let meaning = search(&embedder);
        let all = spoken();
        let wet = question("Was it wet?", &[]);
        let (one, two) =
            tokio::join!(meaning.similarities(None, &all, &wet), meaning.similarities(None, &all, &wet));
        assert_eq!(one.as_ref().map(|one| &one.own[..]), Some(&[0.0, 0.0, 1.0, 0.0][..]));
        assert_eq!(one, two);
        assert_eq!(embedder.calls.load(Ordering::Relaxed), 4 + 1 + 1);
        // Both the question and the question in its context.
        let found =
            meaning.similarities(None, &all, &question("Why?", &["Was the sea calm?"])).await.unwrap();
        assert_eq!((found.own[2], found.in_context[2]), (0.0, 1.0));
        assert_eq!(embedder.calls.load(Ordering::Relaxed), 8);
        assert!(meaning.similarities(None, &Arc::from([]), &wet).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn meaning_failure_pauses_calls() {
        let embedder = Arc::new(WaterEmbedder::default());
        embedder.is_failing.store(true, Ordering::Relaxed);
        let meaning = search(&embedder);
        let (all, wet) = (spoken(), question("Was it wet?", &[]));
        assert_eq!(meaning.similarities(None, &all, &wet).await, None);
        embedder.is_failing.store(false, Ordering::Relaxed);
        assert_eq!(meaning.similarities(None, &all, &wet).await, None);
        assert_eq!(embedder.calls.load(Ordering::Relaxed), 1);
        tokio::time::advance(PAUSE).await;
        assert!(meaning.similarities(None, &all, &wet).await.is_some());
    }

    #[test]
    fn meaning_decides_where_words_are_missing() {
        let similarities = |is_contextual| Similarities {
            own: vec![0.1, 0.2, 0.9],
            in_context: vec![0.9, 0.1, 0.1],
            is_contextual,
        };
        let scored = |coverage: f32, needs_context, is_contextual| {
            let scores = vec![2.0, 1.0, 0.0];
            let mut scores = LexicalScores { scores, coverage, is_covered: true, needs_context };
            add_meaning(&mut scores, &similarities(is_contextual));
            let best = scores.scores.iter().copied().fold(0.0, f32::max);
            scores.scores.iter().position(|score| *score == best)
        };
        assert_eq!(scored(0.0, false, true), Some(2));
        assert_eq!(scored(0.9, false, true), Some(0));
        assert_eq!(scored(0.0, false, false), Some(0));
        assert_eq!(scored(0.0, true, true), Some(0));
        assert!(needs_meaning(&LexicalScores { coverage: 0.5, ..LexicalScores::default() }));
        assert!(!needs_meaning(&LexicalScores { coverage: 1.0, ..LexicalScores::default() }));
    }
}
