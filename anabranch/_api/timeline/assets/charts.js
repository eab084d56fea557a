// Small charts over the versions in view: one point for each two pixels, so that their work is bounded too.

const AFTER = { files: 0, bytes: 1, rows: 2, deleted: 3, small: 4 };

// A figure to draw: a number, if need be a rounded one.
function after(entry, name) {
  const found = entry.after?.[AFTER[name]] ?? null;
  return found === null ? null : Number(found);
}

function deletedShare(entry) {
  const [rows, deleted] = [after(entry, "rows"), after(entry, "deleted")];
  return rows === null || deleted === null ? null : deleted / Math.max(1, rows + deleted);
}

const percent = (share) => `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)} %`;

// How many commits the hour has that ends with each version: counted, so that one second's work is no rate of an hour.
const withinHour = entries.map(() => 1);
for (let place = 0, first = 0; place < entries.length; place++) {
  while (first < place && entries[place].t - entries[first].t >= 3_600_000) first++;
  withinHour[place] = place - first + 1;
}

const charts = [
  { title: "Table size", value: (entry) => after(entry, "bytes"), show: inUnits },
  { title: "Live files", value: (entry) => after(entry, "files"), show: number.format },
  { title: "Deleted rows in files", value: deletedShare, show: percent, least: 0.01 },
  { title: `Small files (below ${inUnits(data.smallBelow)})`, value: (entry) => after(entry, "small"), show: number.format },
  { title: "Commits within the hour before", pooled: (from, to) => withinHour[to - 1], show: number.format, bars: true },
  { title: "Commits that raced with others", pooled: raceShare, show: percent, bars: true, least: 0.01, color: "race" },
];

// The share of commits between whose base and version others committed, of those that state their base; refused ones
// count as well.
function raceShare(from, to) {
  const refused = refusals.filter((each) => each.place >= from && each.place < to).length;
  let [races, known] = [refused, refused];
  for (let place = from; place < to; place++) {
    const entry = entries[place];
    if (entry.base === undefined && !isRace(entry)) continue;
    known++;
    if (isRace(entry)) races++;
  }
  return known ? races / known : null;
}

function makeCharts() {
  const parent = document.getElementById("charts");
  for (const chart of charts) {
    const figure = parent.appendChild(document.createElement("figure"));
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.appendChild(document.createElement("b")).textContent = chart.title;
    chart.text = caption.appendChild(document.createElement("span"));
    chart.text.className = "muted";
    const plot = figure.appendChild(document.createElement("div"));
    plot.className = "chart";
    chart.canvas = plot.appendChild(document.createElement("canvas"));
    chart.canvas.setAttribute("aria-hidden", "true");
  }
}

// Points as [x, value]; a value is null where it is unknown.
function pointsOf(chart, width) {
  const first = Math.max(0, Math.floor(view.low));
  const last = Math.min(entries.length, Math.ceil(view.high));
  const wide = chart.bars ? 12 : 2;
  const columns = Math.max(1, Math.min(last - first, Math.floor(width / wide)));
  const points = [];
  for (let column = 0; column < columns; column++) {
    const from = first + Math.floor((column * (last - first)) / columns);
    const to = Math.max(from + 1, first + Math.floor(((column + 1) * (last - first)) / columns));
    if (from >= last) break;
    const value = chart.pooled ? chart.pooled(from, to) : chart.value(entries[to - 1]);
    points.push([(column + 0.5) * (width / columns), value, width / columns]);
  }
  return points;
}

function drawChart(chart, selected) {
  const { context, width, height } = pen(chart.canvas);
  const points = pointsOf(chart, width);
  const known = points.filter(([, value]) => value !== null);
  const most = Math.max(chart.least ?? 1, ...known.map(([, value]) => value));
  const y = (value) => height - 2 - (value / most) * (height - 22);
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  for (const value of [0, most]) {
    context.beginPath();
    context.moveTo(0, y(value));
    context.lineTo(width, y(value));
    context.stroke();
  }
  context.fillStyle = context.strokeStyle = colors[chart.color ?? "series"];
  if (chart.bars) for (const [x, value, wide] of known) context.fillRect(x - wide * 0.36, y(value), Math.max(1, wide * 0.72), height - 2 - y(value));
  else drawLine(context, points, y, height);
  context.fillStyle = colors.muted;
  context.textBaseline = "bottom";
  if (known.length) context.fillText(chart.show(most), 2, y(most) - 2);
  else context.fillText("The log does not say.", 2, height / 2);
  drawCursor(context, chart, selected, height);
  say(chart, known, selected);
}

function drawLine(context, points, y, height) {
  context.lineWidth = 2;
  context.lineJoin = "round";
  let run = [];
  for (const point of [...points, [0, null]]) {
    if (point[1] !== null) {
      run.push(point);
      continue;
    }
    if (run.length) area(context, run, y, height);
    run = [];
  }
}

function area(context, run, y, height) {
  const [x, value, wide] = run[run.length - 1];
  const end = x + wide / 2;
  const trace = () => {
    context.beginPath();
    context.moveTo(run[0][0] - run[0][2] / 2, y(run[0][1]));
    for (const [x, value] of run) context.lineTo(x, y(value));
    context.lineTo(end, y(value));
  };
  trace();
  context.stroke();
  context.lineTo(end, height - 2);
  context.lineTo(run[0][0] - run[0][2] / 2, height - 2);
  context.globalAlpha = 0.14;
  context.fill();
  context.globalAlpha = 1;
}

function drawCursor(context, chart, selected, height) {
  if (selected === null || selected < view.low || selected > view.high) return;
  const x = ((selected - view.low + 0.5) / (view.high - view.low)) * chart.canvas.clientWidth;
  context.strokeStyle = colors.focus;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, 14);
  context.lineTo(x, height);
  context.stroke();
}

function say(chart, known, selected) {
  let text = "";
  if (selected !== null && chart.value) {
    const value = chart.value(entries[selected]);
    text = `version ${entries[selected].v}: ${value === null ? "unknown" : chart.show(value)}`;
  } else if (known.length && chart.value) text = `${chart.show(known[0][1])} → ${chart.show(known[known.length - 1][1])}`;
  else if (known.length) {
    const values = known.map(([, value]) => value);
    text = `${chart.show(Math.min(...values))} to ${chart.show(Math.max(...values))}`;
  }
  if (chart.text.textContent !== text) chart.text.textContent = text;
}
