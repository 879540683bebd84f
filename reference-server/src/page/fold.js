// How the search of a transcript compares texts, and where a match is in the document. Part of the script of page.js.

// The words of the paragraphs that have a time.
const SPOKEN = "p > .time ~ span:last-child";
// Work that pauses for the browser after this time, in milliseconds.
const SLICE_MS = 12;
// Characters that people type in another form than captions have them.
const TYPED = { "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "…": "...", "ß": "ss", "\u05f3": "'", "\u05f4": '"', "\u02bc": "'", "\u03c2": "\u03c3", "\u00ad": "", "\u0640": "", "\u200b": "", "\u200c": "", "\u200d": "", "\u200e": "", "\u200f": "" };
// Accents, and the points of Arabic and Hebrew. Vowel signs of other scripts are letters.
const POINTS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]/g;

// A text without differences of case, accents, quotation marks and width; `starts` has the position of each of its
// characters in the text, and is null if they are the same.
function fold(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return { folded: text.toLowerCase(), starts: null };
  let folded = "";
  const starts = [];
  let at = 0;
  for (const char of text) {
    const plain = TYPED[char] ?? char.normalize("NFKD").replace(POINTS, "").toLowerCase();
    for (let unit = 0; unit < plain.length; unit += 1) starts.push(at);
    folded += plain;
    at += char.length;
  }
  starts.push(at);
  return { folded, starts };
}

// The folded text of all paragraphs, joined by spaces so that a phrase is found across them.
async function foldParagraphs(words) {
  const parts = [];
  const units = [];
  let length = 0;
  let pause = performance.now() + SLICE_MS;
  for (const span of words.querySelectorAll(SPOKEN)) {
    const node = span.firstChild;
    if (!node) continue;
    const { folded, starts } = fold(node.data);
    units.push({ node, starts, at: length, length: folded.length });
    parts.push(folded);
    length += folded.length + 1;
    if (performance.now() > pause) {
      await new Promise((resume) => setTimeout(resume));
      pause = performance.now() + SLICE_MS;
    }
  }
  return { text: parts.join(" "), units };
}

// Index of the last unit for which `is` holds; they come first. -1 if there is none.
function lastUnit(units, is) {
  let [low, high] = [0, units.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(units[middle])) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The parts of the document between two positions of the folded text: one in each paragraph, without times and headings.
function rangesOf(units, from, to) {
  const ranges = [];
  for (let index = lastUnit(units, ({ at }) => at <= from); units[index]?.at < to; index += 1) {
    const { node, starts, at, length } = units[index];
    const start = Math.max(from - at, 0);
    let end = Math.min(to - at, length);
    // Of the space between two paragraphs there is nothing in the document.
    if (start >= end) continue;
    const range = new Range();
    range.setStart(node, starts ? starts[start] : start);
    if (starts) {
      // A character that is folded to several ends after the last of them.
      while (end < length && starts[end] === starts[end - 1]) end += 1;
      end = starts[end];
    }
    range.setEnd(node, end);
    ranges.push(range);
  }
  return ranges;
}
