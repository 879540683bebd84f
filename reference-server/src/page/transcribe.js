// The transcribe button of a video without a transcript.

import { readEvents, solveChallenge } from "./challenge.js";

const one = (selector) => document.querySelector(selector);

// The texts of this script, in the language of the page.
const messages = JSON.parse(one("[data-messages]").dataset.messages);

function enableTranscribe(section) {
  const button = one("#transcribe");
  const work = one(".work");
  const [bar, stage, failed] = [one("#progress"), one("#stage"), one("#failed")];

  const showProgress = (message, percent) => {
    stage.textContent = message;
    if (percent === undefined) bar.removeAttribute("value");
    else bar.value = percent / 100;
  };
  const fail = (message) => {
    work.hidden = true;
    button.hidden = false;
    button.disabled = false;
    failed.textContent = message;
    failed.hidden = false;
    button.focus();
  };

  // Handles the final result: opens the page of the transcript, or shows the failure message.
  const finish = ({ available, watchUrl, failureMessage }) => {
    if (!available) return fail(failureMessage);
    showProgress(messages.done, 100);
    const page = new URL(watchUrl);
    // `watchUrl` may have another origin than this page, for example behind a proxy; stay on this origin.
    const same = page.pathname.split("/").slice(-2).join("/") === location.pathname.split("/").slice(-2).join("/");
    if (same) location.reload();
    else location.assign(new URL(`../../watch/${page.pathname.split("/watch/")[1]}${location.search}`, location));
  };

  button.addEventListener("click", async () => {
    button.disabled = button.hidden = true;
    failed.hidden = true;
    work.hidden = false;
    showProgress(messages.solving);
    let solution;
    try {
      solution = await solveChallenge(section.dataset);
    } catch (error) {
      const { insecure, unreached: unloaded } = messages;
      return fail({ insecure, unloaded }[error.message] ?? messages.unsolved);
    }
    let lost = messages.unreached;
    try {
      const response = await fetch(section.dataset.transcribe, {
        method: "POST",
        headers: { accept: "text/event-stream", "content-type": "application/json" },
        body: JSON.stringify({ altcha: solution }),
      });
      if (!response.ok) return fail(messages.failed);
      // The work has begun, and goes on without this page.
      lost = messages.lost;
      for await (const { name, data } of readEvents(response)) {
        if (name === "progress") showProgress(data.message, data.percent);
        else if (name === "result") return finish(data);
        else return fail(data.detail);
      }
      throw new Error("ended");
    } catch {
      fail(lost);
    }
  });
  button.disabled = false;
}

enableTranscribe(one("[data-transcribe]"));
