// Shared by the transcribe button and by questions: a request with the solution of a challenge against bots.

// Sends a request with the solved challenge, and yields the events of its response.
//
// The message of an error is insecure, unloaded or unsolved: there is no solution; unreached: there is no response;
// refused, with the status and the detail as its cause; or that of a response that broke off.
export async function* send(address, request, challenge, onSolved) {
  const altcha = await solveChallenge(challenge).catch(({ message }) => {
    throw new Error(["insecure", "unloaded"].includes(message) ? message : "unsolved");
  });
  onSolved?.();
  const response = await fetch(address, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ ...request, altcha }),
  }).catch(() => {
    throw new Error("unreached");
  });
  if (!response.ok) {
    // A proxy may send an error page.
    const { detail } = await response.json().catch(() => ({}));
    throw new Error("refused", { cause: { status: response.status, detail } });
  }
  yield* readEvents(response);
  throw new Error("ended");
}

// Solves the challenge: ALTCHA's widget runs invisibly and computes in workers.
async function solveChallenge({ widget: code, worker, challenge }) {
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
async function* readEvents(response) {
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
