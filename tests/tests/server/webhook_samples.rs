//! The verification of webhooks: the samples of `docs/webhooks.md` and of the guide, unchanged, and
//! `verbatim webhook verify`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use transcript_core::{Timestamp, accounts::webhooks::sign};

use super::{
    harness::{run, verbatim},
    samples::run_sample,
};
use crate::{install::installed, stripe::fake::now_s};

const PAGE: &str = include_str!("../../../docs/webhooks.md");
const GUIDE: &str = include_str!("../../../reference-server/src/docs/guides/webhooks.md");
const BODY: &str = "{\"id\": \"evt_1\", \"ü\": 1}";
const SECRET: &str = "vbw_secret-of-the-test";

fn header(body: &str, secrets: &[&str], at_s: i64) -> String {
    let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    sign(body.as_bytes(), &secrets, Timestamp::from_millis(at_s * 1_000))
}

/// Headers with whether they are valid for the body and the secret.
fn cases() -> Result<Vec<(String, bool)>> {
    let now = now_s();
    let valid = header(BODY, &[SECRET], now);
    Ok(vec![
        (header(BODY, &["vbw_new", SECRET], now), true),
        (header(BODY, &["vbw_new"], now), false),
        (header("{}", &[SECRET], now), false),
        (header(BODY, &[SECRET], now - 400), false),
        (header(BODY, &[SECRET], now + 400), false),
        (valid.replace("v1=", "v0="), false),
        (valid.replace("t=", "t=x"), false),
        (format!("{valid},t={now}"), false),
        (format!("t={now},v1=zz,v1="), false),
        (format!("t={now},v1=ü"), false),
        // More digits than Python converts to a number.
        (format!("t={},v1=00", "9".repeat(5_000)), false),
        ("nonsense".to_owned(), false),
        (valid, true),
    ])
}

/// The code block of a language in the page. The guide has the same.
fn sample(language: &str) -> Result<&'static str> {
    let find = |page: &'static str| {
        let block = page.split_once(&format!("```{language}\n")).map(|(_, rest)| rest);
        let block = block.and_then(|rest| rest.split_once("\n```"));
        block.map(|(block, _)| block).with_context(|| format!("a page has no sample in {language}"))
    };
    ensure!(find(PAGE)? == find(GUIDE)?, "the guide has another sample in {language}");
    find(PAGE)
}

#[test]
fn webhook_samples_verify_as_documented() -> Result<()> {
    installed("samples")?;
    let python = format!(
        "{}\nimport os\nenv = os.environ\nbody = env['BODY'].encode()\n\
         print([verify(h, body, env['SECRET']) for h in env['HEADERS'].split('\\n')])",
        sample("python")?
    );
    let javascript = format!(
        "{}\nconst env = process.env;\nconst results = env.HEADERS.split('\\n').map(\n  \
         (header) => verify(header, Buffer.from(env.BODY), env.SECRET));\n\
         console.log(JSON.stringify(results));",
        sample("javascript")?
    );
    let cases = cases()?;
    let headers: Vec<&str> = cases.iter().map(|(header, _)| header.as_str()).collect();
    let environment = BTreeMap::from([
        ("HEADERS", headers.join("\n")),
        ("BODY", BODY.to_owned()),
        ("SECRET", SECRET.to_owned()),
    ]);
    let expected: Vec<bool> = cases.iter().map(|(_, is_valid)| *is_valid).collect();
    for (language, source) in [("Python", python), ("JavaScript", javascript)] {
        let sample = ("webhook".to_owned(), language.to_owned(), source);
        let output = run_sample(&sample, "", &environment)?.to_lowercase();
        let results: Vec<bool> = serde_json::from_str(&output).with_context(|| output.clone())?;
        assert_eq!(results, expected, "{language}: {headers:#?}");
    }
    Ok(())
}

#[test]
fn webhook_verify_command_reports_by_exit_status() -> Result<()> {
    let data = TempDir::new()?;
    let verify = |arguments: &[&str], secret: &str, body: &str| {
        let mut command = verbatim(data.path(), &[&["webhook", "verify"], arguments].concat());
        command.env("WEBHOOK_SECRET", secret);
        let output = run(command, body.as_bytes())?;
        let text = [output.stdout, output.stderr].concat();
        anyhow::Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
    };
    for (header, is_valid) in cases()? {
        let (code, text) = verify(&["--signature", &header], SECRET, BODY)?;
        assert_eq!((code, text == "valid\n"), (Some(i32::from(!is_valid)), is_valid), "{header}: {text}");
    }
    let old = header(BODY, &[SECRET], now_s() - 4_000);
    assert_eq!(verify(&["--signature", &old, "--tolerance", "2h"], SECRET, BODY)?.0, Some(0));
    let (file, secrets) = (data.path().join("body.json"), data.path().join("secrets"));
    std::fs::write(&file, BODY)?;
    std::fs::write(&secrets, format!("vbw_other\n{SECRET}\n"))?;
    let (file, secrets) = (file.display().to_string(), secrets.display().to_string());
    let valid = header(BODY, &[SECRET], now_s());
    let arguments = ["--signature", &valid, "--secret-file", &secrets, &file];
    assert_eq!(verify(&arguments, "", "")?, (Some(0), "valid\n".to_owned()));
    let (code, text) = verify(&["--signature", &valid], "", BODY)?;
    assert!(code == Some(2) && text.contains("WEBHOOK_SECRET"), "{text}");
    Ok(())
}
