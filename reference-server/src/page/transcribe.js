// The transcribe button of a video without a transcript.

import { send } from "./challenge.js";

const one = (selector) => document.querySelector(selector);

// The texts of this script, in the language of the page.
const messages = JSON.parse(one("[data-messages]").dataset.messages);

function enableTranscribe(section) {
  const button = one("#transcribe");
  const work = one(".work");
  const [bar, stage, failed, said] = [one("#progress"), one("#stage"), one("#failed"), one("#said")];

  const showProgress = (message, percent) => {
    // Screen readers do not announce a status that appears with its text.
    stage.textContent = said.textContent = message;
    if (percent === undefined) bar.removeAttribute("value");
    else bar.value = percent / 100;
  };
  const fail = (message) => {
    said.textContent = "";
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
    try {
      for await (const { name, data } of send(section.dataset.transcribe, {}, section.dataset)) {
        if (name === "progress") showProgress(data.message, data.percent);
        else if (name === "result") return finish(data);
        else return fail(data.detail);
      }
    } catch ({ message }) {
      const { insecure, unreached, unsolved, failed: refused } = messages;
      // The work may have begun, and then goes on without this page.
      fail({ insecure, unloaded: unreached, unsolved, unreached, refused }[message] ?? messages.lost);
    }
  });
  button.disabled = false;
}

enableTranscribe(one("[data-transcribe]"));
