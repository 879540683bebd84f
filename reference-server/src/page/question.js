// A question about the video, answered sentence by sentence. Loaded by the first question.

import { send } from "./challenge.js";

const MARKER = /\[((?:\d+:)?\d+:\d\d)\]/;
const secondsOf = (time) => time.split(":").reduce((sum, part) => 60 * sum + Number(part), 0);

// The text of a sentence, with links in place of its markers. `paragraphAt` finds the paragraph of a second.
function linked(text, paragraphAt) {
  return text.split(MARKER).map((part, index) => {
    // Every second part is the time of a marker.
    if (index % 2 === 0) return part;
    const paragraph = paragraphAt(secondsOf(part));
    if (!paragraph) return `[${part}]`;
    const link = document.createElement("a");
    link.href = `#${paragraph.id}`;
    link.textContent = part;
    const marker = document.createElement("span");
    marker.append("[", link, "]");
    return marker;
  });
}

// The refusal of a question at a limit of the UTC day, and the day. Until its end no challenge is solved for another.
let limited;
const today = () => new Date().toISOString().slice(0, 10);

// Sends the question of the form, and shows the answer. Returns false if this page cannot solve the challenge.
export async function ask(form, answer, paragraphAt) {
  const texts = JSON.parse(form.dataset.texts);
  const question = new FormData(form).get("question");
  const line = document.createElement("p");
  const reply = document.createElement("p");
  reply.dir = "auto";
  const show = (text, kind = "") => {
    line.className = kind;
    line.textContent = text;
    // An error leaves the sentences that the visitor may be reading.
    if (kind === "error" && reply.isConnected) answer.append(line);
    else answer.replaceChildren(line);
  };
  if (limited?.day === today()) {
    show(limited.text, "error");
    return true;
  }
  show(texts.solving, "hint");
  try {
    for await (const { name, data } of send(form.action, { question }, form.dataset, () => show(texts.thinking, "hint"))) {
      if (name === "sentence") {
        // Once only: inserted again, a paragraph loses the focus and is read aloud as a whole.
        if (!reply.isConnected) answer.replaceChildren(reply);
        reply.append(...linked(data.text, paragraphAt));
      } else if (name === "error") {
        show(data.detail, "error");
        return true;
      } else {
        if (!data.covered) {
          show(`${texts.notCovered} `);
          const link = document.createElement("a");
          Object.assign(link, { href: form.dataset.address, rel: "noreferrer", textContent: texts.watch });
          line.append(link);
        }
        return true;
      }
    }
  } catch ({ message, cause }) {
    if (["insecure", "unloaded"].includes(message)) return false;
    // Errors of the server itself have words for programs.
    const refused = cause?.status < 500 ? cause.detail : undefined;
    if (cause?.status === 429 && refused) limited = { day: today(), text: refused };
    show({ unsolved: texts.unsolved, refused }[message] ?? texts.lost, "error");
  }
  return true;
}
