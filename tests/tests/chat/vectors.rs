//! Vectors of passages in the archive of the built server: the embeddings service is called once for a transcript.
#![expect(clippy::print_stdout, reason = "a test prints a figure of the documentation")]

use anyhow::{Result, ensure};
use tempfile::TempDir;
use transcript_core::chat::passages;

use super::{
    embeddings::{embeddings, texts},
    served::send_question,
    talks::talks,
};
use crate::{
    server::{
        harness::{EXAMPLE, ServerFixture, run_ok, verbatim, verbatim_with},
        postgres::PostgresFixture,
        v1::mail_client::{MailClient, create_account},
    },
    service::fake::FakeService,
};

const IMPORT: [&str; 6] = ["import", EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--lang", "en"];

fn settings<'a>(service: &'a FakeService, model: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("VERBATIM_CHAT__EMBEDDINGS_URL", &service.base_url),
        ("VERBATIM_CHAT__EMBEDDINGS_MODEL", model),
        ("VERBATIM_CHAT__EMBEDDINGS_PASSAGE_PREFIX", "passage:"),
        ("VERBATIM_CHAT__EMBEDDINGS_QUESTION_PREFIX", "query:"),
    ]
}

/// Requests to the service for questions and for passages.
fn counts(service: &FakeService) -> (usize, usize) {
    let sent: Vec<_> = service.requests().iter().map(texts).collect();
    let count = |prefix| {
        let has_prefix = |texts: &&Vec<String>| texts.iter().all(|text| text.starts_with(prefix));
        sent.iter().filter(has_prefix).count()
    };
    (count("query: "), count("passage: "))
}

async fn request_answer(server: &ServerFixture, key: &str) -> Result<()> {
    let reply = send_question(server, key, "Which lighthouse museum suffered from frost?").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn passages_are_embedded_once_across_restarts() -> Result<()> {
    let service = FakeService::start(|request, _| embeddings(request)).await?;
    let data = TempDir::new()?;
    run_ok(verbatim(data.path(), &IMPORT), b"")?;
    let mut server = ServerFixture::start(&data, &settings(&service, "small"))?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let (one, two) = tokio::join!(request_answer(&server, &key), request_answer(&server, &key));
    one.and(two)?;
    assert_eq!(counts(&service), (2, 1), "concurrent questions");

    for (model, expect) in [("small", (3, 1)), ("small", (4, 1)), ("large", (5, 2)), ("large", (6, 2))] {
        server.stop()?;
        server = ServerFixture::start(&data, &settings(&service, model))?;
        request_answer(&server, &key).await?;
        assert_eq!(counts(&service), expect, "after a restart with {model}");
    }
    server.stop()?;
    for command in [&["archive", "delete", "https://youtu.be/L1ghth0use1", "--yes"][..], &IMPORT] {
        run_ok(verbatim(data.path(), command), b"")?;
    }
    let server = ServerFixture::start(&data, &settings(&service, "large"))?;
    request_answer(&server, &key).await?;
    assert_eq!(counts(&service), (7, 3), "vectors of a deleted video are deleted");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn passages_are_embedded_once_for_servers_of_one_database() -> Result<()> {
    let service = FakeService::start(|request, _| embeddings(request)).await?;
    let fixture = PostgresFixture::new(None)?.with(&settings(&service, "small"));
    run_ok(verbatim_with(fixture.data.path(), &fixture.settings(), &IMPORT), b"")?;
    let (one, two) = (fixture.start_server()?, fixture.start_server()?);
    let key = create_account(&one, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    for (server, expect) in [(&one, (1, 1)), (&two, (2, 1)), (&one, (3, 1)), (&two, (4, 1))] {
        request_answer(server, &key).await?;
        assert_eq!(counts(&service), expect);
    }
    Ok(())
}

/// The size that `docs/scale.md` states.
#[test]
fn vectors_of_an_hour_take_stated_size() -> Result<()> {
    const NUMBERS: u64 = 384;
    let (mut bytes, mut duration_ms) = (0, 0);
    for talk in talks()? {
        let segments = &talk.transcript.segments;
        bytes += passages(segments).len() as u64 * NUMBERS;
        duration_ms += segments.last().map_or(0, |last| last.start_ms + last.duration_ms);
    }
    let per_hour = bytes * 3_600_000 / duration_ms;
    println!("{per_hour} bytes for an hour of speech, {} hours", duration_ms / 3_600_000);
    ensure!((1..200_000).contains(&per_hour), "{per_hour}");
    Ok(())
}
