// The picture with its time controls, the caption beside it, the feed that brings frames, and a watch on the theme:
// one module, four roles.
//
// The browser keeps the frames of each film, so that dragging and playing swap pictures without the server. The feed
// pulls: it sends the instants that it has, gets some that it lacks, and asks again. So nothing is sent twice.

const FILMS_KEPT = 3;
const PLAY_MS = 120;
const NARROW_PX = 560;
const LOOK_MS = 1000; // how often theme and width are checked, besides at the events that announce a change
const LOST_MS = 2500; // a report without an effect for so long is sent again
const MOST_TRIES = 5;

const shared = (window.idviz ??= { films: new Map(), status: new Map(), hub: new EventTarget() });
const say = (type, detail) => shared.hub.dispatchEvent(new CustomEvent(type, { detail }));

function framesOf(key) {
  const frames = shared.films.get(key) ?? new Map();
  shared.films.delete(key);
  shared.films.set(key, frames); // now the last in order
  for (const old of shared.films.keys()) {
    if (shared.films.size <= FILMS_KEPT) break;
    for (const frame of shared.films.get(old).values()) URL.revokeObjectURL(frame.url);
    shared.films.delete(old);
    shared.status.delete(old);
  }
  return frames;
}

// The picture in a data address, as an object that an image loads faster and that can be released.
function toUrl(address) {
  const bytes = Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
}

function nearest(values, target) {
  let best = null;
  for (const value of values) {
    if (best === null || Math.abs(value - target) < Math.abs(best - target)) best = value;
  }
  return best;
}

// Whether the theme's background is dark; every part has it as its own (otherwise unused) background.
function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).backgroundColor.match(/[\d.]+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

// Whether a part's report is lost because another run overtook it. While a run goes on, it may still arrive.
function isLost(part) {
  const app = document.querySelector("[data-testid=stApp]");
  if (app?.dataset.testScriptState === "running" || Date.now() - part.toldAt < LOST_MS) return false;
  return part.tries++ < MOST_TRIES;
}

// Report to Python once what the screen is like, where it has drawn for another; again where the report was lost.
function tellOnce(part, screen, drawn) {
  if (Object.keys(screen).every((name) => screen[name] === drawn[name])) {
    part.told = undefined;
    part.tries = 0;
    return;
  }
  const told = JSON.stringify(screen);
  if (told === part.told && !isLost(part)) return;
  part.told = told;
  part.toldAt = Date.now();
  part.send("screen", { ...screen, turn: part.toldAt });
}

class Player {
  constructor(root) {
    this.root = root;
    const find = (selector) => root.querySelector(selector);
    this.image = find("img");
    this.transport = find(".transport");
    this.button = find(".play");
    this.range = find("input");
    this.output = find("output");
    this.count = find(".count");
    this.halt = find(".halt");
    this.playing = null;
    this.held = false;
    this.loose = null; // the address of a picture that belongs to no film

    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.range.addEventListener("pointerdown", () => {
      this.stop();
      this.held = true;
    });
    this.range.addEventListener("pointercancel", () => (this.held = false));
    this.range.addEventListener("input", () => this.scrub());
    this.range.addEventListener("change", () => this.release());
    this.halt.addEventListener("click", () => say("halt", { film: this.data.film }));
    this.onFilm = (event) => this.tell(event.detail);
    shared.hub.addEventListener("film", this.onFilm);
    this.box = find(".player");
    this.watcher = new ResizeObserver(() => this.measure());
    this.watcher.observe(this.box);
    this.box.addEventListener("transitionend", () => this.measure()); // the theme's background has changed
    this.looking = setInterval(() => this.measure(), LOOK_MS);
  }

  update(data, send) {
    const sameFilm = this.data && this.data.film === data.film;
    this.data = data;
    this.send = send;
    [this.image.width, this.image.height] = data.size; // room for the picture before it has loaded
    this.image.style.maxWidth = `${data.size[0]}px`;
    this.transport.hidden = !data.time;
    if (!data.time) {
      const old = this.loose;
      this.loose = toUrl(data.png);
      this.show({ url: this.loose, caption: data.caption });
      if (old) URL.revokeObjectURL(old);
      this.measure();
      return;
    }
    const { label, unit, min, max, step, value, why } = data.time;
    const frames = framesOf(data.film);
    if (!frames.has(value)) frames.set(value, { url: toUrl(data.png), caption: data.caption });
    Object.assign(this.range, { min, max, step });
    this.range.disabled = this.button.disabled = Boolean(why);
    this.transport.title = why ?? "";
    this.root.querySelector(".name").textContent = label;
    this.range.setAttribute("aria-label", unit ? `${label} (${unit})` : label);
    if (!sameFilm) this.stop();
    if (!this.held && !this.playing) this.goTo(value);
    this.tell(shared.status.get(data.film));
    this.measure();
  }

  show(frame, instant) {
    this.image.src = frame.url;
    this.image.alt = frame.caption;
    if (instant !== undefined) this.image.dataset.instant = instant;
    say("frame", { film: this.data.film, caption: frame.caption, moving: Boolean(this.playing || this.held) });
  }

  // Put the thumb at `value` and show the frame nearest to it.
  goTo(value) {
    const frames = framesOf(this.data.film);
    const instant = nearest(frames.keys(), value);
    this.range.value = value;
    const unit = this.data.time.unit;
    const one = value === 1 && unit.endsWith("s"); // "1 sample"
    this.output.textContent = unit ? `${value} ${one ? unit.slice(0, -1) : unit}` : `${value}`;
    this.range.setAttribute("aria-valuetext", this.output.textContent);
    if (instant !== null) this.show(frames.get(instant), instant);
  }

  scrub() {
    let value = Number(this.range.value);
    if (this.held) {
      // Snap to a frame where frames are close enough, so that nothing changes when the person lets go.
      const instant = nearest(framesOf(this.data.film).keys(), value);
      const spacing = (this.data.time.max - this.data.time.min) / Math.max(this.data.frames - 1, 1);
      if (instant !== null && Math.abs(instant - value) <= spacing) value = instant;
    }
    this.goTo(value);
  }

  release() {
    const wait = this.held ? 0 : 150; // keys are pressed in bursts
    this.held = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.report(), wait);
  }

  report() {
    this.send("released", { at: Number(this.range.value), turn: Date.now() });
  }

  play() {
    const status = shared.status.get(this.data.film);
    if (Number(this.range.value) >= this.data.time.max) this.goTo(this.data.time.min);
    this.playing = setInterval(() => this.advance(), PLAY_MS);
    this.dress();
    if (status) this.tell(status);
  }

  advance() {
    const now = Number(this.range.value);
    const later = [...framesOf(this.data.film).keys()].filter((instant) => instant > now).sort((a, b) => a - b);
    if (later.length) this.goTo(later[0]);
    else if (now >= this.data.time.max || !this.waiting) this.pause();
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    this.dress();
  }

  pause() {
    this.stop();
    this.report();
  }

  dress() {
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.button.dataset.state = this.playing ? "playing" : "paused";
  }

  // Show how far the film is.
  tell(status) {
    const mine = status && status.film === this.data.film;
    this.waiting = mine && !status.done && !status.stopped && !status.error;
    this.halt.hidden = !mine || status.done || Boolean(status.error);
    if (!mine || status.done) this.count.textContent = "";
    else if (status.error) this.count.textContent = `no film: ${status.error}`;
    else this.count.textContent = `film ${status.have}/${status.total}${status.stopped ? ", stopped" : ""}`;
    this.halt.textContent = mine && status.stopped ? "Go on" : "Stop";
    this.transport.dataset.film = mine ? (status.done ? "complete" : "partial") : "none";
  }

  measure() {
    clearTimeout(this.measuring);
    this.measuring = setTimeout(() => {
      const width = this.box.clientWidth;
      if (!width || !this.data) return;
      tellOnce(this, { narrow: width < NARROW_PX, dark: isDark(this.box) }, this.data);
    }, 60);
  }

  dispose() {
    this.stop();
    clearTimeout(this.timer);
    clearTimeout(this.measuring);
    clearInterval(this.looking);
    this.watcher.disconnect();
    shared.hub.removeEventListener("film", this.onFilm);
    if (this.loose) URL.revokeObjectURL(this.loose);
  }
}

class Caption {
  constructor(root) {
    this.text = root.querySelector("p");
    this.onFrame = ({ detail }) => {
      if (detail.film !== this.film) return;
      this.text.setAttribute("aria-live", detail.moving ? "off" : "polite");
      this.text.textContent = detail.caption;
    };
    shared.hub.addEventListener("frame", this.onFrame);
  }

  update(data) {
    this.film = data.film;
    this.text.textContent = data.caption;
  }

  dispose() {
    shared.hub.removeEventListener("frame", this.onFrame);
  }
}

class Screen {
  constructor(root) {
    this.box = root.querySelector(".screen");
    this.box.addEventListener("transitionend", () => this.measure());
    this.looking = setInterval(() => this.measure(), LOOK_MS);
  }

  update(data, send) {
    this.data = data;
    this.send = send;
    this.measure();
  }

  measure() {
    if (this.data) tellOnce(this, { dark: isDark(this.box) }, this.data);
  }

  dispose() {
    clearInterval(this.looking);
  }
}

class Feed {
  constructor() {
    this.onHalt = ({ detail }) => {
      if (detail.film !== this.data.film) return;
      this.stop = !this.stop;
      this.ask();
    };
    shared.hub.addEventListener("halt", this.onHalt);
  }

  update(data, send) {
    if (this.data?.film !== data.film) this.stop = data.stopped;
    this.data = data;
    this.send = send;
    const frames = framesOf(data.film);
    for (const { at, png, caption } of data.frames) {
      if (!frames.has(at)) frames.set(at, { url: toUrl(png), caption });
    }
    this.have = data.instants.filter((instant) => frames.has(instant));
    const done = this.have.length === data.instants.length;
    const status = {
      film: data.film,
      have: this.have.length,
      total: data.instants.length,
      done,
      stopped: data.stopped,
      error: data.error,
    };
    shared.status.set(data.film, status);
    say("film", status);
    clearTimeout(this.timer);
    const settled = data.error || (data.stopped && this.stop) || (done && data.told); // told: Python knows that the browser has all frames
    if (!settled) this.timer = setTimeout(() => this.ask(), data.frames.length ? 20 : 400);
  }

  ask() {
    clearTimeout(this.timer);
    this.send("have", { film: this.data.film, instants: this.have, stop: this.stop, turn: Date.now() });
    this.timer = setTimeout(() => this.ask(), 3000); // in case the answer is lost
  }

  dispose() {
    clearTimeout(this.timer);
    shared.hub.removeEventListener("halt", this.onHalt);
  }
}

const roles = { player: Player, caption: Caption, screen: Screen, feed: Feed };
const parts = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let part = parts.get(parentElement);
  if (!part) {
    part = new roles[data.role](parentElement);
    parts.set(parentElement, part);
  }
  part.update(data, setStateValue);
  return () => {
    part.dispose();
    parts.delete(parentElement);
  };
}
