// Everything of the page that is text: filters, details, advice, legend, and the table of versions.

const byId = (id) => document.getElementById(id);
const PAGE = 25;
let page = 0;

function element(name, text, parent, className) {
  const made = document.createElement(name);
  if (text !== null && text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return parent ? parent.appendChild(made) : made;
}

// -- one version in words --------------------------------------------------------------------------------------------

function shortly(place) {
  const entry = entries[place];
  const race = entry.over ? `, carried over ${listed(entry.over)}` : "";
  const base = entry.base === undefined ? "" : `, read version ${entry.base}`;
  return `Version ${entry.v}: ${operationOf(entry)} by ${writerOf(entry)}${base}${race}`;
}

function listed(versions) {
  const shown = versions.slice(0, 6).join(", ");
  return `${versions.length === 1 ? "version" : "versions"} ${shown}${versions.length > 6 ? ` and ${versions.length - 6} more` : ""}`;
}

function tipOf(place) {
  const entry = entries[place];
  const lines = [shortly(place), time(entry.t), rowsOf(entry), entry.reads && entry.reads !== "false" && `where ${entry.reads.slice(0, 160)}`];
  if (entry.checkpoint) lines.push("checkpoint");
  return lines.filter(Boolean).join("\n");
}

function rowsOf(entry) {
  if (!entry.rows) return "";
  const names = ["added", "removed", "marked as deleted", "moved"];
  return entry.rows
    .map((rows, at) => (rows === null ? `rows ${names[at]}: unknown` : rows ? `${count(rows)} ${rows === 1 ? "row" : "rows"} ${names[at]}` : ""))
    .filter(Boolean)
    .join(", ");
}

// -- details ---------------------------------------------------------------------------------------------------------

const LINE = 44; // so many signs of a name and a value have room side by side

function pairs(parent, title, values) {
  const known = values.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!known.length) return;
  const part = element("div", null, parent);
  element("h3", title, part);
  const list = element("dl", null, part);
  const widest = Math.max(...known.map(([name]) => name.length));
  for (const [name, value] of known) {
    const className = widest > 16 && value.length > Math.max(20, LINE - widest) ? "long" : "";
    element("dt", name, list, className);
    element("dd", value, list, className);
  }
}

// The version that a transaction read; the one that made the table read none.
const baseText = (entry) => (entry.base !== undefined ? String(entry.base) : String(entry.v) === "0" ? "none" : "unknown");

const yesNo = (value) => (value === undefined ? null : value ? "yes" : "no");

function showDetails(place) {
  const entry = entries[place];
  const body = byId("details-body");
  byId("details-title").textContent = `Version ${entry.v} · ${operationOf(entry)}`;
  body.replaceChildren();
  const columns = element("div", null, body, "columns");
  pairs(columns, "Who and when", [
    ["Time", time(entry.t)],
    ["Writer", said(entry.user)],
    ["Engine", said(entry.engine)],
    ["Transaction", entry.txn],
    ["Streams", (entry.streams ?? []).map(([id, version]) => `${id}, version ${version}`).join("\n")],
    ["Commit file", `${inUnits(entry.bytes)}${entry.checkpoint ? ", with a checkpoint" : ""}`],
  ]);
  pairs(columns, "Its place in the order", [
    ["Base", entry.base === undefined ? baseText(entry) : `version ${entry.base}`],
    ["Carried over", entry.over ? listed(entry.over) : entry.cut !== undefined || baseText(entry) === "none" ? "no other" : "unknown"],
    ["Ordered after", entry.cut === undefined ? null : entry.cut < 0 ? "none" : `version ${entry.cut}`],
    ["Isolation", said(entry.isolation)],
    ["Blind append", yesNo(entry.blind)],
    ["Condition", entry.reads === "false" ? "none: it reads no row" : entry.reads],
    ["Row-local", yesNo(entry.rowLocal)],
    ["Refused", refusals.filter((each) => each.place === place).map((each) => `${each.operation}: ${each.condition}`).join("\n")],
  ]);
  const [filesAdded, filesRemoved, bytesAdded, bytesRemoved] = entry.sizes ?? [0, 0, 0, 0];
  pairs(columns, "What it did", [
    ["Rows", rowsOf(entry) || "none"],
    ["Files added", filesAdded ? `${count(filesAdded)} (${exactly(bytesAdded)})` : "0"],
    ["Files removed", filesRemoved ? `${count(filesRemoved)} (${exactly(bytesRemoved)})` : "0"],
    ["Change data", yesNo(entry.feed)],
  ]);
  if (entry.after) {
    const [files, bytes, rows, deleted, small] = entry.after;
    pairs(columns, "The table after it", [
      ["Live rows", count(rows)],
      ["Deleted rows", count(deleted)],
      ["Live files", count(files)],
      ["Small files", count(small)],
      ["Size", exactly(bytes)],
    ]);
  }
  pairs(columns, "Parameters", Object.entries(entry.params ?? {}));
  pairs(columns, "Metrics", Object.entries(entry.metrics ?? {}));
  pairs(columns, "Also said", Object.entries(entry.more ?? {}));
  showFiles(body, entry, filesAdded + filesRemoved);
  byId("details").hidden = false;
}

function showFiles(body, entry, all) {
  if (!entry.files) return;
  element("h3", all > entry.files.length ? `Files (${entry.files.length} of ${count(all)})` : "Files", body);
  const list = element("ul", null, body);
  for (const [what, path, bytes, rows] of entry.files) {
    const item = element("li", `${what} `, list);
    element("code", path, item);
    const facts = [bytes !== null ? inUnits(bytes) : "", rows !== null ? `${count(rows)} ${rows === 1 ? "row" : "rows"}` : ""].filter(Boolean);
    if (facts.length) item.append(` ${facts.join(", ")}`);
  }
}

// -- advice, legend, filters -------------------------------------------------------------------------------------------

function showAdvice() {
  for (const each of data.advice) {
    const item = element("li", null, byId("advice"), each.weight);
    element("h3", each.weight === "act" ? `${each.topic} · worth doing` : each.topic, item);
    element("div", each.sentence, item);
    if (each.command) showCommand(element("div", null, item), each.command);
  }
}

function showCommand(parent, command) {
  const code = element("code", command, parent);
  const button = element("button", "Copy", parent);
  button.type = "button";
  button.setAttribute("aria-label", `Copy ${command}`);
  button.addEventListener("click", () => copy(code));
}

// Copies a text, or leaves it selected where a browser lets no page copy, as in a notebook's frame.
function copy(code) {
  getSelection().selectAllChildren(code);
  const done = document.execCommand("copy");
  byId("live").textContent = done ? `Copied: ${code.textContent}` : "Selected; press Ctrl and C to copy";
}

function showLegend() {
  const there = new Set(entries.map((entry) => entry.kind));
  const items = Object.keys(kinds).filter((kind) => there.has(kind)).map((kind) => [kinds[kind].label, kind]);
  if (entries.some((entry) => entry.rows)) items.push(["Bar: number of rows (logarithmic)", "bar"]);
  if (entries.some(isRace)) items.push(["Raced with others", "arc"]);
  if (entries.some((entry) => entry.streams)) items.push(["Of a stream", "stream"]);
  if (entries.some((entry) => entry.checkpoint)) items.push(["Checkpoint", "checkpoint"]);
  if (refusals.length) items.push(["Refused", "refused"]);
  byId("legend").replaceChildren();
  for (const [label, what] of items) {
    const item = element("li", null, byId("legend"));
    const canvas = element("canvas", null, item);
    canvas.setAttribute("aria-hidden", "true");
    element("span", label, item);
    drawSign(canvas, what);
  }
}

function drawSign(canvas, what) {
  const { context } = pen(canvas);
  context.fillStyle = context.strokeStyle = colors[what] ?? colors.race;
  context.lineWidth = 2;
  if (what === "arc") {
    context.beginPath();
    context.moveTo(2, 15);
    context.bezierCurveTo(5, 0, 17, 0, 20, 15);
    context.stroke();
  } else if (what === "bar") {
    context.fillStyle = colors.append;
    context.fillRect(7, 2, 8, 14);
  } else if (what === "refused") cross(context, 11, 9, 4);
  else if (what === "stream") ring(context, 11, 9, 6, colors.series, [2, 2]);
  else if (what === "checkpoint") {
    context.fillStyle = colors.ink;
    shape(context, "up", 11, 9, 5);
  } else shape(context, kinds[what].shape, 11, 9, 5);
}

function fillSelect(id, values, all) {
  const select = byId(id);
  element("option", all, select).value = "";
  for (const value of [...new Set(values)].sort()) element("option", value.length > 60 ? `${value.slice(0, 59)}…` : value, select).value = value;
}

function showHead() {
  byId("name").textContent = data.name;
  byId("name").title = data.table;
  const [first, last] = [entries[0], entries[entries.length - 1]];
  const older = data.older ? `; ${count(data.older)} older ones are left out` : "";
  byId("span").textContent = entries.length
    ? `${count(entries.length)} ${entries.length === 1 ? "version" : "versions"}, ${first.v} to ${last.v}, from ${time(first.t)} to ${time(last.t)}${older}`
    : `Version ${data.newest}; the log keeps no commit file that could be shown`;
}

// -- the table -------------------------------------------------------------------------------------------------------

function showTable(open) {
  const pages = Math.max(1, Math.ceil(chosen.length / PAGE));
  page = Math.min(Math.max(page, 0), pages - 1);
  const rows = byId("rows");
  rows.replaceChildren();
  const end = chosen.length - page * PAGE;
  for (const place of chosen.slice(Math.max(0, end - PAGE), end).reverse()) tableRow(rows, place, open);
  byId("page").textContent = `page ${count(page + 1)} of ${count(pages)}`;
  byId("newer-page").disabled = page === 0;
  byId("older-page").disabled = page === pages - 1;
  byId("count").textContent =
    chosen.length === entries.length ? `all ${count(entries.length)} versions` : `${count(chosen.length)} of ${count(entries.length)} versions`;
}

function tableRow(rows, place, open) {
  const entry = entries[place];
  const row = element("tr", null, rows);
  const button = element("button", String(entry.v), element("td", null, row));
  button.type = "button";
  button.setAttribute("aria-label", `Version ${entry.v}, show details`);
  button.addEventListener("click", () => open(place));
  element("td", time(entry.t), row);
  element("td", operationOf(entry), row, "text");
  element("td", writerOf(entry), row, "text");
  element("td", baseText(entry), row);
  element("td", rowsOf(entry) || "–", row, "text rows");
  const [added, removed] = entry.sizes ?? [0, 0];
  const files = [added && `+${count(added)}`, removed && `−${count(removed)}`].filter(Boolean);
  element("td", files.join(" ") || "–", row);
}
