// What the reader does: keys, pointer, buttons and filters, each of which changes the state and asks for one frame.

const river = byId("river");
const tip = byId("tip");
const state = { selected: null, hovered: null, opener: null, drag: null, isDue: false, took: 0 };

function redraw() {
  if (state.isDue) return;
  state.isDue = true;
  requestAnimationFrame(() => {
    const began = performance.now();
    state.isDue = false;
    drawRiver(state.selected, state.hovered);
    drawOverview();
    for (const chart of charts) drawChart(chart, state.selected);
    state.took = performance.now() - began;
  });
}

function select(place) {
  if (place === null) return;
  state.selected = place;
  bringIntoView(place);
  river.setAttribute("aria-valuenow", entries[place].v);
  river.setAttribute("aria-valuetext", shortly(place));
  if (!byId("details").hidden) showDetails(place);
  showTip(place);
  redraw();
}

function open(place) {
  if (byId("details").hidden) state.opener = document.activeElement;
  select(place);
  showDetails(place);
  hideTip();
  byId("live").textContent = `${shortly(place)}. ${rowsOf(entries[place])}`;
  byId("details").scrollIntoView({ block: "nearest" });
}

function close() {
  if (!byId("details").hidden) {
    byId("details").hidden = true;
    (state.opener?.isConnected && state.opener !== document.body ? state.opener : river).focus();
  }
  hideTip();
}

// Arcs lie to the left of their version and above: so beside it on the right, or below where there is no room.
function showTip(place) {
  tip.textContent = tipOf(place);
  tip.hidden = false;
  const room = river.clientWidth - tip.offsetWidth;
  const x = (place - view.low + 0.5) * (river.clientWidth / (view.high - view.low));
  const isBeside = x + 14 <= room;
  tip.style.left = `${isBeside ? x + 14 : Math.max(0, Math.min(room, x - tip.offsetWidth / 2))}px`;
  tip.style.top = isBeside ? "6px" : `${Math.round(river.clientHeight * 0.56) + 14}px`;
}

function hideTip() {
  tip.hidden = true;
}

// The version below a pointer; from afar the chosen one that is nearest.
function placeUnder(event) {
  const place = placeAt(event.clientX - river.getBoundingClientRect().left);
  if (place < 0 || place >= entries.length) return null;
  if (isChosen[place]) return place;
  const reach = Math.ceil(4 / geometry.step);
  for (let away = 1; away <= reach; away++) for (const other of [place - away, place + away]) if (isChosen[other]) return other;
  return null;
}

const KEYS = {
  ArrowLeft: () => select(nextChosen(state.selected, -1)),
  ArrowRight: () => select(nextChosen(state.selected, 1)),
  ArrowUp: () => select(nextChosen(state.selected, 1)),
  ArrowDown: () => select(nextChosen(state.selected, -1)),
  PageUp: () => leap(-1),
  PageDown: () => leap(1),
  Home: () => select(chosen[0] ?? null),
  End: () => select(chosen[chosen.length - 1] ?? null),
  Enter: () => state.selected !== null && open(state.selected),
  " ": () => state.selected !== null && open(state.selected),
  "+": () => zoomed(1 / 1.5),
  "=": () => zoomed(1 / 1.5),
  "-": () => zoomed(1.5),
};

function leap(direction) {
  let place = state.selected;
  for (let step = 0; step < Math.max(1, (view.high - view.low) / 4); step++) place = nextChosen(place, direction);
  select(place);
}

function zoomed(factor, at) {
  zoom(factor, at ?? (state.selected === null ? undefined : state.selected + 0.5));
  hideTip();
  redraw();
}

river.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener("keydown", (event) => event.key === "Escape" && close());

river.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  state.drag = { x: event.clientX, low: view.low, moved: false };
  river.setPointerCapture(event.pointerId);
});
river.addEventListener("pointermove", (event) => {
  if (state.drag) {
    const way = event.clientX - state.drag.x;
    state.drag.moved ||= Math.abs(way) > 4;
    if (!state.drag.moved) return;
    river.classList.add("drag");
    setView(state.drag.low - way / geometry.step, state.drag.low - way / geometry.step + (view.high - view.low));
    state.hovered = null;
    hideTip();
  } else {
    state.hovered = placeUnder(event);
    if (state.hovered === null) hideTip();
    else showTip(state.hovered);
  }
  redraw();
});
river.addEventListener("pointerup", (event) => {
  const place = state.drag && !state.drag.moved ? placeUnder(event) : null;
  endDrag();
  if (place !== null) open(place);
});
river.addEventListener("pointercancel", endDrag);
river.addEventListener("pointerleave", () => {
  state.hovered = null;
  hideTip();
  redraw();
});
river.addEventListener(
  "wheel",
  (event) => {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!isSideways && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (isSideways) pan(event.deltaX / geometry.step);
    else zoom(Math.exp(Math.min(Math.max(event.deltaY, -60), 60) / 150), view.low + (event.clientX - river.getBoundingClientRect().left) / geometry.step);
    hideTip();
    redraw();
  },
  { passive: false },
);

function endDrag() {
  state.drag = null;
  river.classList.remove("drag");
}

function toOverview(event) {
  if (!(event.buttons & 1)) return;
  const box = event.currentTarget.getBoundingClientRect();
  const at = ((event.clientX - box.left) / box.width) * Math.max(entries.length, LEAST_SHOWN);
  const half = (view.high - view.low) / 2;
  setView(at - half, at + half);
  redraw();
}
byId("overview").addEventListener("pointerdown", toOverview);
byId("overview").addEventListener("pointermove", toOverview);

for (const [id, act] of Object.entries({
  in: () => zoomed(1 / 2),
  out: () => zoomed(2),
  earlier: () => (pan(-(view.high - view.low) / 2), redraw()),
  later: () => (pan((view.high - view.low) / 2), redraw()),
  all: () => (setView(0, entries.length), redraw()),
  close,
  clear: () => (byId("filters").reset(), filtered()),
  "newer-page": () => (page--, showTable(open)),
  "older-page": () => (page++, showTable(open)),
  theme: () => setTheme(isDark() ? "light" : "dark"),
}))
  byId(id).addEventListener("click", act);

const moment = (id) => {
  const found = Date.parse(`${byId(id).value}Z`);
  return Number.isNaN(found) ? null : found;
};

function filtered() {
  filter.writer = byId("writer").value;
  filter.operation = byId("operation").value;
  filter.from = moment("from");
  filter.to = moment("to");
  filter.races = byId("races").checked;
  page = 0;
  applyFilter();
  showTable(open);
  redraw();
}
byId("filters").addEventListener("input", filtered);
byId("filters").addEventListener("submit", (event) => event.preventDefault());

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  readColors();
  showLegend();
  redraw();
}
prefersDark.addEventListener("change", () => setTheme(null));
new ResizeObserver(redraw).observe(river);

showHead();
showAdvice();
makeCharts();
fillSelect("writer", entries.map(writerOf), "all");
fillSelect("operation", entries.map(operationOf), "all");
river.setAttribute("aria-valuemin", entries.length ? entries[0].v : 0);
river.setAttribute("aria-valuemax", data.newest);
river.setAttribute("aria-valuenow", data.newest);
river.setAttribute("aria-valuetext", `${count(entries.length)} versions; press an arrow key`);
filtered();
setTheme(null);
window.timelinePage = { view, state };
