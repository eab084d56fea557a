// The river: a canvas of the versions in view. Near by each transaction is an arc from its base to its version; from afar
// versions are gathered into columns, so that a frame's work depends on its width and not on the number of versions.

const NEAR = 4;
const colors = {};

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of [...Object.keys(kinds), "bg", "panel", "ink", "muted", "line", "river", "race", "series", "focus", "wash"])
    colors[name] = style.getPropertyValue(`--${name}`).trim();
}

// A canvas's context with one unit to a pixel of the page, cleared.
function pen(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  return { context, width, height };
}

function shape(context, name, x, y, size) {
  context.beginPath();
  if (name === "square") context.rect(x - size, y - size, 2 * size, 2 * size);
  else if (name === "diamond") polygon(context, [[x, y - size * 1.5], [x + size * 1.5, y], [x, y + size * 1.5], [x - size * 1.5, y]]);
  else if (name === "back") polygon(context, [[x + size, y - size * 1.2], [x - size * 1.3, y], [x + size, y + size * 1.2]]);
  else if (name === "up") polygon(context, [[x, y - size], [x + size, y + size * 0.8], [x - size, y + size * 0.8]]);
  else if (name === "plus") {
    context.rect(x - size * 1.2, y - size / 2.6, size * 2.4, size / 1.3);
    context.rect(x - size / 2.6, y - size * 1.2, size / 1.3, size * 2.4);
  } else if (name === "dash") context.rect(x - size, y - size / 3, 2 * size, size / 1.5);
  else context.arc(x, y, size, 0, 2 * Math.PI);
  if (name === "ring") {
    context.save();
    context.fillStyle = colors.panel;
    context.fill();
    context.lineWidth = 2;
    context.stroke();
    context.restore();
  } else context.fill();
}

function polygon(context, points) {
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

function cross(context, x, y, size) {
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
}

const riverCanvas = document.querySelector("#river canvas");
const geometry = { width: 0, step: 1, stem: 0 };
const xOf = (place) => (place - view.low + 0.5) * geometry.step;
const placeAt = (x) => Math.floor(x / geometry.step + view.low);

function drawRiver(selected, hovered) {
  const { context, width, height } = pen(riverCanvas);
  Object.assign(geometry, { width, step: width / (view.high - view.low), stem: Math.round(height * 0.56), height });
  const first = Math.max(0, Math.floor(view.low));
  const last = Math.min(entries.length - 1, Math.ceil(view.high));
  stem(context, width);
  if (geometry.step >= NEAR) drawNear(context, first, last, selected, hovered);
  else drawColumns(context, selected);
  axis(context, first, last);
}

function stem(context, width) {
  const end = Math.min(width, xOf(entries.length - 1) + 10);
  const start = view.low > 0 || (entries.length && entries[0].v > 0) ? 0 : Math.max(0, xOf(0) - 10);
  context.strokeStyle = colors.river;
  context.lineCap = "round";
  context.lineWidth = 7;
  context.beginPath();
  context.moveTo(start, geometry.stem);
  context.lineTo(Math.max(end, start), geometry.stem);
  context.stroke();
}

function arc(context, from, to, height) {
  const { stem: y } = geometry;
  const way = to - from;
  context.beginPath();
  context.moveTo(from, y);
  context.bezierCurveTo(from + way * 0.22, y - height * 1.33, to - way * 0.22, y - height * 1.33, to, y);
  context.stroke();
}

const furthest = Math.max(4, Math.min(longestWay, 12)) - 1;

function arcHeight(places) {
  const share = Math.sqrt(Math.min(1, Math.max(0, places - 1) / furthest));
  return Math.min(11 + (geometry.stem - 34) * share, 14 + places * geometry.step * 1.5);
}

function drawNear(context, first, last, selected, hovered) {
  const shown = hovered ?? selected;
  const winners = new Set(shown === null ? [] : (entries[shown].over ?? []).map((version) => placeOf.get(version)));
  const size = Math.min(6, Math.max(2, geometry.step / 4));
  for (let place = first; place <= Math.min(entries.length - 1, last + longestWay); place++) drawArc(context, place, shown);
  for (const refused of refusals) if (refused.place >= first - 1 && refused.place <= last + 1) drawRefused(context, refused);
  for (let place = first; place <= last; place++) drawVersion(context, place, size, winners.has(place), place === shown);
  if (selected !== null && selected >= first && selected <= last) mark(context, selected, size);
}

function drawArc(context, place, shown) {
  const entry = entries[place];
  const base = baseOf(entry, place);
  if (base === null) return;
  const isShown = place === shown;
  if (place - base < 2 && geometry.step < 14 && !isShown) return;
  context.globalAlpha = isChosen[place] ? 1 : 0.15;
  context.strokeStyle = isRace(entry) ? colors.race : colors[entry.kind];
  context.lineWidth = isShown ? 3 : isRace(entry) ? 1.75 : 1.25;
  arc(context, base < 0 ? Math.min(-10, xOf(-1)) : xOf(base), xOf(place), arcHeight(place - base));
  context.globalAlpha = 1;
}

function drawRefused(context, refused) {
  const base = placeOf.get(refused.base) ?? -1;
  const end = xOf(refused.place) - geometry.step * 0.3;
  const height = arcHeight(refused.place - base + 1) * 0.55;
  context.strokeStyle = colors.race;
  context.lineWidth = 1.75;
  context.setLineDash([4, 4]);
  context.beginPath();
  context.moveTo(xOf(base), geometry.stem);
  context.quadraticCurveTo((xOf(base) + end) / 2, geometry.stem + height * 1.4, end, geometry.stem + height * 0.55);
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 2.25;
  cross(context, end, geometry.stem + height * 0.55, 4);
}

function drawVersion(context, place, size, isWinner, isShown) {
  const entry = entries[place];
  const x = xOf(place);
  const y = geometry.stem;
  context.globalAlpha = isChosen[place] ? 1 : 0.15;
  context.fillStyle = context.strokeStyle = colors[entry.kind];
  bar(context, entry, x);
  shape(context, kinds[entry.kind].shape, x, y, isShown ? size + 1.5 : size);
  if (entry.streams) ring(context, x, y, size + 3.5, colors.series, [2, 2]);
  if (isWinner) ring(context, x, y, size + 4, colors.race, []);
  if (entry.checkpoint) {
    context.fillStyle = colors.ink;
    shape(context, "up", x, geometry.height - 40, Math.min(5, Math.max(3, geometry.step / 3)));
  }
  context.globalAlpha = 1;
}

function ring(context, x, y, size, color, dashes) {
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.setLineDash(dashes);
  context.beginPath();
  context.arc(x, y, size, 0, 2 * Math.PI);
  context.stroke();
  context.setLineDash([]);
}

// How many rows a commit added, took away, marked or moved, on a logarithmic scale below the river.
function bar(context, entry, x) {
  const rows = entry.rows ? Math.max(...entry.rows.map((each) => Number(each ?? 0))) : 0;
  if (!rows) return;
  const most = geometry.height - 50 - geometry.stem - 14;
  const height = Math.min(most, (Math.log10(rows + 1) / 7) * most);
  const width = Math.max(1.5, Math.min(10, geometry.step * 0.5));
  context.fillRect(x - width / 2, geometry.stem + 13, width, height);
}

function mark(context, place, size) {
  context.strokeStyle = colors.focus;
  context.lineWidth = 2.5;
  context.strokeRect(xOf(place) - size - 6, geometry.stem - size - 6, 2 * size + 12, 2 * size + 12);
}

// From afar: for each column of two pixels its races above the river, and its versions by kind below, rare kinds first.
const WIDE = 2;
const rareFirst = Object.keys(kinds).reverse();

function drawColumns(context, selected) {
  const columns = Array.from({ length: Math.ceil(geometry.width / WIDE) }, (_, column) => gathered(column));
  const most = Math.max(1, ...columns.map((each) => each.versions));
  const mostRaces = Math.max(1, ...columns.map((each) => each.races));
  columns.forEach((each, column) => drawColumn(context, column * WIDE, each, most, mostRaces));
  context.strokeStyle = colors.race;
  context.lineWidth = 2;
  for (const refused of refusals) cross(context, xOf(refused.place), 8, 4);
  if (selected !== null) mark(context, selected, 4);
}

function gathered(column) {
  const from = Math.max(0, Math.ceil((column * WIDE) / geometry.step + view.low - 0.5));
  const to = Math.min(entries.length, Math.ceil(((column + 1) * WIDE) / geometry.step + view.low - 0.5));
  const found = { versions: 0, races: 0, checkpoint: false, kinds: Object.create(null) };
  for (let place = from; place < to; place++) {
    const entry = entries[place];
    found.checkpoint ||= entry.checkpoint === true;
    if (!isChosen[place]) continue;
    found.versions++;
    found.kinds[entry.kind] = (found.kinds[entry.kind] ?? 0) + 1;
    if (isRace(entry)) found.races++;
  }
  return found;
}

function drawColumn(context, x, column, most, mostRaces) {
  const below = geometry.height - 50 - geometry.stem - 16;
  let y = geometry.stem + 9;
  for (const kind of rareFirst) {
    if (!column.kinds[kind]) continue;
    const height = Math.max(4, (column.kinds[kind] / most) * below);
    context.fillStyle = colors[kind];
    context.fillRect(x, y, WIDE, height);
    y += height;
  }
  if (column.races) {
    const height = Math.max(3, (column.races / mostRaces) * (geometry.stem - 36));
    context.fillStyle = colors.race;
    context.fillRect(x, geometry.stem - 6 - height, WIDE, height);
  }
  if (column.checkpoint) {
    context.fillStyle = colors.ink;
    context.fillRect(x, geometry.height - 42, 1, 5);
  }
}

function axis(context, first, last) {
  const y = geometry.height - 20;
  context.fillStyle = colors.muted;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const every = niceStep(64 / geometry.step);
  let free = -Infinity;
  let freeOfTime = -Infinity;
  for (let place = first; place <= last; place++) {
    if (Number(entries[place].v) % every) continue;
    const text = String(entries[place].v);
    const half = context.measureText(text).width / 2;
    const x = Math.min(Math.max(xOf(place), half), geometry.width - half);
    if (x - half < free) continue;
    context.fillText(text, x, y);
    free = x + half + 8;
    freeOfTime = timeLabel(context, place, freeOfTime);
  }
}

// A time below a version's number, where there is room; gives where the next one may begin.
function timeLabel(context, place, free) {
  const text = timeOf(place);
  if (text === timeLabel.last && free > -Infinity) return free;
  const half = context.measureText(text).width / 2;
  const x = Math.min(Math.max(xOf(place), half), geometry.width - half);
  if (x - half < free) return free;
  context.fillText(text, x, geometry.height - 4);
  timeLabel.last = text;
  return x + half + 16;
}

// With seconds and without the day where little time is in view.
function timeOf(place) {
  const first = entries[Math.max(0, Math.floor(view.low))];
  const last = entries[Math.min(entries.length - 1, Math.ceil(view.high))];
  return last.t - first.t < 7_200_000 ? time(entries[place].t).slice(11, 19) : time(entries[place].t, false);
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least) ?? 10 * power;
}

// The whole timeline in one thin line, with what is in view framed.
function drawOverview() {
  const { context, width, height } = pen(document.getElementById("overview"));
  const whole = Math.max(entries.length, LEAST_SHOWN);
  context.fillStyle = colors.wash;
  context.fillRect(0, height / 2 - 3, width, 6);
  for (let x = 0; x < width; x += 2) {
    const from = Math.floor((x / width) * whole);
    const to = Math.min(entries.length, Math.max(from + 1, Math.floor(((x + 2) / width) * whole)));
    let races = 0;
    let shown = 0;
    for (let place = from; place < to; place++) if (isChosen[place]) [shown, races] = [shown + 1, races + isRace(entries[place])];
    if (!shown) continue;
    context.fillStyle = races ? colors.race : colors.river;
    const tall = 4 + ((height - 10) * races) / Math.max(1, to - from);
    context.fillRect(x, (height - tall) / 2, 2, tall);
  }
  const left = (view.low / whole) * width;
  const wide = Math.max(4, ((view.high - view.low) / whole) * width);
  context.strokeStyle = colors.ink;
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, 1, Math.min(wide, width - left) - 1.5, height - 2);
}
