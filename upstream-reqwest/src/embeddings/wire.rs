//! The JSON of embeddings in the API of `OpenAI`, which other services share.

use serde::{Deserialize, Serialize};

/// A request for the vectors of texts.
#[derive(Debug, Serialize)]
pub(super) struct EmbeddingsRequest<'a> {
    pub(super) model: &'a str,
    pub(super) input: &'a [String],
    pub(super) encoding_format: &'a str,
}

/// The vectors of a request.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingsResponse {
    /// The vectors in the order of the texts; `None` if one is missing, repeated or unknown.
    pub(super) fn vectors(self, count: usize) -> Option<Vec<Vec<f32>>> {
        if self.data.len() != count {
            return None;
        }
        let mut vectors = vec![Vec::new(); count];
        for item in self.data {
            let vector = vectors.get_mut(item.index).filter(|vector| vector.is_empty())?;
            *vector = item.embedding;
        }
        vectors.iter().all(|vector| !vector.is_empty()).then_some(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_in_order_of_texts() {
        let read = |body: &str, count| serde_json::from_str::<EmbeddingsResponse>(body).ok()?.vectors(count);
        let both =
            r#"{"data":[{"index":1,"embedding":[2.5],"object":"embedding"},{"index":0,"embedding":[1]}]}"#;
        assert_eq!(read(both, 2), Some(vec![vec![1.0], vec![2.5]]));
        for wrong in [
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":[1]}]}"#,
            "{}",
        ] {
            assert_eq!(read(wrong, 2), None, "{wrong}");
        }
    }
}
