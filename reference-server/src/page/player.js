// YouTube's player beside the words. Loaded only by a click; its messages are the only contact with it.

const PLAYER_ORIGIN = "https://www.youtube-nocookie.com";
// How often the player is greeted until it answers, in milliseconds.
const GREETING_MS = 250;
const GREETINGS_MAX = 80;

// Shows the player of `video` in `aside` from `start` on. `onTime` receives each position of the video, in seconds, and
// whether the page should follow it.
export function openPlayer({ video, aside, title, texts, start, onTime, onClose }) {
  const frame = document.createElement("iframe");
  const address = new URL(`/embed/${encodeURIComponent(video)}`, PLAYER_ORIGIN);
  const options = { enablejsapi: "1", autoplay: "1", playsinline: "1", rel: "0", origin: location.origin, start: String(start) };
  for (const [name, value] of Object.entries(options)) address.searchParams.set(name, value);
  frame.src = address.href;
  frame.title = title;
  frame.allow = "autoplay; encrypted-media; fullscreen; picture-in-picture";
  // The player refuses to play without a referrer. The page itself sends none.
  frame.referrerPolicy = "strict-origin-when-cross-origin";
  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  const follow = make("input", { type: "checkbox", checked: true, id: "follow" });
  const label = make("label");
  label.append(follow, ` ${texts.follow}`);
  const end = make("button", { type: "button", className: "quiet", textContent: texts.close });
  end.addEventListener("click", onClose);
  const controls = make("div");
  controls.append(label, end);
  aside.append(frame, controls);

  const send = (message) => frame.contentWindow?.postMessage(JSON.stringify({ ...message, id: 1, channel: "widget" }), PLAYER_ORIGIN);
  let greeting;
  // Before it has loaded, the frame has the origin of this page, and messages for the player do not reach it.
  frame.addEventListener("load", () => {
    let greetings = 0;
    clearInterval(greeting);
    greeting = setInterval(() => {
      greetings += 1;
      if (greetings > GREETINGS_MAX) clearInterval(greeting);
      send({ event: "listening" });
    }, GREETING_MS);
  });

  const receive = (event) => {
    if (event.origin !== PLAYER_ORIGIN || event.source !== frame.contentWindow) return;
    clearInterval(greeting);
    let time;
    try {
      time = JSON.parse(event.data)?.info?.currentTime;
    } catch {
      return;
    }
    if (typeof time === "number" && Number.isFinite(time)) onTime(time, follow.checked);
  };
  addEventListener("message", receive);

  return {
    seek(seconds) {
      send({ event: "command", func: "seekTo", args: [seconds, true] });
      send({ event: "command", func: "playVideo", args: [] });
    },
    close() {
      clearInterval(greeting);
      removeEventListener("message", receive);
      frame.remove();
    },
  };
}
