//! Models in files: every accepted form, and damaged ones.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_core::chat::{EMBED_TEXTS_MAX, EmbedPurpose, Embedder as _};

use crate::{MODEL_FILE, StaticEmbedder, TOKENIZER_FILE};

/// A tensor of a file: name, type, shape and bytes.
type Tensor<'a> = (&'a str, &'a str, Vec<usize>, Vec<u8>);

/// The tokens: 0 is unknown, then `pier`, `ice` and `bread`.
fn tokenizer() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [{
            "id": 0, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": { "[UNK]": 0, "pier": 1, "ice": 2, "bread": 3 }
        }
    })
}

fn model(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, kind, shape, bytes) in tensors {
        let from = data.len();
        data.extend_from_slice(bytes);
        header.insert(
            (*name).to_owned(),
            json!({ "dtype": kind, "shape": shape, "data_offsets": [from, data.len()] }),
        );
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    file
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Two numbers for each token.
const VECTORS: [f32; 8] = [9.0, 9.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0];

fn embeddings() -> Tensor<'static> {
    ("embeddings", "F32", vec![4, 2], floats(&VECTORS))
}

fn folder(tokenizer: &[u8], model: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(TOKENIZER_FILE), tokenizer).unwrap();
    fs::write(folder.path().join(MODEL_FILE), model).unwrap();
    folder
}

fn open(tensors: &[Tensor<'_>]) -> Result<StaticEmbedder, String> {
    let folder = folder(tokenizer().to_string().as_bytes(), &model(tensors));
    StaticEmbedder::open(folder.path()).map_err(|error| error.message().to_owned())
}

async fn embed(model: &StaticEmbedder, text: &str) -> Vec<f32> {
    let vectors = model.embed(vec![text.to_owned()], EmbedPurpose::Question).await.unwrap();
    let [vector] = &vectors[..] else { panic!("{vectors:?}") };
    vector.clone()
}

#[tokio::test]
async fn model_sums_vectors_of_known_tokens() {
    let model = open(&[embeddings()]).unwrap();
    assert_eq!(embed(&model, "Pier, ICE! xyz").await, [1.0, 1.0]);
    assert_eq!(embed(&model, "").await, [0.0, 0.0]);
    assert_eq!(embed(&model, "xyz").await, [0.0, 0.0]);
    // Long texts are cut, and embedded on another thread.
    let long = "pier ".repeat(100_000);
    assert_eq!(embed(&model, &long).await, [819.0, 0.0]);
    let many = vec![String::new(); EMBED_TEXTS_MAX + 1];
    let error = model.embed(many, EmbedPurpose::Passage).await.unwrap_err();
    assert_eq!(error.message(), "4097 texts; allowed: 4096");
    assert!(model.model().starts_with("static:") && model.is_local());
}

#[tokio::test]
async fn model_numbers_of_every_type_are_read() {
    let halves: Vec<u8> = [0x4880_u16, 0x4880, 0x3c00, 0, 0, 0x3c00, 0xbc00, 0]
        .iter()
        .flat_map(|bits| bits.to_le_bytes())
        .collect();
    let brains: Vec<u8> =
        VECTORS.iter().flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()).collect();
    let doubles = VECTORS.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    let bytes = VECTORS.iter().map(|value| (*value as i8).cast_unsigned()).collect();
    for (kind, data) in [("F16", halves), ("BF16", brains), ("F64", doubles), ("I8", bytes)] {
        let model = open(&[("embedding.weight", kind, vec![4, 2], data)]).unwrap();
        assert_eq!(embed(&model, "bread ice").await, [-1.0, 1.0], "{kind}");
    }
    let other = open(&[("embeddings", "U8", vec![4, 2], vec![0; 8])]).unwrap_err();
    assert!(other.contains("tensor \"embeddings\" has numbers of the unsupported type U8"), "{other}");
}

#[tokio::test]
async fn model_weights_and_mapping_are_applied() {
    let weights = ("weights", "F32", vec![4], floats(&[1.0, 0.5, 2.0, 1.0]));
    // Bread has the vector of ice.
    let mapping: Vec<u8> = [0_i64, 1, 2, 2].iter().flat_map(|row| row.to_le_bytes()).collect();
    let mapping = ("mapping", "I64", vec![4], mapping);
    let fewer = ("embeddings", "F32", vec![3, 2], floats(&VECTORS[..6]));
    let model = open(&[fewer, mapping, weights]).unwrap();
    assert_eq!(embed(&model, "pier").await, [0.5, 0.0]);
    assert_eq!(embed(&model, "ice bread").await, [0.0, 3.0]);
}

#[test]
fn model_name_follows_content() {
    let (one, two) = (open(&[embeddings()]).unwrap(), open(&[embeddings()]).unwrap());
    assert_eq!(one.model(), two.model());
    let mut other = VECTORS;
    other[3] = 0.25;
    let other = open(&[("embeddings", "F32", vec![4, 2], floats(&other))]).unwrap();
    assert_ne!(one.model(), other.model());
}

#[test]
fn absurd_tensors_are_errors() {
    let wrong = |tensors: &[Tensor<'_>], part: &str| {
        let message = open(tensors).unwrap_err();
        assert!(message.contains(part), "{message}");
        assert!(message.contains("model.safetensors") && message.contains("give a folder"), "{message}");
    };
    wrong(&[("vectors", "F32", vec![1], floats(&[1.0]))], "no tensor \"embeddings\", only \"vectors\"");
    wrong(&[("embeddings", "F32", vec![8], floats(&VECTORS))], "shape [8], not two dimensions");
    wrong(&[("embeddings", "F32", vec![0, 2], Vec::new())], "allowed: up to");
    wrong(&[("embeddings", "I8", vec![1, 5_000], vec![1; 5_000])], "of up to 4096 numbers");
    wrong(&[("embeddings", "F32", vec![2, 2], floats(&VECTORS[..4]))], "but the tokenizer has 4");
    let infinite = [1.0, f32::INFINITY, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    wrong(&[("embeddings", "F32", vec![4, 2], floats(&infinite))], "a number that is not finite");
    wrong(&[("embeddings", "F16", vec![4, 2], [0x00, 0x7c].repeat(8))], "a number that is not finite");
    wrong(&[embeddings(), ("weights", "F32", vec![2, 2], floats(&[1.0; 4]))], "one number for each token");
    wrong(&[embeddings(), ("weights", "F32", vec![2], floats(&[1.0; 2]))], "but the tokenizer has 4");
    wrong(&[embeddings(), ("weights", "F32", vec![4], floats(&[f32::NAN; 4]))], "\"weights\" has a number");
    wrong(&[embeddings(), ("mapping", "F32", vec![4], floats(&[0.0; 4]))], "has no integers");
    for row in [4_i32, -1] {
        let rows = [0, 1, 2, row].iter().flat_map(|row| row.to_le_bytes()).collect();
        wrong(&[embeddings(), ("mapping", "I32", vec![4], rows)], "names vectors");
    }
}

/// Opens files, which must fail with a message and without a panic.
fn fails(tokenizer: &[u8], model: &[u8], context: &str) {
    let folder = folder(tokenizer, model);
    let error = StaticEmbedder::open(folder.path()).expect_err(context);
    assert_eq!(error.kind(), transcript_core::ErrorKind::Invalid, "{context}");
    assert!(error.message().starts_with("cannot read the embedding model /"), "{context}: {error}");
}

#[test]
fn damaged_files_are_errors() {
    let (tokenizer, model) = (tokenizer().to_string().into_bytes(), model(&[embeddings()]));
    for length in 0..model.len() {
        fails(&tokenizer, &model[..length], &format!("model of {length} bytes"));
    }
    for length in (0..tokenizer.len()).step_by(7) {
        fails(&tokenizer[..length], &model, &format!("tokenizer of {length} bytes"));
    }
    fails(&tokenizer, &[&[0xff; 8][..], &model].concat(), "a header of absurd length");
    fails(&model, &tokenizer, "exchanged files");
    let absurd = r#"{"embeddings":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,32]}}"#;
    let absurd = [&(absurd.len() as u64).to_le_bytes()[..], absurd.as_bytes(), &[0; 32]].concat();
    fails(&tokenizer, &absurd, "an absurd shape");
    fails(
        br#"{"version":"1.0","model":{"type":"BPE","vocab":{},"merges":["a b"]}}"#,
        &model,
        "merges without tokens",
    );
}

#[test]
fn missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = |folder: &Path| StaticEmbedder::open(folder).unwrap_err().message().to_owned();
    assert!(message(folder.path()).contains("tokenizer.json: No such file"), "{}", message(folder.path()));
    fs::write(folder.path().join(TOKENIZER_FILE), tokenizer().to_string()).unwrap();
    assert!(message(folder.path()).contains("model.safetensors: No such file"), "{}", message(folder.path()));
    assert!(message(&folder.path().join("none")).contains("none/tokenizer.json"));
}
