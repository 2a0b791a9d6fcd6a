// A text in colour where a click on a token, or Enter, sets a control.

const parts = new WeakMap();
const HINT = "Click a token, or press Enter on it, to ask from there; point at it, or reach it with Tab, for its number.";

class Tokens {
  constructor(root) {
    this.host = root.querySelector(".tokens");
    this.host.addEventListener("click", (event) => this.choose(event));
    this.host.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      if (this.choose(event)) event.preventDefault();
    });
  }

  update(data, send) {
    this.send = send;
    if (data.html === this.html) return;
    this.html = data.html;
    const scrolled = this.host.querySelector(".idviz-text")?.scrollTop ?? 0;
    const open = this.host.querySelector("details")?.open ?? false;
    const focused = this.host.getRootNode().activeElement?.closest?.(".idviz-text");
    this.host.innerHTML = data.html; // escaped by idviz.explore.tokens
    this.host.querySelector(".idviz-hint").textContent = HINT;
    this.host.querySelector("details").open = open;
    const box = this.host.querySelector(".idviz-text");
    const query = box.querySelector(".q");
    box.scrollTop = scrolled;
    if (!query) return;
    // Scroll the query into the box, without scrolling the page.
    const [inside, outside] = [query.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inside.top < outside.top) box.scrollTop += inside.top - outside.top - 4;
    if (inside.bottom > outside.bottom) box.scrollTop += inside.bottom - outside.bottom + 4;
    if (focused) query.focus({ preventScroll: true });
  }

  choose(event) {
    const token = event.target.closest?.(".idviz-text > span");
    if (!token) return false;
    const all = [...token.parentElement.querySelectorAll(":scope > span")];
    this.send("chosen", { at: all.indexOf(token) + 1, turn: Date.now() });
    return true;
  }
}

export default function ({ data, parentElement, setStateValue }) {
  if (!parts.has(parentElement)) parts.set(parentElement, new Tokens(parentElement));
  parts.get(parentElement).update(data, setStateValue);
  return () => parts.delete(parentElement);
}
