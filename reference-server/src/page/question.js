// A question about the video, answered sentence by sentence. Loaded by the first question.

import { readEvents, solveChallenge } from "./challenge.js";

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
  show(texts.solving, "hint");
  let altcha;
  try {
    altcha = await solveChallenge(form.dataset);
  } catch (error) {
    if (["insecure", "unloaded"].includes(error.message)) return false;
    show(texts.unsolved, "error");
    return true;
  }
  show(texts.thinking, "hint");
  try {
    const response = await fetch(form.action, {
      method: "POST",
      headers: { accept: "text/event-stream", "content-type": "application/json" },
      body: JSON.stringify({ question, altcha }),
    });
    if (!response.ok) {
      // Errors of the server itself have words for programs.
      show(response.status < 500 ? (await response.json()).detail : texts.lost, "error");
      return true;
    }
    for await (const { name, data } of readEvents(response)) {
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
    throw new Error("ended");
  } catch {
    show(texts.lost, "error");
  }
  return true;
}
