// Shared by the transcribe button and by questions: the challenge against bots, and events of a response.

// Solves the challenge: ALTCHA's widget runs invisibly and computes in workers.
export async function solveChallenge({ widget: code, worker, challenge }) {
  if (!globalThis.crypto?.subtle) throw new Error("insecure");
  await import(new URL(code, location)).catch(() => {
    // The connection failed, or the page is older than the server, which has another version of the file.
    throw new Error("unloaded");
  });
  globalThis.$altcha.algorithms.set("PBKDF2/SHA-256", () => new Worker(new URL(worker, location)));
  const widget = document.createElement("altcha-widget");
  widget.hidden = true;
  const loaded = new Promise((done) => widget.addEventListener("load", done, { once: true }));
  document.body.append(widget);
  await loaded;
  try {
    await widget.configure({
      challenge: new URL(challenge, location).href,
      display: "invisible",
      humanInteractionSignature: false,
      minDuration: 0,
    });
    const result = await widget.verify();
    if (!result?.payload) throw new Error("unsolved");
    return result.payload;
  } finally {
    widget.remove();
  }
}

// Yields the Server-Sent Events of a response.
export async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
      if (fields.event) yield { name: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
