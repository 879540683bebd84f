//! A model that paraphrases, as large ones do: true statements must not be dropped.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use tokio::runtime::Handle;
use transcript_core::chat::{
    AnswerOrigin, Chat, ChatModel, ChatOptions, DeltaSink, ModelReply, ModelRequest, Passage, Question,
};

use super::{questions::plain, talks::talks};

/// The language of a talk, words of the cited passage, and the model's paraphrase.
const PARAPHRASES: &[(&str, &str, &str)] = &[
    ("en", "twenty-two years", "For more than two decades the narrator kept the northern lighthouse"),
    ("en", "forty-one metres high", "It stands forty-one metres tall and has over two hundred steps"),
    ("en", "burned whale oil", "The original lamp ran on whale oil before paraffin replaced it"),
    ("en", "the sea froze", "During the icy winter of 1963 people could cross the frozen sea on foot"),
    ("en", "called the Margarethe", "A ship, the Margarethe, got stuck on a shoal because of fog"),
    ("en", "eleven sailors", "They rescued eleven men, but one sailor drowned"),
    ("en", "kept bees", "His spouse produced heather honey from hives behind the engine house"),
    ("en", "every second Thursday", "Deliveries arrived by boat every two weeks, weather permitting"),
    ("en", "into a log before", "Changes are recorded in a log prior to modifying table pages"),
    ("en", "share a single fsync", "Many transactions become durable with one fsync, known as group commit"),
    ("en", "torn page", "Torn pages, left behind by a crash, are detected using checksums"),
    ("en", "lied about its cache", "A dishonest controller cost them six hours of customer orders"),
    ("en", "test the restore", "You should practise restoring rather than merely taking backups"),
    ("de", "vierten Generation", "Die Sprecherin ist schon die vierte Generation im Amt"),
    ("de", "Maulwurf ist", "Maulwürfe gelten wegen ihrer Gänge als größere Gefahr als Sturmfluten"),
    ("de", "an drei Stellen", "1962 kam es an drei Stellen zum Deichbruch"),
    ("de", "zwölf Stunden auf", "Ihre Mutter harrte zwölf Stunden auf dem Scheunendach aus"),
    ("fr", "deux mille œufs", "La reine peut pondre 2000 œufs quotidiennement en mai"),
    ("fr", "vivent que six semaines", "En hiver les ouvrières vivent bien plus longtemps"),
    ("fr", "renversé sept ruches", "Une tempête a fait tomber sept ruches, dont trois furent perdues"),
    ("zh", "一千二百米", "茶园位于一千二百米的高山上，由五代人传承下来"),
    ("zh", "清明节前", "清明之前采摘的茶最为鲜嫩"),
    ("zh", "不要超过八十度", "泡绿茶时水温不宜超过八十度，否则味道会苦"),
    ("zh", "四月的霜冻", "去年四月的霜害让收成减半"),
    (
        "zh",
        "一千二百米",
        "The tea garden lies at 1,200 metres and has stayed in the family for five generations",
    ),
    ("ja", "二十六年", "駅長は二十六年間ここで働いています"),
    ("ja", "鉄橋が流され", "台風で橋が流されて、八か月間運転できませんでした"),
    ("ja", "三毛猫", "待合室にはスズという三毛猫がいます"),
    ("ko", "열네 살부터", "그녀는 열네 살 때 물질을 시작했습니다"),
    ("ko", "서른일곱 명", "마을의 해녀는 이제 서른일곱 명뿐입니다"),
    ("th", "ก๋วยเตี๋ยวเรือ", "เธอขายก๋วยเตี๋ยวเรือมาแล้วยี่สิบแปดปี"),
    ("th", "คณิตศาสตร์", "ลูกชายเป็นครูคณิตศาสตร์"),
];
/// The share of paraphrases that must remain, in percent.
const LEFT_MIN: usize = 95;

/// Cites the passage that contains `holds` with a paraphrase.
#[derive(Debug)]
struct ParaphraseModel {
    holds: String,
    says: &'static str,
}

impl ParaphraseModel {
    fn cites(&self, passage: &Passage) -> bool {
        plain(&passage.text).contains(&self.holds)
    }
}

#[async_trait]
impl ChatModel for ParaphraseModel {
    fn context_tokens(&self) -> u32 {
        1_000_000
    }

    async fn complete(
        &self,
        request: ModelRequest,
        _: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply, transcript_core::Error> {
        let cited = request.passages.iter().find(|passage| self.cites(passage));
        let number = cited.map_or(0, |passage| passage.number);
        Ok(ModelReply { text: format!("{} [s{number}].", self.says), usage: None })
    }
}

#[tokio::test]
async fn true_paraphrases_remain() -> Result<()> {
    let talks = talks()?;
    let mut dropped = Vec::new();
    for (language, holds, says) in PARAPHRASES {
        let of_language = talks.iter().filter(|talk| talk.transcript.track.language.primary() == *language);
        let spoken = |segments: &[transcript_core::transcript::Segment]| -> String {
            segments.iter().map(|segment| plain(&segment.text)).collect()
        };
        let holds = plain(holds);
        let talk = of_language
            .clone()
            .find(|talk| spoken(&talk.transcript.segments).contains(&holds))
            .with_context(|| format!("no talk contains {holds}"))?;
        let cited = transcript_core::chat::passages(&talk.transcript.segments);
        ensure!(
            cited.iter().any(|passage| plain(&passage.text).contains(&holds)),
            "no passage contains {holds}"
        );
        let model = Arc::new(ParaphraseModel { holds, says });
        let chat = Chat::new(Handle::current(), model, ChatOptions::default());
        let question = Question::new("?!", Vec::new())?;
        let answer = chat.answer(Arc::clone(&talk.transcript), question).await?;
        if answer.origin != AnswerOrigin::Model || !answer.response.starts_with(says) {
            dropped.push(format!("{says} -> {}", answer.response));
        }
    }
    println!("{} paraphrases, {} dropped", PARAPHRASES.len(), dropped.len());
    dropped.iter().for_each(|one| println!("  {one}"));
    ensure!((PARAPHRASES.len() - dropped.len()) * 100 >= PARAPHRASES.len() * LEFT_MIN, "{dropped:?}");
    Ok(())
}
