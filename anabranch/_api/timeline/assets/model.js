"use strict";
// The data, the filter, and which part of the versions is in view. Nothing here draws.

const data = JSON.parse(document.getElementById("data").textContent);
const entries = data.entries;

// A figure that a number of JavaScript would round comes as the text of its digits.
const figure = (value) => (typeof value === "string" ? BigInt(value) : value);
const figuresOf = (each, ...names) => names.forEach((name) => each[name] !== undefined && (each[name] = figure(each[name])));

data.newest = figure(data.newest);
data.refusals.forEach((each) => figuresOf(each, "version", "base"));
for (const entry of entries) {
  figuresOf(entry, "v", "base", "cut");
  for (const name of ["over", "rows", "sizes", "after"]) entry[name] = entry[name]?.map(figure);
  entry.streams = entry.streams?.map(([id, version]) => [id, figure(version)]);
  entry.files = entry.files?.map(([what, path, ...figures]) => [what, path, ...figures.map(figure)]);
  entry.isRace = entry.over !== undefined || (entry.base !== undefined && BigInt(entry.v) - BigInt(entry.base) > 1n);
}

const placeOf = new Map(entries.map((entry, place) => [entry.v, place]));
const refusals = data.refusals
  .map((each) => ({ ...each, place: placeOf.get(each.version) }))
  .filter((each) => each.place !== undefined);
const LEAST_SHOWN = 6;

const kinds = {
  append: { label: "Adds rows", shape: "circle" },
  change: { label: "Changes or deletes rows", shape: "square" },
  move: { label: "Moves rows (OPTIMIZE)", shape: "diamond" },
  restore: { label: "Restores", shape: "back" },
  metadata: { label: "Changes metadata", shape: "plus" },
  vacuum: { label: "VACUUM", shape: "ring" },
  empty: { label: "No file", shape: "dash" },
};

const said = (number) => (number === undefined ? null : data.texts[number].trim() || null);
const operationOf = (entry) => said(entry.op) ?? "unknown operation";
const writerOf = (entry) => said(entry.user) ?? said(entry.engine) ?? "unknown writer";

// The longest way back from a version to its base, so that arcs that begin out of view are drawn too.
const longestWay = entries.reduce((most, entry, place) => Math.max(most, Math.min(place - baseOf(entry, place), 2000)), 1);

// Where a transaction left the river, as a place; before the first one where its base is not kept; null where unknown.
function baseOf(entry, place) {
  if (entry.base === undefined) return null;
  const found = placeOf.get(entry.base);
  if (found !== undefined) return Math.min(found, place);
  return entry.base < entries[0].v ? -1 : null;
}

// Whether others committed between its base and it.
const isRace = (entry) => entry.isRace;

const filter = { writer: "", operation: "", from: null, to: null, races: false };
let chosen = [];
let isChosen = [];

function applyFilter() {
  isChosen = entries.map(
    (entry) =>
      (!filter.writer || writerOf(entry) === filter.writer) &&
      (!filter.operation || operationOf(entry) === filter.operation) &&
      (filter.from === null || entry.t >= filter.from) &&
      (filter.to === null || entry.t < filter.to + 1000) && // the whole second, since that is what is shown
      (!filter.races || isRace(entry)),
  );
  chosen = [];
  isChosen.forEach((is, place) => is && chosen.push(place));
}

// The chosen place next to one in a direction, or the same where there is none.
function nextChosen(place, step) {
  if (!chosen.length) return null;
  if (place === null) return step > 0 ? chosen[0] : chosen[chosen.length - 1];
  for (let next = place + step; next >= 0 && next < entries.length; next += step) if (isChosen[next]) return next;
  return isChosen[place] ? place : nextChosen(null, -step);
}

// The places in view, from `low` to `high`, with fractions.
const view = { low: 0, high: Math.max(entries.length, LEAST_SHOWN) };

function setView(low, high) {
  const whole = Math.max(entries.length, LEAST_SHOWN);
  const width = Math.min(Math.max(high - low, LEAST_SHOWN), whole);
  view.low = Math.min(Math.max(low, 0), whole - width);
  view.high = view.low + width;
}

function zoom(factor, at) {
  const center = at ?? (view.low + view.high) / 2;
  setView(center - (center - view.low) * factor, center + (view.high - center) * factor);
}

function pan(places) {
  setView(view.low + places, view.high + places);
}

function bringIntoView(place) {
  const margin = Math.min(2, (view.high - view.low) / 4);
  if (place - margin < view.low) pan(place - margin - view.low);
  else if (place + 1 + margin > view.high) pan(place + 1 + margin - view.high);
}

const number = new Intl.NumberFormat("en");
const count = (value) => (value === null || value === undefined ? "unknown" : number.format(value));

function inUnits(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let amount = Number(bytes);
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < units.length - 1) [amount, unit] = [amount / 1024, unit + 1];
  return `${unit && amount < 100 ? amount.toFixed(1) : Math.round(amount)} ${units[unit]}`;
}

function exactly(bytes) {
  return bytes === null || bytes < 1024 ? inUnits(bytes) : `${inUnits(bytes)}, ${count(bytes)} bytes`;
}

function time(milliseconds, withSeconds = true) {
  const moment = new Date(milliseconds);
  if (Number.isNaN(moment.getTime())) return "unknown time";
  const text = moment.toISOString().replace("T", " ");
  return withSeconds ? `${text.slice(0, 19)} UTC` : text.slice(0, 16);
}
