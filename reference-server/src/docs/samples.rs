//! Code samples: one language after the other, as tabs where the browser can lay them out.

use maud::{Markup, html};
use serde_json::Value;

use super::string;

/// Renders the samples of one call, the first one open. The name joins the parts: opening one closes the others.
pub(super) fn samples(samples: &[Value]) -> Markup {
    // A group is named by what it shows: two groups of one page differ.
    let group = samples.first().map_or(0, |first| {
        string(&first["source"])
            .bytes()
            .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
    });
    html! {
        @if !samples.is_empty() {
            div.samples {
                @for (index, sample) in samples.iter().enumerate() {
                    details.sample name={ "sample" (group) } data-language=(string(&sample["label"])) open[index == 0] {
                        summary { (string(&sample["label"])) }
                        pre tabindex="0" { code data-lang=(string(&sample["lang"])) { (string(&sample["source"])) } }
                    }
                }
            }
        }
    }
}
